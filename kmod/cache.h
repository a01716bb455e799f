/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Caches: memory that stays pinned between calls: cache.c.
 */
#ifndef ZCOLL_CACHE_H
#define ZCOLL_CACHE_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct mm_struct;
struct zc_buf;
struct zc_rank;
struct zc_text;

/**
 * struct zc_cache_counts - what a cache has done
 * @hits: ranges that were kept
 * @misses: ranges that had to be pinned for a call
 * @dropped: ranges that are kept no longer because they have changed
 * @pin_ns: time that pinning took, ns
 * @pages: pages kept now
 */
struct zc_cache_counts {
	u64 hits;
	u64 misses;
	u64 dropped;
	u64 pin_ns;
	u64 pages;
};

/**
 * struct zc_cache - what an endpoint keeps
 * @lock: spinlock, the last of all
 * @mm: the address space
 * @tree: by user address
 * @kept: what was used last first
 * @nkept: their number
 * @stale: taken out, to be freed
 * @stale_pages: pages of these, until they are given back
 * @work: frees these
 * @closed: nothing is kept any more
 * @counts: counters
 * @link: in the list of all caches
 */
struct zc_cache {
	spinlock_t lock; /* all but @mm and @link */
	struct mm_struct *mm;
	struct rb_root_cached tree;
	struct list_head kept;
	u32 nkept;
	struct list_head stale;
	u64 stale_pages;
	struct work_struct work;
	bool closed;
	struct zc_cache_counts counts;
	struct list_head link;
};

struct zc_buf *zc_cache_pin(struct zc_rank *rank, u64 addr, u64 len, bool exact,
			    struct zc_text *why);
bool zc_caches_shrink(const struct mm_struct *mm);
void zc_cache_count(struct zc_cache *cache, struct zc_cache_counts *counts);
void zc_caches_count(struct zc_cache_counts *sum);
void zc_cache_init(struct zc_cache *cache, struct mm_struct *mm);
void zc_cache_close(struct zc_cache *cache);
void zc_cache_destroy(struct zc_cache *cache);
int zc_caches_init(void);
void zc_caches_uninit(void);

#endif /* ZCOLL_CACHE_H */
