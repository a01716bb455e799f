/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of /dev/zcoll share: thin calls on the ABI, and a book of the
 * objects that a test made.
 *
 * The tests speak the raw ABI and no library, so that they can say wrong things.
 * All calls here return a value or a negative errno. A rank is an endpoint and
 * the address space that joined, so one process may be several ranks: that is
 * how most tests with several ranks are written, each blocking call in a thread
 * of its own (struct zt_call). Tests that need a process to die or to be
 * stopped fork children, which join by themselves.
 *
 * struct zt is the book. zt_open() notes the counters of the driver, zt_leaks()
 * closes all that is open and tells which counters do not return to the note:
 * the teardown of every fixture expects "".
 *
 * Time: the harness kills a test after 30 s, so a hang is a failure. Bounds in
 * the tests are generous because the CPUs may be emulated.
 */
#ifndef ZCOLL_TEST_H
#define ZCOLL_TEST_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/capability.h>
#include <linux/zcoll.h>

#define ZT_DEVICE	"/dev/zcoll"
#define ZT_MAX_EP	1100

/* "Within a second", on a CPU that may be emulated */
#define ZT_SOON_MS	3000
/* For what must happen, and is not timed */
#define ZT_LONG_MS	20000
/* Long enough to see that something does not happen */
#define ZT_QUIET_MS	200

#define NS_PER_MS	1000000ULL

/* --- time ---------------------------------------------------------------- */

static inline uint64_t zt_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static inline void zt_sleep_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

/* Looks at @cond until it holds or @ms have passed; gives its last value */
#define zt_until(ms, cond) ({						\
	uint64_t __end = zt_now_ms() + (ms);				\
	bool __ok;							\
									\
	while (!(__ok = (cond)) && zt_now_ms() < __end)			\
		zt_sleep_ms(2);						\
	__ok;								\
})

/* --- thin calls ---------------------------------------------------------- */

static inline int zt_ioctl(int fd, unsigned long req, void *arg)
{
	int ret = ioctl(fd, req, arg);

	return ret < 0 ? -errno : ret;
}

static inline int zt_info(int dev, struct zcoll_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return zt_ioctl(dev, ZCOLL_IOC_INFO, info);
}

static inline int zt_abort(int ep)
{
	struct zcoll_flags arg = { .size = sizeof(arg) };

	return zt_ioctl(ep, ZCOLL_IOC_ABORT, &arg);
}

static inline int zt_leave(int ep)
{
	struct zcoll_flags arg = { .size = sizeof(arg) };

	return zt_ioctl(ep, ZCOLL_IOC_LEAVE, &arg);
}

static inline int zt_cancel(int ep, uint64_t seq)
{
	struct zcoll_seq arg = { .size = sizeof(arg), .seq = seq };

	return zt_ioctl(ep, ZCOLL_IOC_CANCEL, &arg);
}

static inline int zt_stats(int ep, struct zcoll_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	return zt_ioctl(ep, ZCOLL_IOC_STATS, stats);
}

static inline int zt_register(int ep, void *addr, uint64_t len, uint32_t *handle)
{
	struct zcoll_buf arg = {
		.size = sizeof(arg),
		.addr = (uintptr_t)addr,
		.len = len,
	};
	int ret = zt_ioctl(ep, ZCOLL_IOC_REGISTER, &arg);

	*handle = arg.handle;
	return ret;
}

static inline int zt_unregister(int ep, uint32_t handle)
{
	struct zcoll_unbuf arg = { .size = sizeof(arg), .handle = handle };

	return zt_ioctl(ep, ZCOLL_IOC_UNREGISTER, &arg);
}

/* Gives the result of the operation, or -ETIMEDOUT, or an error of the call */
static inline int zt_wait(int ep, uint64_t seq, uint64_t timeout_ns)
{
	struct zcoll_wait arg = {
		.size = sizeof(arg),
		.seq = seq,
		.timeout_ns = timeout_ns,
	};
	int ret = zt_ioctl(ep, ZCOLL_IOC_WAIT, &arg);

	return ret < 0 ? ret : arg.result;
}

static inline int zt_status(int ep, uint64_t seq, struct zcoll_status *st,
			    char text[ZCOLL_TEXT_MAX])
{
	memset(st, 0, sizeof(*st));
	memset(text, 0, ZCOLL_TEXT_MAX);
	st->size = sizeof(*st);
	st->seq = seq;
	st->text = (uintptr_t)text;
	st->text_len = ZCOLL_TEXT_MAX;
	return zt_ioctl(ep, ZCOLL_IOC_STATUS, st);
}

static inline int zt_comm_status(int ep, struct zcoll_status *st,
				 char text[ZCOLL_TEXT_MAX])
{
	memset(st, 0, sizeof(*st));
	memset(text, 0, ZCOLL_TEXT_MAX);
	st->size = sizeof(*st);
	st->flags = ZCOLL_STATUS_COMM;
	st->text = (uintptr_t)text;
	st->text_len = ZCOLL_TEXT_MAX;
	return zt_ioctl(ep, ZCOLL_IOC_STATUS, st);
}

/* State of an operation, or a negative errno */
static inline int zt_state(int ep, uint64_t seq)
{
	struct zcoll_status st = { .size = sizeof(st), .seq = seq };
	int ret = zt_ioctl(ep, ZCOLL_IOC_STATUS, &st);

	return ret < 0 ? ret : (int)st.state;
}

/* Ranks that have called operation @seq, or a negative errno */
static inline int zt_arrived(int ep, uint64_t seq)
{
	struct zcoll_status st = { .size = sizeof(st), .seq = seq };
	int ret = zt_ioctl(ep, ZCOLL_IOC_STATUS, &st);

	return ret < 0 ? ret : (int)st.arrived;
}

/* The error that revoked the communicator, 0 if it is whole */
static inline int zt_revoked(int ep)
{
	struct zcoll_status st = {
		.size = sizeof(st),
		.flags = ZCOLL_STATUS_COMM,
	};
	int ret = zt_ioctl(ep, ZCOLL_IOC_STATUS, &st);

	if (ret < 0)
		return ret;
	return st.state == ZCOLL_STATE_DONE ? st.result : 0;
}

static inline short zt_poll(int ep, int timeout_ms)
{
	struct pollfd p = { .fd = ep, .events = POLLIN };

	return poll(&p, 1, timeout_ms) < 0 ? -1 : p.revents;
}

/* Pages that something uses: not those that only stay pinned for calls to come */
static inline uint64_t zt_pages_in_use(const struct zcoll_info *info)
{
	return info->pinned_pages - info->cache_pages;
}

/* --- the book ------------------------------------------------------------ */

struct zt {
	int dev;
	struct zcoll_info base;
	unsigned int nr;
	int ep[ZT_MAX_EP];
};

static inline int zt_open(struct zt *zt)
{
	zt->nr = 0;
	zt->dev = open(ZT_DEVICE, O_RDWR | O_CLOEXEC);
	if (zt->dev < 0)
		return -errno;
	return zt_info(zt->dev, &zt->base);
}

static inline int zt_note(struct zt *zt, int ep)
{
	if (ep >= 0 && zt->nr < ZT_MAX_EP)
		zt->ep[zt->nr++] = ep;
	return ep;
}

static inline void zt_close_ep(struct zt *zt, int ep)
{
	for (unsigned int i = 0; i < zt->nr; i++) {
		if (zt->ep[i] == ep)
			zt->ep[i] = -1;
	}
	close(ep);
}

/* In a forked child: let go of the parent's endpoints, which it inherited */
static inline void zt_forget(struct zt *zt)
{
	for (unsigned int i = 0; i < zt->nr; i++) {
		if (zt->ep[i] >= 0)
			close(zt->ep[i]);
	}
	zt->nr = 0;
}

static inline bool zt_above(const struct zcoll_info *now, const struct zcoll_info *base)
{
	return now->comms > base->comms || now->ranks > base->ranks ||
	       now->workers > base->workers ||
	       now->pinned_pages > base->pinned_pages ||
	       now->kernel_bytes > base->kernel_bytes;
}

/* Waits until the driver holds no more than @base; "" or what it holds */
static inline const char *zt_above_text(int dev, const struct zcoll_info *base)
{
	static char text[256];
	struct zcoll_info now = {};
	int ret = 0;
	bool whole;

	whole = zt_until(ZT_LONG_MS / 4,
			 !(ret = zt_info(dev, &now)) && !zt_above(&now, base));
	if (whole)
		return "";
	snprintf(text, sizeof(text),
		 "held (before): comms %u (%u) ranks %u (%u) workers %u (%u) pages %llu (%llu), %llu of them kept, bytes %llu (%llu), info %d",
		 now.comms, base->comms, now.ranks, base->ranks,
		 now.workers, base->workers,
		 (unsigned long long)now.pinned_pages,
		 (unsigned long long)base->pinned_pages,
		 (unsigned long long)now.cache_pages,
		 (unsigned long long)now.kernel_bytes,
		 (unsigned long long)base->kernel_bytes, ret);
	return text;
}

/* Ends everything the test made; "" or what the driver still holds after it */
static inline const char *zt_leaks(struct zt *zt)
{
	const char *text;

	for (unsigned int i = 0; i < zt->nr; i++) {
		if (zt->ep[i] < 0)
			continue;
		zt_abort(zt->ep[i]);
		close(zt->ep[i]);
	}
	zt->nr = 0;
	text = zt_above_text(zt->dev, &zt->base);
	close(zt->dev);
	return text;
}

/* --- joining ------------------------------------------------------------- */

/* A key that no other communicator of this boot has */
static inline void zt_key(uint8_t key[16])
{
	static uint32_t count;
	uint32_t part[4] = { getpid(), ++count, 0x7a636f6c, 0x6c746573 };

	memcpy(key, part, sizeof(part));
}

static inline struct zcoll_join zt_join_arg(const uint8_t key[16], uint32_t rank,
					    uint32_t nranks)
{
	struct zcoll_join arg = {
		.size = sizeof(arg),
		.rank = rank,
		.nranks = nranks,
	};

	memcpy(arg.key, key, sizeof(arg.key));
	return arg;
}

/* Gives the endpoint or a negative errno */
static inline int zt_join(struct zt *zt, const uint8_t key[16], uint32_t rank,
			  uint32_t nranks)
{
	struct zcoll_join arg = zt_join_arg(key, rank, nranks);

	return zt_note(zt, zt_ioctl(zt->dev, ZCOLL_IOC_JOIN, &arg));
}

/* A communicator whose @n ranks are all this process */
static inline int zt_comm_deadline(struct zt *zt, unsigned int n, int *ep,
				   uint64_t deadline_ns)
{
	uint8_t key[16];

	zt_key(key);
	for (unsigned int r = 0; r < n; r++) {
		struct zcoll_join arg = zt_join_arg(key, r, n);

		arg.deadline_ns = deadline_ns;
		ep[r] = zt_note(zt, zt_ioctl(zt->dev, ZCOLL_IOC_JOIN, &arg));
		if (ep[r] < 0)
			return ep[r];
	}
	return 0;
}

static inline int zt_comm(struct zt *zt, unsigned int n, int *ep)
{
	return zt_comm_deadline(zt, n, ep, 0);
}

/* --- operations ---------------------------------------------------------- */

static inline struct zcoll_cmd zt_cmd(uint64_t seq, int dtype, int op,
				      const void *send, void *recv, uint64_t count)
{
	return (struct zcoll_cmd) {
		.version = ZCOLL_CMD_VERSION,
		.dtype = dtype,
		.op = op,
		.seq = seq,
		.send = (uintptr_t)send,
		.recv = (uintptr_t)recv,
		.count = count,
	};
}

/* In place sum of int32, what most tests that are not about data do */
static inline struct zcoll_cmd zt_sum(uint64_t seq, int32_t *buf, uint64_t count)
{
	return zt_cmd(seq, ZCOLL_INT32, ZCOLL_SUM, buf, buf, count);
}

/* An operation without data: only synchronises */
static inline struct zcoll_cmd zt_barrier(uint64_t seq)
{
	return zt_cmd(seq, ZCOLL_INT32, ZCOLL_SUM, NULL, NULL, 0);
}

static inline int zt_collective(int ep, unsigned int collective, struct zcoll_cmd *cmd)
{
	return zt_ioctl(ep, ZCOLL_IOC_OP(collective), cmd);
}

static inline int zt_allreduce(int ep, struct zcoll_cmd *cmd)
{
	return zt_collective(ep, ZCOLL_ALLREDUCE, cmd);
}

/* A blocking ioctl in a thread of its own */
struct zt_call {
	int fd;
	unsigned long req;
	void *arg;
	int ret;
	uint64_t started_ms;
	uint64_t ended_ms;
	atomic_int done;
	atomic_int tid;
	pthread_t thread;
};

static inline void *zt_call_main(void *p)
{
	struct zt_call *c = p;

	c->tid = syscall(SYS_gettid);
	c->started_ms = zt_now_ms();
	c->ret = zt_ioctl(c->fd, c->req, c->arg);
	c->ended_ms = zt_now_ms();
	c->done = 1;
	return NULL;
}

static inline int zt_start(struct zt_call *c, int fd, unsigned long req, void *arg)
{
	*c = (struct zt_call) { .fd = fd, .req = req, .arg = arg };
	return -pthread_create(&c->thread, NULL, zt_call_main, c);
}

static inline int zt_start_op(struct zt_call *c, int ep, struct zcoll_cmd *cmd)
{
	return zt_start(c, ep, ZCOLL_IOC_ALLREDUCE, cmd);
}

/* The result of the call; -ETIME (which the driver never gives): still running */
static inline int zt_finish(struct zt_call *c, unsigned int ms)
{
	if (!zt_until(ms, c->done))
		return -ETIME;
	pthread_join(c->thread, NULL);
	return c->ret;
}

/* One operation on all @n ranks at once, each in a thread: 0 or the first error */
static inline int zt_all_of(const int *ep, unsigned int collective, struct zcoll_cmd *cmd,
			    unsigned int n)
{
	struct zt_call *call = calloc(n, sizeof(*call));
	int ret = 0;

	for (unsigned int r = 1; r < n; r++)
		zt_start(&call[r], ep[r], ZCOLL_IOC_OP(collective), &cmd[r]);
	call[0].ret = zt_collective(ep[0], collective, &cmd[0]);
	for (unsigned int r = 1; r < n; r++)
		zt_finish(&call[r], ZT_LONG_MS);
	for (unsigned int r = 0; r < n && !ret; r++)
		ret = call[r].ret;
	free(call);
	return ret;
}

static inline int zt_all(const int *ep, struct zcoll_cmd *cmd, unsigned int n)
{
	return zt_all_of(ep, ZCOLL_ALLREDUCE, cmd, n);
}

/* --- processes ----------------------------------------------------------- */

/* A child that dies with the test; the caller's endpoints are closed in it */
static inline pid_t zt_fork(struct zt *zt)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		zt_forget(zt);
	}
	return pid;
}

/* Exit status of a child, 128 + signal, or -ETIME */
static inline int zt_reap(pid_t pid, unsigned int ms)
{
	int status = 0;
	pid_t got = 0;

	zt_until(ms, (got = waitpid(pid, &status, WNOHANG)) != 0);
	if (!got)
		return -ETIME;
	if (got < 0)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/*
 * In a child, where the harness' macros do not reach: count and tell what is not
 * as expected; the count becomes the exit status.
 */
#define ZT_CHECK(bad, expected, seen) do {				\
	long long __e = (expected), __s = (seen);			\
									\
	if (__e != __s) {						\
		fprintf(stderr, "# %s:%d: child expected %s (%lld), saw %s (%lld)\n", \
			__FILE__, __LINE__, #expected, __e, #seen, __s); \
		(bad)++;						\
	}								\
} while (0)

/* Passes a descriptor over a socket (SCM_RIGHTS): 0 or a negative errno */
static inline int zt_send_fd(int sock, int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ctl = {};
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = ctl.room,
		.msg_controllen = sizeof(ctl.room),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(sock, &msg, 0) < 0 ? -errno : 0;
}

/* The descriptor that the other side passed, or a negative errno */
static inline int zt_recv_fd(int sock)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ctl = {};
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = ctl.room,
		.msg_controllen = sizeof(ctl.room),
	};
	struct cmsghdr *c;
	int fd;

	if (recvmsg(sock, &msg, 0) < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return -EBADMSG;
	memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

/* Memory that the test and its children share */
static inline void *zt_shared(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Pages of the process's own; whole pages, so that unmapping is exact */
static inline void *zt_pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Takes a capability away from this process, for good */
static inline int zt_drop_cap(int cap)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return -errno;
	data[cap / 32].effective &= ~(1U << (cap % 32));
	data[cap / 32].permitted &= ~(1U << (cap % 32));
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

/* This process may lock only so many bytes, from now on */
static inline int zt_limit_locked(size_t bytes)
{
	struct rlimit lim = { bytes, bytes };

	return setrlimit(RLIMIT_MEMLOCK, &lim) ? -errno : zt_drop_cap(CAP_IPC_LOCK);
}

/* --- settings of the kernel ---------------------------------------------- */

/* Writes a number to a file; returns the one that was there */
static inline unsigned int zt_set(const char *path, unsigned int value)
{
	unsigned int was = 0;
	FILE *f = fopen(path, "re");

	if (f) {
		if (fscanf(f, "%u", &was) != 1)
			was = 0;
		fclose(f);
	}
	f = fopen(path, "we");
	if (f) {
		fprintf(f, "%u\n", value);
		fclose(f);
	}
	return was;
}

#define ZT_PARAMETER(name)	"/sys/module/zcoll/parameters/" name

/* Sets a parameter of the module; returns what it was */
#define zt_parameter(name, value)	zt_set(ZT_PARAMETER(name), value)

/* Sets so many huge pages aside: 0, or -1 */
static inline int zt_huge_pages(unsigned int n)
{
	static const char path[] = "/proc/sys/vm/nr_hugepages";

	if (access(path, W_OK))
		return -1;
	zt_set(path, n);
	return 0;
}

/*
 * The kernel does not look for better nodes for this process' pages. It would take ranges out of
 * the cache for that, at any time; a policy of its own spares a process that (vma_policy_mof()).
 */
static inline void zt_keep_off_numa_balancing(void)
{
	enum { POLICY_LOCAL = 4 };

	syscall(SYS_set_mempolicy, POLICY_LOCAL, NULL, 0);
}

/* --- programs ------------------------------------------------------------ */

/* The harness' main, but a machine without the device skips the whole program */
#define zt_main(argc, argv) ({							\
	setvbuf(stderr, NULL, _IOLBF, 0);					\
	if (access(ZT_DEVICE, R_OK | W_OK))					\
		ksft_exit_skip("no %s here\n", ZT_DEVICE);			\
	test_harness_run(argc, argv);						\
})

#define ZT_MAIN									\
int main(int argc, char **argv)							\
{										\
	return zt_main(argc, argv);						\
}

/* Every fixture holds a book named zt and starts and ends with these */
#define ZT_SETUP(self)		ASSERT_EQ(0, zt_open(&(self)->zt))
#define ZT_TEARDOWN(self)	EXPECT_STREQ("", zt_leaks(&(self)->zt))

/*
 * SKIP() for FIXTURE_SETUP(). The harness of Linux 6.1 goes on to the test when a setup has
 * returned; leaving it as ASSERT_*() does ends the test with every harness.
 */
#define ZT_SETUP_SKIP(...)	SKIP(longjmp(_metadata->env, 1), __VA_ARGS__)

#endif /* ZCOLL_TEST_H */
