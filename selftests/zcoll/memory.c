// SPDX-License-Identifier: GPL-2.0
/*
 * Memory: what may be a buffer, what may not, and what it is charged to.
 *
 * Each kind of memory is tried in both ways, registered and as an address of one
 * call. After a refusal nothing may be pinned, which the teardown sees too.
 */
#include "zcoll_test.h"
#include <glob.h>
#include <sched.h>
#include <sys/mount.h>
#include "kselftest_harness.h"

#define COUNT	1024

FIXTURE(memory) {
	struct zt zt;
	size_t page;
	int ep;
	struct zcoll_info before;
	char text[ZCOLL_TEXT_MAX];
};

FIXTURE_SETUP(memory)
{
	ZT_SETUP(self);
	self->page = sysconf(_SC_PAGESIZE);
	ASSERT_EQ(0, zt_comm(&self->zt, 1, &self->ep));
	ASSERT_EQ(0, zt_info(self->zt.dev, &self->before));
}

FIXTURE_TEARDOWN(memory)
{
	ZT_TEARDOWN(self);
}

static int register_text(int ep, void *addr, uint64_t len, uint32_t *handle,
			 char text[ZCOLL_TEXT_MAX])
{
	struct zcoll_buf arg = {
		.size = sizeof(arg),
		.addr = (uintptr_t)addr,
		.len = len,
		.text = (uintptr_t)text,
		.text_len = ZCOLL_TEXT_MAX,
	};
	int ret;

	memset(text, 0, ZCOLL_TEXT_MAX);
	ret = zt_ioctl(ep, ZCOLL_IOC_REGISTER, &arg);
	*handle = arg.handle;
	return ret;
}

/* In place, registered and not: the second half becomes a copy of the first */
static int use(int ep, uint64_t seq, void *addr, uint32_t handle)
{
	struct zcoll_cmd cmd = zt_cmd(seq, ZCOLL_INT32, ZCOLL_SUM, addr,
				      (char *)addr + COUNT * 4, COUNT);

	if (handle) {
		cmd.send_buf = handle;
		cmd.recv_buf = handle;
		cmd.send = 0;
		cmd.recv = COUNT * 4;
	}
	return zt_allreduce(ep, &cmd);
}

/* 0 when memory at @addr (2 * COUNT ints) serves in both ways, on a rank of its own */
static int serves(struct zt *zt, int32_t *addr)
{
	uint32_t handle;
	int ep, ret;

	ret = zt_comm(zt, 1, &ep);
	for (int way = 0; way < 2 && !ret; way++) {
		for (int i = 0; i < COUNT; i++) {
			addr[i] = 1000 * way + i;
			addr[COUNT + i] = -1;
		}
		ret = way ? zt_register(ep, addr, 2 * COUNT * 4, &handle) : 0;
		if (!ret)
			ret = use(ep, way, addr, way ? handle : 0);
		if (!ret && way)
			ret = zt_unregister(ep, handle);
		if (ret)
			return ret;
		for (int i = 0; i < COUNT; i++) {
			if (addr[COUNT + i] != 1000 * way + i)
				return -EBADMSG;
		}
	}
	return 0;
}

/* Memory at @addr is refused with @err in both ways, leaving nothing in use */
#define EXPECT_REFUSED(err, addr) do {						\
	struct zcoll_info __now;						\
	uint32_t __h;								\
										\
	EXPECT_EQ(err, register_text(self->ep, addr, 2 * COUNT * 4, &__h,	\
				     self->text));				\
	EXPECT_NE('\0', self->text[0]);						\
	EXPECT_EQ(err, use(self->ep, 0, addr, 0));				\
	ASSERT_EQ(0, zt_info(self->zt.dev, &__now));				\
	EXPECT_EQ(self->before.pinned_pages, zt_pages_in_use(&__now));		\
} while (0)

/* --- what serves --------------------------------------------------------- */

TEST_F(memory, stack_serves)
{
	int32_t buf[2 * COUNT];

	EXPECT_EQ(0, serves(&self->zt, buf));
}

TEST_F(memory, heap_serves)
{
	int32_t *buf = malloc(2 * COUNT * sizeof(*buf));

	EXPECT_EQ(0, serves(&self->zt, buf));
	free(buf);
}

static int32_t in_bss[2 * COUNT];
static int32_t in_data[2 * COUNT] = { 1 };

TEST_F(memory, program_variables_serve)
{
	EXPECT_EQ(0, serves(&self->zt, in_bss));
	EXPECT_EQ(0, serves(&self->zt, in_data));
}

TEST_F(memory, untouched_anonymous_pages_serve)
{
	uint32_t handle;
	int32_t *buf = zt_pages(2 * COUNT * 4);

	ASSERT_EQ(0, zt_register(self->ep, buf, 2 * COUNT * 4, &handle));
	buf[3] = 8;
	EXPECT_EQ(0, use(self->ep, 0, NULL, handle));
	EXPECT_EQ(8, buf[COUNT + 3]);
	EXPECT_EQ(0, buf[COUNT]);
}

TEST_F(memory, shared_anonymous_pages_serve)
{
	EXPECT_EQ(0, serves(&self->zt, zt_shared(2 * COUNT * 4)));
}

TEST_F(memory, memfd_serves)
{
	int fd = memfd_create("buffer", MFD_CLOEXEC);
	void *p;

	ASSERT_EQ(0, ftruncate(fd, 2 * COUNT * 4));
	p = mmap(NULL, 2 * COUNT * 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(0, serves(&self->zt, p));
	close(fd);
}

TEST_F(memory, tmpfs_file_serves)
{
	char name[] = "/dev/shm/zcoll-XXXXXX";
	int fd = mkstemp(name);
	void *p;

	if (fd < 0)
		SKIP(return, "no tmpfs at /dev/shm");
	unlink(name);
	ASSERT_EQ(0, ftruncate(fd, 2 * COUNT * 4));
	p = mmap(NULL, 2 * COUNT * 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(0, serves(&self->zt, p));
	close(fd);
}

TEST_F(memory, transparent_huge_pages_serve)
{
	size_t huge = 2 << 20;
	char *p = zt_pages(2 * huge);
	char *start = (char *)(((uintptr_t)p + huge - 1) & ~(huge - 1));
	int32_t *buf = (int32_t *)(start + huge / 2 + 12);

	if (madvise(start, huge, MADV_HUGEPAGE))
		SKIP(return, "this kernel has no transparent huge pages");
	memset(start, 0, huge);
	EXPECT_EQ(0, serves(&self->zt, buf));
}

/* Huge pages split and shared with small ones in one buffer */
TEST_F(memory, huge_and_small_pages_in_one_buffer_serve)
{
	size_t huge = 2 << 20;
	char *p = zt_pages(3 * huge);
	char *start = (char *)(((uintptr_t)p + huge - 1) & ~(huge - 1));

	madvise(start, huge, MADV_HUGEPAGE);
	madvise(start + huge, huge, MADV_NOHUGEPAGE);
	memset(start, 0, 2 * huge);
	EXPECT_EQ(0, serves(&self->zt, (int32_t *)(start + huge - COUNT * 4 - 4)));
}

TEST_F(memory, hugetlb_serves)
{
	void *p;

	if (zt_huge_pages(4))
		SKIP(return, "cannot set aside huge pages");
	p = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED) {
		zt_huge_pages(0);
		SKIP(return, "no huge page is free");
	}
	EXPECT_EQ(0, serves(&self->zt, (int32_t *)((char *)p + 4100)));
	munmap(p, 2 << 20);
	zt_huge_pages(0);
}

/* Both ranks use one and the same page */
TEST_F(memory, page_shared_between_ranks_serves)
{
	int32_t *buf = zt_pages(self->page);
	struct zcoll_cmd cmd[2];
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	buf[0] = 1;
	buf[100] = 2;
	cmd[0] = zt_sum(0, &buf[0], 1);
	cmd[1] = zt_sum(0, &buf[100], 1);
	EXPECT_EQ(0, zt_all(ep, cmd, 2));
	EXPECT_EQ(3, buf[0]);
	EXPECT_EQ(3, buf[100]);
}

/* Buffers that begin with the last bytes of a page */
TEST_F(memory, elements_across_pages_serve)
{
	char *p = zt_pages(4 * self->page);

	for (int shift = 1; shift < 4; shift++) {
		ASSERT_EQ(0, serves(&self->zt, (int32_t *)(p + self->page - shift)));
	}
}

TEST_F(memory, same_memory_registered_twice)
{
	int32_t *buf = zt_pages(2 * COUNT * 4);
	struct zcoll_info now;
	uint32_t a, b;

	ASSERT_EQ(0, zt_register(self->ep, buf, 2 * COUNT * 4, &a));
	ASSERT_EQ(0, zt_register(self->ep, buf, 2 * COUNT * 4, &b));
	EXPECT_NE(a, b);
	buf[0] = 6;
	EXPECT_EQ(0, use(self->ep, 0, NULL, a));
	ASSERT_EQ(0, zt_unregister(self->ep, a));
	EXPECT_EQ(-ENOENT, use(self->ep, 1, NULL, a));
	buf[1] = 7;
	EXPECT_EQ(0, use(self->ep, 1, NULL, b));
	EXPECT_EQ(6, buf[COUNT]);
	EXPECT_EQ(7, buf[COUNT + 1]);
	ASSERT_EQ(0, zt_unregister(self->ep, b));
	ASSERT_EQ(0, zt_info(self->zt.dev, &now));
	EXPECT_EQ(self->before.pinned_pages, now.pinned_pages);
}

TEST_F(memory, one_byte_registers_one_page)
{
	char *p = zt_pages(2 * self->page);
	struct zcoll_info now;
	uint32_t handle;

	ASSERT_EQ(0, zt_register(self->ep, p + self->page - 1, 1, &handle));
	ASSERT_EQ(0, zt_info(self->zt.dev, &now));
	EXPECT_EQ(self->before.pinned_pages + 1, now.pinned_pages);
	ASSERT_EQ(0, zt_unregister(self->ep, handle));
	ASSERT_EQ(0, zt_register(self->ep, p + self->page - 1, 2, &handle));
	ASSERT_EQ(0, zt_info(self->zt.dev, &now));
	EXPECT_EQ(self->before.pinned_pages + 2, now.pinned_pages);
}

/* --- what does not ------------------------------------------------------- */

TEST_F(memory, read_only_mapping_is_efault)
{
	void *p = mmap(NULL, 2 * COUNT * 4, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, p);
	EXPECT_REFUSED(-EFAULT, p);
}

TEST_F(memory, read_only_shared_mapping_is_efault)
{
	int fd = memfd_create("buffer", MFD_CLOEXEC);
	void *p;

	ASSERT_EQ(0, ftruncate(fd, 2 * COUNT * 4));
	p = mmap(NULL, 2 * COUNT * 4, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_REFUSED(-EFAULT, p);
	close(fd);
}

TEST_F(memory, no_access_mapping_is_efault)
{
	void *p = mmap(NULL, 2 * COUNT * 4, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, p);
	EXPECT_REFUSED(-EFAULT, p);
}

TEST_F(memory, hole_in_the_middle_is_efault)
{
	char *p = zt_pages(3 * self->page);

	munmap(p + self->page, self->page);
	EXPECT_REFUSED(-EFAULT, p + self->page / 2);
}

TEST_F(memory, hole_at_the_end_of_many_pages_is_efault)
{
	size_t pages = 700;
	char *p = zt_pages(pages * self->page);
	struct zcoll_info now;
	uint32_t handle;

	munmap(p + (pages - 1) * self->page, self->page);
	EXPECT_EQ(-EFAULT, register_text(self->ep, p, pages * self->page, &handle, self->text));
	ASSERT_EQ(0, zt_info(self->zt.dev, &now));
	EXPECT_EQ(self->before.pinned_pages, now.pinned_pages);
	EXPECT_EQ(0, zt_register(self->ep, p, (pages - 1) * self->page, &handle));
}

/* Beyond the end of the object behind the mapping */
TEST_F(memory, truncated_memfd_is_efault)
{
	int fd = memfd_create("buffer", MFD_CLOEXEC);
	void *p;

	ASSERT_EQ(0, ftruncate(fd, self->page));
	p = mmap(NULL, 2 * COUNT * 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_REFUSED(-EFAULT, p);
	close(fd);
}

/*
 * Shared memory of a file whose pages are the page cache's own, as those of disks
 * are and those of tmpfs are not: a file in ramfs, which every kernel has. NULL:
 * none can be had.
 */
static void *map_file(size_t len)
{
	char dir[] = "/tmp/zcoll-XXXXXX", name[64];
	void *p = MAP_FAILED;
	int fd;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    !mkdtemp(dir))
		return NULL;
	if (!mount("ramfs", dir, "ramfs", 0, NULL)) {
		snprintf(name, sizeof(name), "%s/file", dir);
		fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0 && !ftruncate(fd, len))
			p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		umount2(dir, MNT_DETACH);
	}
	rmdir(dir);
	return p == MAP_FAILED ? NULL : p;
}

TEST_F(memory, shared_file_mapping_is_eopnotsupp)
{
	void *p = map_file(2 * COUNT * 4);

	if (!p)
		SKIP(return, "needs root to mount a file system");
	EXPECT_REFUSED(-EOPNOTSUPP, p);
}

/* A private mapping, once written, is anonymous memory */
TEST_F(memory, private_file_mapping_serves)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *p;

	if (fd < 0)
		SKIP(return, "no file to map");
	p = mmap(NULL, 2 * COUNT * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(0, serves(&self->zt, p));
	close(fd);
}

/* Registers of a PCI device that no driver keeps for itself */
static void *map_device(void)
{
	void *p = MAP_FAILED;
	glob_t found;
	int fd;

	if (glob("/sys/bus/pci/devices/*/resource[0-5]", 0, NULL, &found))
		return NULL;
	for (size_t i = 0; i < found.gl_pathc && p == MAP_FAILED; i++) {
		fd = open(found.gl_pathv[i], O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	globfree(&found);
	return p == MAP_FAILED ? NULL : p;
}

TEST_F(memory, device_mapping_is_eopnotsupp)
{
	void *p = map_device();
	uint32_t handle;

	if (!p)
		SKIP(return, "no device memory can be mapped here");
	EXPECT_EQ(-EOPNOTSUPP, register_text(self->ep, p, 4096, &handle, self->text));
	EXPECT_NE('\0', self->text[0]);
}

/* The ring of an io_uring is kernel memory in a user mapping */
TEST_F(memory, kernel_memory_mapping_is_eopnotsupp)
{
	struct { uint32_t word[30]; } params = {};
	int fd = syscall(SYS_io_uring_setup, 4, &params);
	uint32_t handle;
	void *p;

	ASSERT_LE(0, fd);
	p = mmap(NULL, 64, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(-EOPNOTSUPP, register_text(self->ep, p, 64, &handle, self->text));
	close(fd);
}

/* --- sizes and numbers --------------------------------------------------- */

TEST_F(memory, huge_lengths_are_refused)
{
	static const uint64_t len[] = {
		1ULL << 40, 1ULL << 46, 1ULL << 52, 1ULL << 62, 1ULL << 63,
	};
	char *p = zt_pages(self->page);
	struct zcoll_info now;
	uint32_t handle;
	int ret;

	for (size_t i = 0; i < ARRAY_SIZE(len); i++) {
		ret = register_text(self->ep, p, len[i], &handle, self->text);
		EXPECT_TRUE(ret == -EFAULT || ret == -EOVERFLOW || ret == -ENOMEM ||
			    ret == -EDQUOT || ret == -EINVAL)
			TH_LOG("length %llx: %d", (unsigned long long)len[i], ret);
		EXPECT_NE('\0', self->text[0]);
	}
	ASSERT_EQ(0, zt_info(self->zt.dev, &now));
	EXPECT_EQ(self->before.pinned_pages, now.pinned_pages);
}

TEST_F(memory, too_many_buffers_is_enospc)
{
	unsigned int max = self->zt.base.max_buffers;
	uint32_t *handle = calloc(max + 1, sizeof(*handle));
	char *p = zt_pages(self->page);

	if (max > 65536)
		SKIP(return, "the limit of %u buffers is too high to reach", max);
	for (unsigned int i = 0; i < max; i++) {
		ASSERT_EQ(0, zt_register(self->ep, p, 1, &handle[i]))
			TH_LOG("buffer %u of %u", i, max);
	}
	EXPECT_EQ(-ENOSPC, register_text(self->ep, p, 1, &handle[max], self->text));
	EXPECT_NE('\0', self->text[0]);
	ASSERT_EQ(0, zt_unregister(self->ep, handle[max / 2]));
	EXPECT_EQ(0, zt_register(self->ep, p, 1, &handle[max]));
	free(handle);
}

/* --- RLIMIT_MEMLOCK ------------------------------------------------------ */

#define LIMIT_PAGES	16

FIXTURE(memlock) {
	struct zt zt;
	size_t page;
	int ep;
	char *mem;
	struct zcoll_info before;
	char text[ZCOLL_TEXT_MAX];
	char limit[32];			/* as texts tell it */
};

FIXTURE_SETUP(memlock)
{
	ZT_SETUP(self);
	self->page = sysconf(_SC_PAGESIZE);
	snprintf(self->limit, sizeof(self->limit), "%zu KiB", LIMIT_PAGES * self->page / 1024);
	self->mem = zt_pages(4 * LIMIT_PAGES * self->page);
	ASSERT_EQ(0, zt_limit_locked(LIMIT_PAGES * self->page));
	ASSERT_EQ(0, zt_comm(&self->zt, 1, &self->ep));
	ASSERT_EQ(0, zt_info(self->zt.dev, &self->before));
}

FIXTURE_TEARDOWN(memlock)
{
	ZT_TEARDOWN(self);
}

#define EXPECT_NOTHING_PINNED() do {						\
	struct zcoll_info __now;						\
										\
	ASSERT_EQ(0, zt_info(self->zt.dev, &__now));				\
	EXPECT_EQ(self->before.pinned_pages, __now.pinned_pages);		\
} while (0)

TEST_F(memlock, register_above_the_limit_is_edquot)
{
	uint32_t handle;

	EXPECT_EQ(-EDQUOT, register_text(self->ep, self->mem, (LIMIT_PAGES + 1) * self->page,
					 &handle, self->text));
	EXPECT_NOTHING_PINNED();
	EXPECT_EQ(0, zt_register(self->ep, self->mem, LIMIT_PAGES / 2 * self->page, &handle));
}

TEST_F(memlock, text_tells_limit_use_need_and_what_helps)
{
	char use_text[32], need[32];
	uint32_t handle;

	ASSERT_EQ(0, zt_register(self->ep, self->mem, 5 * self->page, &handle));
	ASSERT_EQ(-EDQUOT, register_text(self->ep, self->mem, 13 * self->page,
					 &handle, self->text));
	snprintf(use_text, sizeof(use_text), "%zu KiB", 5 * self->page / 1024);
	snprintf(need, sizeof(need), "%zu KiB", 13 * self->page / 1024);
	EXPECT_NE(NULL, strstr(self->text, self->limit)) TH_LOG("%s", self->text);
	EXPECT_NE(NULL, strstr(self->text, use_text)) TH_LOG("%s", self->text);
	EXPECT_NE(NULL, strstr(self->text, need)) TH_LOG("%s", self->text);
	EXPECT_NE(NULL, strstr(self->text, "ulimit -l")) TH_LOG("%s", self->text);
	EXPECT_NE(NULL, strstr(self->text, "LimitMEMLOCK=")) TH_LOG("%s", self->text);
}

TEST_F(memlock, buffers_add_up)
{
	uint32_t handle[4];

	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, zt_register(self->ep, self->mem + i * 5 * self->page,
					 5 * self->page, &handle[i]));
	}
	EXPECT_EQ(-EDQUOT, zt_register(self->ep, self->mem, 5 * self->page, &handle[3]));
	ASSERT_EQ(0, zt_unregister(self->ep, handle[1]));
	EXPECT_EQ(0, zt_register(self->ep, self->mem, 5 * self->page, &handle[3]));
}

/* Ranks of one process share its limit */
TEST_F(memlock, endpoints_of_a_process_add_up)
{
	uint32_t handle;
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	ASSERT_EQ(0, zt_register(ep[0], self->mem, 10 * self->page, &handle));
	EXPECT_EQ(-EDQUOT, zt_register(ep[1], self->mem, 10 * self->page, &handle));
	ASSERT_EQ(0, zt_leave(ep[0]));
	EXPECT_EQ(0, zt_register(ep[1], self->mem, 10 * self->page, &handle));
}

TEST_F(memlock, call_above_the_limit_is_edquot)
{
	size_t len = 2 * LIMIT_PAGES * self->page;
	struct zcoll_cmd cmd = zt_sum(0, (int32_t *)self->mem, len / 4);
	struct zcoll_status st;

	EXPECT_EQ(-EDQUOT, zt_allreduce(self->ep, &cmd));
	ASSERT_EQ(0, zt_status(self->ep, 0, &st, self->text));
	EXPECT_EQ(ZCOLL_STATE_REJECTED, st.state);
	EXPECT_EQ(-EDQUOT, st.result);
	EXPECT_NE(NULL, strstr(self->text, self->limit)) TH_LOG("%s", self->text);
	EXPECT_NOTHING_PINNED();
	cmd.count = self->page / 4;
	EXPECT_EQ(0, zt_allreduce(self->ep, &cmd));
}

TEST_F(memlock, calls_in_sequence_do_not_add_up)
{
	for (unsigned int seq = 0; seq < 4 * LIMIT_PAGES; seq++) {
		char *mem = self->mem + seq % 3 * 5 * self->page;
		struct zcoll_cmd cmd = zt_sum(seq, (int32_t *)mem, self->page);

		ASSERT_EQ(0, zt_allreduce(self->ep, &cmd));
	}
}

TEST_F(memlock, limit_of_0_still_joins_and_synchronises)
{
	struct rlimit none = {};
	struct zcoll_cmd cmd[2] = { zt_barrier(0), zt_barrier(0) };
	uint32_t handle;
	int ep[2];

	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &none));
	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	EXPECT_EQ(0, zt_all(ep, cmd, 2));
	EXPECT_EQ(-EDQUOT, register_text(ep[0], self->mem, 1, &handle, self->text));
	EXPECT_NE('\0', self->text[0]);
}

TEST_F(memory, cap_ipc_lock_is_above_the_limit)
{
	struct rlimit lim = { self->page, self->page };
	char *p = zt_pages(64 * self->page);
	uint32_t handle;

	if (geteuid())
		SKIP(return, "needs CAP_IPC_LOCK");
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &lim));
	EXPECT_EQ(0, zt_register(self->ep, p, 64 * self->page, &handle));
}

ZT_MAIN
