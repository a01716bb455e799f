// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Registered memory: a table from address ranges to the kernel's handles, so that
 * operations take plain pointers. An operation whose bytes lie in no one range
 * gives the kernel the address itself.
 *
 * The kernel is called with ranges_lock held, so that the table and the kernel
 * agree whenever the lock is free.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#define HUGE_PAGE	(2UL << 20)

/* -------------------------------------------------- the table, lock held */

/* Index of the first range that ends after @addr */
static size_t first_after(const struct zcoll_comm *comm, uintptr_t addr)
{
	size_t lo = 0, hi = comm->nr_ranges;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct zc_range *r = &comm->ranges[mid];

		if (addr - r->addr < r->len || addr < r->addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* The range that begins at @addr */
static struct zc_range *range_at(const struct zcoll_comm *comm, uintptr_t addr)
{
	size_t i = first_after(comm, addr);

	return i < comm->nr_ranges && comm->ranges[i].addr == addr ? &comm->ranges[i] : NULL;
}

/* Make room for one more range, so that insert() cannot fail */
static int reserve(struct zcoll_comm *comm)
{
	size_t max = comm->max_ranges ? 2 * comm->max_ranges : 16;
	struct zc_range *ranges;

	if (comm->nr_ranges < comm->max_ranges)
		return 0;
	ranges = reallocarray(comm->ranges, max, sizeof(*ranges));
	if (!ranges)
		return zc_fail(comm, -ENOMEM, "rank %u: no memory for the table of %zu ranges",
			       comm->rank, max);
	comm->ranges = ranges;
	comm->max_ranges = max;
	return 0;
}

static void insert(struct zcoll_comm *comm, size_t i, const struct zc_range *range)
{
	memmove(comm->ranges + i + 1, comm->ranges + i, (comm->nr_ranges - i) * sizeof(*range));
	comm->ranges[i] = *range;
	comm->nr_ranges++;
}

static void take_out(struct zcoll_comm *comm, struct zc_range *range)
{
	size_t after = --comm->nr_ranges - (range - comm->ranges);

	memmove(range, range + 1, after * sizeof(*range));
}

/* ------------------------------------------------------------- the kernel */

static int pin(struct zcoll_comm *comm, struct zc_range *range)
{
	char text[ZCOLL_TEXT_MAX] = "";
	struct zcoll_buf buf = {
		.size = sizeof(buf),
		.addr = range->addr,
		.len = range->len,
		.text = (uintptr_t)text,
		.text_len = sizeof(text),
	};
	int ret = zc_ioctl(comm->fd, ZCOLL_IOC_REGISTER, &buf);

	if (ret)
		/* The kernel's text begins with the rank */
		return zc_fail(comm, ret, "%s (%zu bytes at %p)",
			       text[0] ? text : strerror(-ret), range->len, (void *)range->addr);
	range->handle = buf.handle;
	return 0;
}

static int unpin(struct zcoll_comm *comm, const struct zc_range *range)
{
	struct zcoll_unbuf unbuf = { .size = sizeof(unbuf), .handle = range->handle };
	int ret = zc_ioctl(comm->fd, ZCOLL_IOC_UNREGISTER, &unbuf);

	if (ret)
		return zc_fail(comm, ret, "rank %u: cannot unregister %p: %s", comm->rank,
			       (void *)range->addr, strerror(-ret));
	return 0;
}

static int add_locked(struct zcoll_comm *comm, struct zc_range *range)
{
	size_t i = first_after(comm, range->addr);
	const struct zc_range *next = &comm->ranges[i];
	int ret;

	if (i < comm->nr_ranges && next->addr < range->addr + range->len)
		return zc_fail(comm, -EEXIST, "rank %u: %zu bytes at %p overlap the %zu bytes registered at %p",
			       comm->rank, range->len, (void *)range->addr, next->len,
			       (void *)next->addr);
	ret = reserve(comm);
	if (!ret)
		ret = pin(comm, range);
	if (!ret)
		insert(comm, i, range);
	return ret;
}

static int add(struct zcoll_comm *comm, struct zc_range *range)
{
	int ret = zc_check_owner(comm);

	if (ret)
		return ret;
	if (!range->len || range->addr + range->len < range->addr)
		return zc_fail(comm, range->len ? -EOVERFLOW : -EINVAL,
			       "rank %u: a length of %zu bytes at %p cannot be registered",
			       comm->rank, range->len, (void *)range->addr);
	pthread_rwlock_wrlock(&comm->ranges_lock);
	ret = add_locked(comm, range);
	pthread_rwlock_unlock(&comm->ranges_lock);
	return ret;
}

/*
 * Give the pages of a zcoll_alloc() back. Of the heap, the addresses stay, and a child of fork()
 * leaves its parent's pages.
 */
static void release(struct zcoll_comm *comm, const struct zc_range *range)
{
	if (!zc_mail_in_heap(comm, range->addr))
		munmap((void *)range->addr, range->map_len);
	else if (zc_is_owner(comm))
		madvise((void *)range->addr, range->map_len, MADV_REMOVE);
}

/* Take the range at @addr out; @allocated: whether it must be zcoll_alloc()'s */
static int drop_locked(struct zcoll_comm *comm, void *addr, bool allocated)
{
	struct zc_range *range = range_at(comm, (uintptr_t)addr);
	int ret;

	if (!range || !!range->map_len != allocated)
		return zc_fail(comm, -ENOENT, "rank %u: %p was not %s", comm->rank, addr,
			       allocated ? "allocated by zcoll_alloc()" :
					   "registered by zcoll_register()");
	ret = unpin(comm, range);
	if (ret)
		return ret;
	/* Before another thread can have the place */
	if (allocated)
		release(comm, range);
	take_out(comm, range);
	return 0;
}

static int drop(struct zcoll_comm *comm, void *addr, bool allocated)
{
	int ret = zc_check_owner(comm);

	if (ret)
		return ret;
	pthread_rwlock_wrlock(&comm->ranges_lock);
	ret = drop_locked(comm, addr, allocated);
	pthread_rwlock_unlock(&comm->ranges_lock);
	return ret;
}

/**
 * zc_range_find - how to name memory to the kernel
 * @comm: the communicator
 * @addr: first byte
 * @len: bytes
 * @handle: output, of the registered range they lie in, or ZCOLL_NO_BUF
 * @offset: output, into the range, or the address
 */
void zc_range_find(struct zcoll_comm *comm, const void *addr, size_t len,
		   uint32_t *handle, __u64 *offset)
{
	uintptr_t at = (uintptr_t)addr;
	const struct zc_range *r;
	size_t i;

	*handle = ZCOLL_NO_BUF;
	*offset = at;
	pthread_rwlock_rdlock(&comm->ranges_lock);
	i = first_after(comm, at);
	r = &comm->ranges[i];
	if (i < comm->nr_ranges && r->addr <= at && len <= r->len - (at - r->addr)) {
		*handle = r->handle;
		*offset = at - r->addr;
	}
	pthread_rwlock_unlock(&comm->ranges_lock);
}

/* Forget all ranges; the kernel unpins them with the endpoint */
void zc_ranges_free(struct zcoll_comm *comm)
{
	for (size_t i = 0; i < comm->nr_ranges; i++)
		if (comm->ranges[i].map_len)
			release(comm, &comm->ranges[i]);
	free(comm->ranges);
}

/* ----------------------------------------------------------- the functions */

int zcoll_register(struct zcoll_comm *comm, void *addr, size_t len)
{
	struct zc_range range = { .addr = (uintptr_t)addr, .len = len };

	return add(comm, &range);
}

int zcoll_unregister(struct zcoll_comm *comm, void *addr)
{
	return drop(comm, addr, false);
}

/* Map @len bytes, a multiple of the page size, at a multiple of @align */
static void *map_aligned(size_t len, size_t align)
{
	size_t more = len + align;
	size_t front;
	char *p;

	if (more < len) {
		errno = ENOMEM;
		return NULL;
	}
	p = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	front = -(uintptr_t)p & (align - 1);
	if (front)
		munmap(p, front);
	if (align - front)
		munmap(p + front + len, align - front);
	return p + front;
}

/* The first gap of the heap that @len bytes fit in; lock held. Return: 0: there is none. */
static uintptr_t gap_in_heap(struct zcoll_comm *comm, size_t len, size_t align)
{
	size_t heap_len;
	uintptr_t at = (uintptr_t)zc_mail_heap(comm, &heap_len), end = at + heap_len;
	const struct zc_range *r = comm->ranges + first_after(comm, at);

	if (!at)
		return 0;
	at = (at + align - 1) & -align;
	for (; r < comm->ranges + comm->nr_ranges && r->addr < end; r++) {
		if (r->addr - at >= len && r->addr >= at)
			return at;
		at = (r->addr + (r->map_len ? r->map_len : r->len) + align - 1) & -align;
	}
	return at <= end && end - at >= len ? at : 0;
}

/* From the heap. Return: 0: there is none, or it is full; or a negative errno; or 1. */
static int alloc_in_heap(struct zcoll_comm *comm, struct zc_range *range, size_t align)
{
	int ret;

	pthread_rwlock_wrlock(&comm->ranges_lock);
	range->addr = gap_in_heap(comm, range->map_len, align);
	ret = range->addr ? add_locked(comm, range) : 0;
	pthread_rwlock_unlock(&comm->ranges_lock);
	return ret ? ret : !!range->addr;
}

/* From where other ranks do not reach. Return: 0 or a negative errno. */
static int alloc_private(struct zcoll_comm *comm, struct zc_range *range, size_t align)
{
	void *p = map_aligned(range->map_len, align);
	int ret;

	if (!p)
		return zc_fail(comm, -errno, "rank %u: cannot map %zu bytes: %s", comm->rank,
			       range->map_len, strerror(errno));
	if (align == HUGE_PAGE)
		madvise(p, range->map_len, MADV_HUGEPAGE);
	range->addr = (uintptr_t)p;
	ret = add(comm, range);
	if (ret)
		munmap(p, range->map_len);
	return ret;
}

void *zcoll_alloc(struct zcoll_comm *comm, size_t len)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t align = len < HUGE_PAGE ? page : HUGE_PAGE;
	size_t map_len = (len + page - 1) & ~(page - 1);
	struct zc_range range = { .len = len, .map_len = map_len };
	int ret;

	if (!len || map_len < len) {
		errno = len ? ENOMEM : EINVAL;
		zc_fail(comm, 0, "rank %u: cannot allocate %zu bytes", comm->rank, len);
		return NULL;
	}
	ret = zc_check_owner(comm);
	if (!ret)
		ret = alloc_in_heap(comm, &range, align);
	if (!ret)
		ret = alloc_private(comm, &range, align);
	if (ret < 0) {
		errno = -ret;
		return NULL;
	}
	return (void *)range.addr;
}

int zcoll_free(struct zcoll_comm *comm, void *addr)
{
	return addr ? drop(comm, addr, true) : 0;
}
