// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Communicators: joining, leaving, and questions about them.
 *
 * To the kernel a rank is an address space, so a forked child must not submit. The
 * library notices without a system call by a page that fork() wipes.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

void zcoll_attr_init(struct zcoll_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->nranks = 1;
	attr->join_timeout_ns = ZCOLL_JOIN_TIMEOUT_NS;
}

/* ---------------------------------------------------------- whose it is */

static uint32_t *owner_page(void)
{
	size_t len = sysconf(_SC_PAGESIZE);
	uint32_t *page;

	page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, len, MADV_WIPEONFORK)) {
		munmap(page, len);
		return NULL;
	}
	*page = 1;
	return page;
}

/* Is this the address space that joined? */
bool zc_is_owner(const struct zcoll_comm *comm)
{
	return *(volatile const uint32_t *)comm->owner;
}

/*
 * In the child of a fork() another thread of the parent may have held any lock when
 * it was made, so no text is kept: zcoll_comm_error() knows it.
 */
int zc_check_owner(struct zcoll_comm *comm)
{
	return zc_is_owner(comm) ? 0 : -EPERM;
}

/* ------------------------------------------------- state of the communicator */

/* How the communicator stands; @st holds buffers for what to know more, or zeroes */
int zc_comm_status(struct zcoll_comm *comm, struct zcoll_status *st)
{
	st->size = sizeof(*st);
	st->flags = ZCOLL_STATUS_COMM;
	return zc_ioctl(comm->fd, ZCOLL_IOC_STATUS, st);
}

bool zc_is_revoked(struct zcoll_comm *comm)
{
	struct zcoll_status st = { 0 };

	return !zc_comm_status(comm, &st) && st.state == ZCOLL_STATE_DONE;
}

/* Write "1, 4, 5" or "1, 4, ... (17 in all)" */
static void list_ranks(char *buf, size_t len, const uint32_t *ranks, unsigned int shown,
		       unsigned int all)
{
	size_t at = 0;

	for (unsigned int i = 0; i < shown && at < len; i++)
		at += snprintf(buf + at, len - at, "%s%u", i ? ", " : "", ranks[i]);
	if (all > shown && at < len)
		snprintf(buf + at, len - at, ", ... (%u in all)", all);
}

#define LIST_AT_MOST	8

/* The time to join is over, or the communicator was revoked: say why */
static int why_not_joined(struct zcoll_comm *comm, const struct zcoll_attr *attr)
{
	char text[ZCOLL_TEXT_MAX] = "", ranks[100] = "";
	uint32_t missing[LIST_AT_MOST];
	struct zcoll_status st = {
		.missing = (uintptr_t)missing,
		.missing_len = LIST_AT_MOST,
		.text = (uintptr_t)text,
		.text_len = sizeof(text),
	};
	unsigned int absent;
	int ret;

	ret = zc_comm_status(comm, &st);
	if (ret)
		return zc_text(attr->error, attr->error_len, ret, "rank %u: status of the communicator: %s",
			       comm->rank, strerror(-ret));
	if (st.state == ZCOLL_STATE_DONE)
		return zc_text(attr->error, attr->error_len, st.result, "%s",
			       text[0] ? text : strerror(-st.result));

	absent = st.nranks - st.arrived;
	list_ranks(ranks, sizeof(ranks), missing, absent < LIST_AT_MOST ? absent : LIST_AT_MOST,
		   absent);
	return zc_text(attr->error, attr->error_len, -ETIMEDOUT,
		       "rank %u: %u of %u ranks joined in %g s, missing: %s", comm->rank,
		       st.arrived, st.nranks, attr->join_timeout_ns / 1e9, ranks);
}

/* ----------------------------------------------------------------- joining */

static int join(struct zcoll_comm *comm, int dev, const struct zcoll_attr *attr)
{
	char text[ZCOLL_TEXT_MAX] = "";
	struct zcoll_join join = {
		.size = sizeof(join),
		.rank = attr->rank,
		.nranks = attr->nranks,
		.deadline_ns = attr->deadline_ns,
		.text = (uintptr_t)text,
		.text_len = sizeof(text),
	};
	int fd;

	memcpy(join.key, attr->key, sizeof(join.key));
	fd = zc_ioctl(dev, ZCOLL_IOC_JOIN, &join);
	if (fd < 0)
		return zc_text(attr->error, attr->error_len, fd, "rank %u of %u cannot join: %s",
			       attr->rank, attr->nranks, text[0] ? text : strerror(-fd));
	comm->fd = fd;
	return 0;
}

/* Wait until the endpoint says that all ranks are there */
static int wait_for_ranks(struct zcoll_comm *comm, const struct zcoll_attr *attr)
{
	uint64_t end = zc_after(attr->join_timeout_ns);
	struct pollfd pfd = { .fd = comm->fd, .events = POLLIN };
	struct timespec ts;
	uint64_t left;
	int ret;

	if (!attr->join_timeout_ns)
		return 0;
	do {
		left = zc_left(end);
		ts.tv_sec = left / 1000000000;
		ts.tv_nsec = left % 1000000000;
		ret = ppoll(&pfd, 1, end == ZCOLL_WAIT_FOREVER ? NULL : &ts, NULL);
	} while (ret < 0 && errno == EINTR);

	if (ret < 0) {
		ret = -errno;
		return zc_text(attr->error, attr->error_len, ret, "rank %u: poll on the endpoint: %s",
			       comm->rank, strerror(-ret));
	}
	if (ret && !(pfd.revents & (POLLERR | POLLHUP)))
		return 0;
	return why_not_joined(comm, attr);
}

static void comm_destroy(struct zcoll_comm *comm)
{
	if (comm->fd >= 0)
		close(comm->fd);
	if (comm->owner)
		munmap((void *)comm->owner, sysconf(_SC_PAGESIZE));
	pthread_rwlock_destroy(&comm->ranges_lock);
	pthread_mutex_destroy(&comm->ring_lock);
	pthread_mutex_destroy(&comm->text_lock);
	free(comm);
}

static struct zcoll_comm *comm_new(const struct zcoll_attr *attr, const struct zcoll_info *info)
{
	struct zcoll_comm *comm = calloc(1, sizeof(*comm));

	if (!comm)
		return NULL;
	comm->fd = -1;
	comm->rank = attr->rank;
	comm->nranks = attr->nranks;
	comm->deadline_ns = attr->deadline_ns;
	comm->window = info->window;
	comm->types = info->types;
	comm->ops = info->ops;
	pthread_rwlock_init(&comm->ranges_lock, NULL);
	pthread_mutex_init(&comm->ring_lock, NULL);
	pthread_mutex_init(&comm->text_lock, NULL);
	comm->owner = owner_page();
	if (!comm->owner) {
		comm_destroy(comm);
		return NULL;
	}
	return comm;
}

/* What the kernel would refuse too, but with less to say about it */
static int check_attr(const struct zcoll_attr *attr)
{
	if (attr->size != sizeof(*attr))
		return -EINVAL;		/* then the place of the text is not known either */
	if (!attr->nranks || attr->nranks > ZCOLL_MAX_RANKS)
		return zc_text(attr->error, attr->error_len, -EINVAL,
			       "%u ranks: must be 1 to %u", attr->nranks, ZCOLL_MAX_RANKS);
	if (attr->rank >= attr->nranks)
		return zc_text(attr->error, attr->error_len, -EINVAL,
			       "rank %u of %u: must be 0 to %u", attr->rank, attr->nranks,
			       attr->nranks - 1);
	if (attr->deadline_ns > ZCOLL_MAX_DEADLINE_NS)
		return zc_text(attr->error, attr->error_len, -EINVAL,
			       "deadline of %llu ns: at most %llu, a day",
			       (unsigned long long)attr->deadline_ns,
			       (unsigned long long)ZCOLL_MAX_DEADLINE_NS);
	return 0;
}

int zcoll_comm_create(struct zcoll_comm **out, const struct zcoll_attr *attr)
{
	struct zcoll_comm *comm;
	struct zcoll_info info;
	int dev, ret;

	ret = check_attr(attr);
	if (ret)
		return ret;
	dev = zc_device_open(attr->device, &info, attr->error, attr->error_len);
	if (dev < 0)
		return dev;

	comm = comm_new(attr, &info);
	if (!comm) {
		close(dev);
		return zc_text(attr->error, attr->error_len, -ENOMEM,
			       "rank %u: no memory for a communicator", attr->rank);
	}
	ret = join(comm, dev, attr);
	close(dev);
	if (!ret)
		ret = wait_for_ranks(comm, attr);
	if (ret) {
		comm_destroy(comm);
		return ret;
	}
	*out = comm;
	return 0;
}

int zcoll_comm_create_from_env(struct zcoll_comm **comm, char *error, size_t error_len)
{
	struct zcoll_attr attr;
	int ret;

	zcoll_attr_init(&attr);
	attr.error = error;
	attr.error_len = error_len;
	ret = zcoll_attr_from_env(&attr);
	return ret ? ret : zcoll_comm_create(comm, &attr);
}

/* ----------------------------------------------------------------- leaving */

static void leave(struct zcoll_comm *comm)
{
	struct zcoll_flags flags = { .size = sizeof(flags) };

	while (zc_ioctl(comm->fd, ZCOLL_IOC_LEAVE, &flags) == -EINTR)
		;
}

int zcoll_comm_free(struct zcoll_comm *comm)
{
	if (!comm)
		return 0;
	if (zc_is_owner(comm)) {
		if (zc_requests_busy(comm) && !zc_is_revoked(comm))
			return zc_fail(comm, -EBUSY,
				       "rank %u: requests are in flight or were not waited for: wait for them, or abort the communicator, then free it",
				       comm->rank);
		leave(comm);
	}
	zc_requests_free(comm);
	zc_ranges_free(comm);
	comm_destroy(comm);
	return 0;
}

int zcoll_comm_abort(struct zcoll_comm *comm)
{
	struct zcoll_flags flags = { .size = sizeof(flags) };
	int ret = zc_ioctl(comm->fd, ZCOLL_IOC_ABORT, &flags);

	if (ret)
		return zc_fail(comm, ret, "rank %u: abort: %s", comm->rank, strerror(-ret));
	return 0;
}

/* --------------------------------------------------------------- questions */

unsigned int zcoll_comm_rank(const struct zcoll_comm *comm)
{
	return comm->rank;
}

unsigned int zcoll_comm_size(const struct zcoll_comm *comm)
{
	return comm->nranks;
}

int zcoll_comm_fd(const struct zcoll_comm *comm)
{
	return comm->fd;
}

int zcoll_comm_stats(struct zcoll_comm *comm, struct zcoll_stats *stats)
{
	int ret;

	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	ret = zc_ioctl(comm->fd, ZCOLL_IOC_STATS, stats);
	if (ret)
		return zc_fail(comm, ret, "rank %u: statistics: %s", comm->rank, strerror(-ret));
	return 0;
}

int zcoll_comm_pending(struct zcoll_comm *comm, uint64_t seq, struct zcoll_status *status)
{
	int ret;

	status->size = sizeof(*status);
	status->flags = 0;
	status->seq = seq;
	status->__reserved = 0;
	ret = zc_ioctl(comm->fd, ZCOLL_IOC_STATUS, status);
	if (ret)
		return zc_fail(comm, ret, "rank %u: status of operation %llu: %s", comm->rank,
			       (unsigned long long)seq, strerror(-ret));
	return 0;
}
