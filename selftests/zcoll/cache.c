// SPDX-License-Identifier: GPL-2.0
/*
 * Ranges that stay pinned, when the program changes what their addresses mean between two
 * operations; cache.h says how that would show.
 *
 * Changes in the middle of an operation or a call are in cache_race.c, fork is in cache_fork.c,
 * and how much stays pinned in cache_limits.c.
 */
#include "cache.h"

/* --- hits ---------------------------------------------------------------- */

TEST_F(cache, second_call_hits)
{
	KEEP(self->mem);
	EXPECT_USED(self->mem, 5);
	EXPECT_COUNTS(1, 0, 0);
	EXPECT_EQ(PAGES, self->p.last.cache_pages);
}

/* What is kept is whole pages: bytes that no call has named yet hit, too */
TEST_F(cache, parts_of_a_kept_range_hit)
{
	size_t all_n = self->len / sizeof(int32_t);

	KEEP(self->mem);
	fill(self->mem, all_n, 7);
	EXPECT_EQ(0, add(&self->p, self->mem + 1000, self->mem + 1000, 500));
	EXPECT_TRUE(sums(&self->p, self->mem + 1000, 0, 500, 7));
	EXPECT_TRUE(all(self->mem, 1000, 7));
	EXPECT_TRUE(all(self->mem + 1500, all_n - 1500, 7));
	EXPECT_EQ(0, add(&self->p, self->mem + N, self->mem + N, all_n - N));
	EXPECT_TRUE(sums(&self->p, self->mem + N, 0, all_n - N, 7));
	EXPECT_TRUE(all(self->mem + 1500, N - 1500, 7));
	EXPECT_COUNTS(2, 0, 0);
}

TEST_F(cache, input_and_output_are_two_ranges)
{
	int32_t *from = zt_pages(self->len + self->page);

	for (int i = 1; i < 4; i++) {
		fill(from, N, i);
		EXPECT_EQ(0, add(&self->p, from, self->mem, N));
		EXPECT_TRUE(sums(&self->p, self->mem, 0, N, i));
		EXPECT_TRUE(all(from, N, i));
	}
	EXPECT_COUNTS(4, 2, 0);
}

TEST_F(cache, input_and_output_in_one_kept_range_hit)
{
	int32_t *from = self->mem, *to = self->mem + N / 2;

	KEEP(self->mem);
	fill(from, N / 2, 8);
	EXPECT_EQ(0, add(&self->p, from, to, N / 2));
	EXPECT_TRUE(sums(&self->p, to, 0, N / 2, 8));
	EXPECT_TRUE(all(from, N / 2, 8));
	EXPECT_COUNTS(2, 0, 0);
}

TEST_F(cache, larger_range_takes_the_place_of_a_smaller_one)
{
	fill(self->mem, N, 3);
	EXPECT_EQ(0, add(&self->p, self->mem + 1500, self->mem + 1500, 100));
	EXPECT_TRUE(sums(&self->p, self->mem + 1500, 0, 100, 3));
	EXPECT_USED(self->mem, 4);
	EXPECT_COUNTS(0, 2, 0);
	EXPECT_EQ(PAGES, self->p.last.cache_pages);
	fill(self->mem, N, 5);
	EXPECT_EQ(0, add(&self->p, self->mem + 1500, self->mem + 1500, 100));
	EXPECT_TRUE(sums(&self->p, self->mem + 1500, 0, 100, 5));
	EXPECT_COUNTS(1, 0, 0);
}

/* The page that two kept ranges have changes for both */
TEST_F(cache, ranges_that_overlap)
{
	size_t n = 2048;
	int32_t *second = self->mem + n / 2;

	for (int i = 1; i < 3; i++) {
		fill(self->mem, n, i);
		EXPECT_EQ(0, add(&self->p, self->mem, self->mem, n));
		EXPECT_TRUE(sums(&self->p, self->mem, 0, n, i));
		fill(second, n, 10 + i);
		EXPECT_EQ(0, add(&self->p, second, second, n));
		EXPECT_TRUE(sums(&self->p, second, 0, n, 10 + i));
	}
	EXPECT_COUNTS(2, 2, 0);
	ASSERT_EQ(0, madvise(second, self->page, MADV_DONTNEED));
	EXPECT_COUNTS(0, 0, 2);
	EXPECT_EQ(0, add(&self->p, second, second, n / 2));
	EXPECT_TRUE(sums(&self->p, second, 0, n / 2, 0));
}

/* --- what an address means changes --------------------------------------- */

TEST_F(cache, munmap_and_mmap)
{
	KEEP(self->mem);
	ASSERT_EQ(0, munmap(self->mem, self->len));
	ASSERT_EQ(self->mem, map_new_at(self->mem, self->len));
	EXPECT_RENEWED(self->mem);
}

TEST_F(cache, mmap_over_it)
{
	KEEP(self->mem);
	ASSERT_EQ(self->mem, map_new_at(self->mem, self->len));
	EXPECT_RENEWED(self->mem);
}

TEST_F(cache, munmap_is_efault)
{
	KEEP(self->mem);
	ASSERT_EQ(0, munmap(self->mem, self->len));
	EXPECT_EQ(-EFAULT, add(&self->p, self->mem, self->mem, N));
	ASSERT_EQ(self->mem, map_new_at(self->mem, self->len));
	EXPECT_CURRENT(self->mem, 0);
}

TEST_F(cache, munmap_of_one_page)
{
	char *second = (char *)self->mem + self->page;

	KEEP(self->mem);
	ASSERT_EQ(0, munmap(second, self->page));
	EXPECT_COUNTS(0, 0, 1);
	fill(self->mem, 1024, 6);
	EXPECT_EQ(0, add(&self->p, self->mem, self->mem, 1024));
	EXPECT_TRUE(sums(&self->p, self->mem, 0, 1024, 6));
	EXPECT_EQ(-EFAULT, add(&self->p, self->mem, self->mem, N));
	ASSERT_EQ(second, map_new_at(second, self->page));
	EXPECT_USED(self->mem, 7);
}

/* The old place has other memory, and the memory is at a new place */
TEST_F(cache, mremap_to_another_place)
{
	int32_t *place = zt_pages(self->len);

	KEEP(self->mem);
	ASSERT_EQ(place, mremap(self->mem, self->len, self->len,
				MREMAP_MAYMOVE | MREMAP_FIXED, place));
	EXPECT_COUNTS(0, 0, 1);
	ASSERT_EQ(self->mem, map_new_at(self->mem, self->len));
	EXPECT_TRUE(sums(&self->p, place, 0, N, 1));
	EXPECT_USED(self->mem, 9);
	fill(place, N, 4);
	EXPECT_USED(self->mem, 10);
	EXPECT_TRUE(all(place, N, 4));
	EXPECT_CURRENT(place, 4);
	EXPECT_USED(place, 5);
}

/* What was at the new place is no more */
TEST_F(cache, mremap_over_it)
{
	int32_t *place = zt_pages(self->len);

	fill(place, N, 20);
	KEEP(self->mem);
	ASSERT_EQ(self->mem, mremap(place, self->len, self->len,
				    MREMAP_MAYMOVE | MREMAP_FIXED, self->mem));
	EXPECT_COUNTS(0, 0, 1);
	EXPECT_CURRENT(self->mem, 20);
	EXPECT_USED(self->mem, 21);
}

TEST_F(cache, mremap_grown)
{
	int32_t *mem = zt_pages(2 * self->len);
	size_t n = 2 * self->len / sizeof(int32_t);

	munmap((char *)mem + self->len, self->len);
	KEEP(mem);
	if (mremap(mem, self->len, 2 * self->len, 0) == MAP_FAILED)
		SKIP(return, "something else has taken the place behind");
	EXPECT_USED(mem, 2);
	for (int i = 3; i < 5; i++) {
		fill(mem, n, i);
		EXPECT_EQ(0, add(&self->p, mem, mem, n));
		EXPECT_TRUE(sums(&self->p, mem, 0, n, i));
	}
	EXPECT_USED(mem, 5);
}

TEST_F(cache, mremap_shrunk)
{
	KEEP(self->mem);
	ASSERT_EQ(self->mem, mremap(self->mem, self->len, self->page, 0));
	EXPECT_COUNTS(0, 0, 1);
	EXPECT_EQ(-EFAULT, add(&self->p, self->mem, self->mem, N));
	ASSERT_EQ(self->mem, mremap(self->mem, self->page, self->len, 0));
	EXPECT_USED(self->mem, 3);
}

TEST_F(cache, madvise_dontneed)
{
	KEEP(self->mem);
	ASSERT_EQ(0, madvise(self->mem, self->len, MADV_DONTNEED));
	EXPECT_RENEWED(self->mem);
}

TEST_F(cache, madvise_dontneed_of_one_page)
{
	KEEP(self->mem);
	fill(self->mem, N, 4);
	ASSERT_EQ(0, madvise((char *)self->mem + self->page, self->page, MADV_DONTNEED));
	EXPECT_EQ(0, add(&self->p, self->mem, self->mem, N));
	EXPECT_TRUE(sums(&self->p, self->mem, 0, 1024, 4));
	EXPECT_TRUE(sums(&self->p, self->mem, 1024, 2048, 0));
	EXPECT_TRUE(sums(&self->p, self->mem, 2048, N, 4));
}

/* Pages that were free to go are written again before the next call, or by it */
TEST_F(cache, madvise_free)
{
	KEEP(self->mem);
	ASSERT_EQ(0, madvise(self->mem, self->len, MADV_FREE));
	EXPECT_USED(self->mem, 6);
	ASSERT_EQ(0, madvise(self->mem, self->len, MADV_FREE));
	EXPECT_EQ(0, add(&self->p, self->mem, self->mem, N));
	EXPECT_USED(self->mem, 7);
}

TEST_F(cache, madvise_pageout)
{
	KEEP(self->mem);
	fill(self->mem, N, 8);
	ASSERT_EQ(0, madvise(self->mem, self->len, MADV_PAGEOUT));
	EXPECT_CURRENT(self->mem, 8);
	EXPECT_USED(self->mem, 9);
}

static const int less[] = { PROT_READ, PROT_NONE };

TEST_F(cache, mprotect_is_efault_until_it_is_taken_back)
{
	KEEP(self->mem);
	for (int i = 0; i < 2; i++) {
		fill(self->mem, N, 20 + i);
		ASSERT_EQ(0, mprotect(self->mem, self->len, less[i]));
		EXPECT_COUNTS(0, 0, 1);
		EXPECT_EQ(-EFAULT, add(&self->p, self->mem, self->mem, N));
		ASSERT_EQ(0, mprotect(self->mem, self->len, PROT_READ | PROT_WRITE));
		EXPECT_CURRENT(self->mem, 20 + i);
		EXPECT_COUNTS(0, 1, 0);
	}
}

/* The zero page is mapped where memory was only read, and is replaced when it is pinned */
TEST_F(cache, memory_that_was_only_read)
{
	EXPECT_TRUE(all(self->mem, N, 0));
	EXPECT_CURRENT(self->mem, 0);
	EXPECT_USED(self->mem, 2);
	EXPECT_USED(self->mem, 3);
	ASSERT_EQ(0, zt_stats(self->p.ep[0], &self->p.last));
	EXPECT_USED(self->mem, 4);
	EXPECT_COUNTS(1, 0, 0);
}

/* --- memory of files ----------------------------------------------------- */

TEST_F(cache, memfd_truncated)
{
	int fd = memfd(self->len);

	ASSERT_EQ(self->mem, map_at(self->mem, self->len, MAP_SHARED, fd));
	KEEP(self->mem);
	ASSERT_EQ(0, ftruncate(fd, 0));
	EXPECT_COUNTS(0, 0, 1);
	EXPECT_EQ(-EFAULT, add(&self->p, self->mem, self->mem, N));
	ASSERT_EQ(0, ftruncate(fd, self->len));
	EXPECT_CURRENT(self->mem, 0);
	EXPECT_USED(self->mem, 3);
	close(fd);
}

TEST_F(cache, memfd_with_a_hole_punched)
{
	int fd = memfd(self->len);

	ASSERT_EQ(self->mem, map_at(self->mem, self->len, MAP_SHARED, fd));
	KEEP(self->mem);
	ASSERT_EQ(0, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, self->len));
	EXPECT_RENEWED(self->mem);
	close(fd);
}

/* Whoever else has the file sees what the process sees */
TEST_F(cache, memfd_read_and_written)
{
	int fd = memfd(self->len);
	int32_t numbers[N];

	ASSERT_EQ(self->mem, map_at(self->mem, self->len, MAP_SHARED, fd));
	KEEP(self->mem);
	for (int i = 2; i < 4; i++) {
		fill(numbers, N, i);
		ASSERT_EQ(sizeof(numbers), pwrite(fd, numbers, sizeof(numbers), 0));
		EXPECT_CURRENT(self->mem, i);
		ASSERT_EQ(sizeof(numbers), pread(fd, numbers, sizeof(numbers), 0));
		EXPECT_TRUE(sums(&self->p, numbers, 0, N, i));
	}
	EXPECT_COUNTS(2, 0, 0);
	close(fd);
}

/* Sums go to a copy of the page, not to the file */
TEST_F(cache, private_mapping_of_a_file)
{
	int fd = memfd(self->len);
	int32_t numbers[N];

	fill(numbers, N, 5);
	ASSERT_EQ(sizeof(numbers), pwrite(fd, numbers, sizeof(numbers), 0));
	ASSERT_EQ(self->mem, map_at(self->mem, self->len, MAP_PRIVATE, fd));
	EXPECT_TRUE(all(self->mem, N, 5));
	EXPECT_CURRENT(self->mem, 5);
	EXPECT_USED(self->mem, 6);
	ASSERT_EQ(sizeof(numbers), pread(fd, numbers, sizeof(numbers), 0));
	EXPECT_TRUE(all(numbers, N, 5));
	/* the file's page again */
	ASSERT_EQ(0, madvise(self->mem, self->len, MADV_DONTNEED));
	EXPECT_CURRENT(self->mem, 5);
	EXPECT_USED(self->mem, 7);
	close(fd);
}

/* --- huge pages ---------------------------------------------------------- */

#define HUGE		(2UL << 20)
#define COLLAPSE	25	/* MADV_COLLAPSE, which not every C library has */

/* A range of one huge page's size, in small pages */
static char *small_pages(void)
{
	char *mem = zt_pages(2 * HUGE);

	mem = (char *)(((uintptr_t)mem + HUGE - 1) & ~(HUGE - 1));
	if (madvise(mem, HUGE, MADV_NOHUGEPAGE))
		return NULL;
	memset(mem, 0, HUGE);
	return madvise(mem, HUGE, MADV_HUGEPAGE) ? NULL : mem;
}

/* Pages that are pinned stay where they are; those that were may go */
TEST_F(cache, pages_that_collapse_into_a_huge_one)
{
	char *huge = small_pages();
	int32_t *mem;

	if (!huge)
		SKIP(return, "this kernel has no transparent huge pages");
	mem = (int32_t *)(huge + 5 * self->page);
	KEEP(mem);
	fill(mem, N, 2);
	if (madvise(huge, HUGE, COLLAPSE) && errno == EINVAL)
		SKIP(return, "this kernel does not collapse pages when told to");
	EXPECT_CURRENT(mem, 2);
	EXPECT_USED(mem, 3);
	/* give the pins back */
	ASSERT_EQ(0, mprotect(huge, HUGE, PROT_READ));
	ASSERT_EQ(0, mprotect(huge, HUGE, PROT_READ | PROT_WRITE));
	if (!zt_until(ZT_SOON_MS, !madvise(huge, HUGE, COLLAPSE)))
		SKIP(return, "no huge page is free: %s", strerror(errno));
	EXPECT_USED(mem, 4);
	EXPECT_USED(mem, 5);
}

TEST_F(cache, huge_page_that_is_split)
{
	char *huge = small_pages();
	int32_t *mem;

	if (!huge)
		SKIP(return, "this kernel has no transparent huge pages");
	ASSERT_EQ(0, madvise(huge, HUGE, MADV_DONTNEED));
	mem = (int32_t *)(huge + 5 * self->page);
	EXPECT_USED(mem, 1);
	fill(mem, N, 2);
	ASSERT_EQ(0, madvise(huge + HUGE / 2, self->page, MADV_DONTNEED));
	EXPECT_CURRENT(mem, 2);
	ASSERT_EQ(0, madvise(mem, self->page, MADV_DONTNEED));
	EXPECT_EQ(0, add(&self->p, mem, mem, N));
	EXPECT_TRUE(sums(&self->p, mem, 0, 1024, 0));
	EXPECT_USED(mem, 3);
}

/* What the kernel has made of the range for one call serves others, wherever they begin */
TEST_F(cache, huge_pages_at_any_alignment)
{
	size_t n = 2 * HUGE / sizeof(int32_t);
	char *border, *huge = zt_pages(3 * HUGE);
	int32_t *mem;

	border = (char *)(((uintptr_t)huge + 2 * HUGE - 1) & ~(HUGE - 1));
	madvise(huge, 3 * HUGE, MADV_HUGEPAGE);
	mem = (int32_t *)(border - HUGE);
	fill(mem, n, 1);
	ASSERT_EQ(0, pair_room(&self->p, n));
	EXPECT_EQ(0, add(&self->p, mem, mem, n));
	EXPECT_TRUE(sums(&self->p, mem, 0, n, 1));
	EXPECT_COUNTS(0, 1, 0);
	for (int shift = 0; shift < 5; shift++) {
		mem = (int32_t *)(border - self->page + shift);
		EXPECT_USED(mem, 10 + shift);
	}
	EXPECT_COUNTS(5, 0, 0);
}

TEST_F(cache, hugetlb_page)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
	int32_t *mem;

	if (zt_huge_pages(4))
		SKIP(return, "cannot set aside huge pages");
	mem = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (mem == MAP_FAILED) {
		zt_huge_pages(0);
		SKIP(return, "no huge page is free");
	}
	KEEP(mem);
	ASSERT_EQ(0, munmap(mem, HUGE));
	ASSERT_EQ(mem, map_at(mem, HUGE, flags, -1));
	EXPECT_RENEWED(mem);
	munmap(mem, HUGE);
	zt_huge_pages(0);
}

ZT_MAIN
