// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranges that are kept pinned between calls.
 *
 * A call names memory by its address, and programs that register nothing name the same memory
 * again and again. So a range that was pinned for a call is *kept*, in whole pages, with the
 * buffer (buf.c) that the next call whose range lies in it uses, too: a *hit*. A *miss* pins.
 *
 * What an address means changes by munmap, mremap, madvise, fork and copy on write, the collapse
 * into huge pages, and more. An interval notifier tells of each before it happens, and the range
 * is kept no longer: a call that begins after that is a miss, and an operation in flight has a
 * reference to the buffer, as it would to a registered one. A range that changes while it is being
 * pinned is not kept at all: it serves the call only, which came before the change.
 *
 * What is kept counts as locked memory. So each endpoint keeps a limited amount, what was used
 * last, and no more than half of what RLIMIT_MEMLOCK allows the process; and before anything is
 * refused for that limit, all that is idle in the process's caches goes.
 *
 * Lifetimes and locking. A kept range is in the tree and the list of its cache. Whoever takes it
 * out, under zc_cache.lock, puts it on the list of those to be freed, which a work item does: a
 * notifier may not be removed in its own call. Notifiers are called under locks of the memory
 * management: zc_cache.lock is the last of all, and nothing is allocated under it.
 * zc_caches_lock -> zc_cache.lock.
 */
#include <linux/interval_tree.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "zcoll.h"

static uint cache_mib = 1024;
module_param(cache_mib, uint, 0644);
MODULE_PARM_DESC(cache_mib, "MiB of memory that was not registered, which each rank keeps pinned between calls, at most; 0: none");

/* Ranges that an endpoint keeps, at most */
#define ZC_CACHE_RANGES 256

/**
 * struct zc_kept - a range that is kept pinned
 * @notifier: tells of changes
 * @cache: whose it is
 * @buf: the buffer, of whole pages; the cache has a reference
 * @node: in zc_cache.tree, user addresses
 * @link: in zc_cache.kept, or in .stale
 * @found: in the tree; under zc_cache.lock
 */
struct zc_kept {
	struct mmu_interval_notifier notifier;
	struct zc_cache *cache;
	struct zc_buf *buf;
	struct interval_tree_node node;
	struct list_head link;
	bool found;
};

/* Frees what is kept no longer. Works of other queues wait for it. */
static struct workqueue_struct *zc_cache_wq;

static DEFINE_MUTEX(zc_caches_lock);
static LIST_HEAD(zc_caches);
/* Counters of those that have ended */
static struct zc_cache_counts zc_cache_past;

static bool zc_kept_idle(const struct zc_kept *kept)
{
	return kref_read(&kept->buf->ref) == 1;
}

/* No call finds it any more. Under zc_cache.lock; the caller has zc_cache.work queued. */
static void zc_kept_take_out(struct zc_kept *kept)
{
	struct zc_cache *cache = kept->cache;

	lockdep_assert_held(&cache->lock);
	interval_tree_remove(&kept->node, &cache->tree);
	kept->found = false;
	list_move(&kept->link, &cache->stale);
	cache->nkept--;
	cache->counts.pages -= kept->buf->npages;
}

static bool zc_kept_changes(struct mmu_interval_notifier *notifier,
			    const struct mmu_notifier_range *range, unsigned long seq)
{
	struct zc_kept *kept = container_of(notifier, struct zc_kept, notifier);
	struct zc_cache *cache = kept->cache;

	spin_lock(&cache->lock);
	mmu_interval_set_seq(notifier, seq);
	if (kept->found) {
		zc_kept_take_out(kept);
		cache->counts.dropped++;
		queue_work(zc_cache_wq, &cache->work);
	}
	spin_unlock(&cache->lock);
	return true;
}

static const struct mmu_interval_notifier_ops zc_kept_ops = {
	.invalidate = zc_kept_changes,
};

static void zc_cache_free_stale(struct work_struct *work)
{
	struct zc_cache *cache = container_of(work, struct zc_cache, work);
	struct zc_kept *kept, *next;
	LIST_HEAD(stale);

	spin_lock(&cache->lock);
	list_splice_init(&cache->stale, &stale);
	spin_unlock(&cache->lock);
	list_for_each_entry_safe(kept, next, &stale, link) {
		mmu_interval_notifier_remove(&kept->notifier);
		zc_buf_put(kept->buf);
		kfree(kept);
	}
}

/* Likewise of all, or all that are idle. Under zc_cache.lock. */
static void zc_cache_take_out(struct zc_cache *cache, bool idle)
{
	struct zc_kept *kept, *next;

	list_for_each_entry_safe(kept, next, &cache->kept, link)
		if (!idle || zc_kept_idle(kept))
			zc_kept_take_out(kept);
}

/* A reference to the buffer that has the range, or NULL */
static struct zc_buf *zc_cache_find(struct zc_cache *cache, u64 first, u64 last)
{
	struct interval_tree_node *node;
	struct zc_buf *buf = NULL;
	struct zc_kept *kept;

	spin_lock(&cache->lock);
	for (node = interval_tree_iter_first(&cache->tree, first, last); node;
	     node = interval_tree_iter_next(node, first, last)) {
		if (node->start > first || node->last < last)
			continue;
		kept = container_of(node, struct zc_kept, node);
		list_move(&kept->link, &cache->kept);
		buf = kept->buf;
		kref_get(&buf->ref);
		cache->counts.hits++;
		break;
	}
	spin_unlock(&cache->lock);
	return buf;
}

/* Pages by which the process has more locked than caches may let it have */
static s64 zc_cache_excess(const struct zc_buf *buf)
{
	u64 limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	return buf->charged ? atomic64_read(&buf->mm->pinned_vm) - (s64)(limit / 2) : 0;
}

/* Keep no more than may be kept, what was used last; under zc_cache.lock */
static void zc_cache_trim(struct zc_cache *cache, s64 excess)
{
	u64 pages = (u64)READ_ONCE(cache_mib) << (20 - PAGE_SHIFT);

	while (cache->nkept > ZC_CACHE_RANGES || cache->counts.pages > pages ||
	       (excess > 0 && cache->nkept)) {
		struct zc_kept *oldest = list_last_entry(&cache->kept, struct zc_kept, link);

		excess -= oldest->buf->npages;
		zc_kept_take_out(oldest);
	}
}

/* Those that lie in a range that is going to be kept; under zc_cache.lock */
static void zc_cache_take_out_covered(struct zc_cache *cache, u64 first, u64 last)
{
	struct interval_tree_node *node, *next;

	for (node = interval_tree_iter_first(&cache->tree, first, last); node; node = next) {
		next = interval_tree_iter_next(node, first, last);
		if (node->start >= first && node->last <= last)
			zc_kept_take_out(container_of(node, struct zc_kept, node));
	}
}

/* From here on calls find it; under zc_cache.lock. It has a reference to the buffer. */
static void zc_cache_insert(struct zc_cache *cache, struct zc_kept *kept)
{
	struct zc_buf *buf = kept->buf;

	zc_cache_take_out_covered(cache, kept->node.start, kept->node.last);
	interval_tree_insert(&kept->node, &cache->tree);
	list_add(&kept->link, &cache->kept);
	kept->found = true;
	cache->nkept++;
	cache->counts.pages += buf->npages;
	zc_cache_trim(cache, zc_cache_excess(buf));
	if (!list_empty(&cache->stale))
		queue_work(zc_cache_wq, &cache->work);
}

/* Whole pages: what is pinned anyway */
static void zc_buf_widen(struct zc_buf *buf)
{
	buf->addr &= PAGE_MASK;
	buf->len = (u64)buf->npages << PAGE_SHIFT;
}

/* Keep a buffer, if its range has not changed since @seq. Return: it is kept. */
static bool zc_cache_keep(struct zc_cache *cache, struct zc_kept *kept, struct zc_buf *buf,
			  unsigned long seq)
{
	bool keep;

	zc_buf_widen(buf);
	kept->buf = buf;
	kept->node.start = buf->addr;
	kept->node.last = buf->addr + buf->len - 1;
	spin_lock(&cache->lock);
	keep = !cache->closed && !mmu_interval_read_retry(&kept->notifier, seq);
	if (keep) {
		kref_get(&buf->ref);
		zc_cache_insert(cache, kept);
	}
	spin_unlock(&cache->lock);
	return keep;
}

/* Pin a range, and keep it if it does not change meanwhile */
static struct zc_buf *zc_cache_fill(struct zc_rank *rank, u64 addr, u64 len,
				    struct zc_text *why)
{
	struct zc_cache *cache = &rank->cache;
	u64 first = addr & PAGE_MASK, bytes = PAGE_ALIGN(addr + len) - first;
	struct zc_kept *kept;
	unsigned long seq;
	struct zc_buf *buf;

	kept = kzalloc(sizeof(*kept), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!kept)
		return zc_buf_pin(addr, len, rank->comm->net, why);
	kept->cache = cache;
	if (mmu_interval_notifier_insert(&kept->notifier, rank->mm, first, bytes, &zc_kept_ops)) {
		kfree(kept);
		return zc_buf_pin(addr, len, rank->comm->net, why);
	}
	seq = mmu_interval_read_begin(&kept->notifier);
	buf = zc_buf_pin(addr, len, rank->comm->net, why);
	if (!IS_ERR(buf) && zc_cache_keep(cache, kept, buf, seq))
		return buf;
	mmu_interval_notifier_remove(&kept->notifier);
	kfree(kept);
	return buf;
}

/**
 * zc_cache_pin - a buffer for a range that is not registered
 * @rank: endpoint of the current process
 * @addr: first byte
 * @len: bytes, not 0
 * @why: gets the text of a failure
 *
 * Context: process context of the owner, may sleep.
 * Return: a buffer that has the range, with a reference for the caller, or an ERR_PTR as
 * zc_buf_pin().
 */
struct zc_buf *zc_cache_pin(struct zc_rank *rank, u64 addr, u64 len, struct zc_text *why)
{
	struct zc_cache *cache = &rank->cache;
	struct zc_buf *buf;
	ktime_t begin;
	u64 last;

	/* What cannot be is refused with a text there */
	if (check_add_overflow(addr, len - 1, &last) || last >= TASK_SIZE_MAX)
		return zc_buf_pin(addr, len, rank->comm->net, why);
	buf = zc_cache_find(cache, addr, last);
	if (buf)
		return buf;
	begin = ktime_get();
	if (READ_ONCE(cache_mib))
		buf = zc_cache_fill(rank, addr, len, why);
	else
		buf = zc_buf_pin(addr, len, rank->comm->net, why);
	spin_lock(&cache->lock);
	cache->counts.misses++;
	cache->counts.pin_ns += ktime_to_ns(ktime_sub(ktime_get(), begin));
	spin_unlock(&cache->lock);
	return buf;
}

/**
 * zc_caches_shrink - give back what is kept and idle of a process
 * @mm: its address space
 *
 * Context: may sleep, until it has been given back.
 * Return: whether there was any.
 */
bool zc_caches_shrink(const struct mm_struct *mm)
{
	struct zc_cache *cache;
	bool any = false;

	mutex_lock(&zc_caches_lock);
	list_for_each_entry(cache, &zc_caches, link) {
		if (cache->mm != mm)
			continue;
		spin_lock(&cache->lock);
		zc_cache_take_out(cache, true);
		any |= !list_empty(&cache->stale);
		spin_unlock(&cache->lock);
		/* Some may be on their way already */
		queue_work(zc_cache_wq, &cache->work);
		flush_work(&cache->work);
	}
	mutex_unlock(&zc_caches_lock);
	return any;
}

/* Counters of an endpoint's cache */
void zc_cache_count(struct zc_cache *cache, struct zc_cache_counts *counts)
{
	spin_lock(&cache->lock);
	*counts = cache->counts;
	spin_unlock(&cache->lock);
}

static void zc_counts_add(struct zc_cache_counts *sum, const struct zc_cache_counts *counts)
{
	sum->hits += counts->hits;
	sum->misses += counts->misses;
	sum->dropped += counts->dropped;
	sum->pin_ns += counts->pin_ns;
	sum->pages += counts->pages;
}

/* Those of all endpoints there are and were */
void zc_caches_count(struct zc_cache_counts *sum)
{
	struct zc_cache_counts counts;
	struct zc_cache *cache;

	mutex_lock(&zc_caches_lock);
	*sum = zc_cache_past;
	list_for_each_entry(cache, &zc_caches, link) {
		zc_cache_count(cache, &counts);
		zc_counts_add(sum, &counts);
	}
	mutex_unlock(&zc_caches_lock);
}

void zc_cache_init(struct zc_cache *cache, struct mm_struct *mm)
{
	spin_lock_init(&cache->lock);
	cache->mm = mm;
	cache->tree = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&cache->kept);
	INIT_LIST_HEAD(&cache->stale);
	INIT_WORK(&cache->work, zc_cache_free_stale);
	mutex_lock(&zc_caches_lock);
	list_add(&cache->link, &zc_caches);
	mutex_unlock(&zc_caches_lock);
}

/**
 * zc_cache_close - keep nothing, from now on
 * @cache: the cache
 *
 * Context: may sleep, until what was kept has been given back; what operations in flight use is
 * theirs.
 */
void zc_cache_close(struct zc_cache *cache)
{
	spin_lock(&cache->lock);
	cache->closed = true;
	zc_cache_take_out(cache, false);
	spin_unlock(&cache->lock);
	queue_work(zc_cache_wq, &cache->work);
	flush_work(&cache->work);
}

/* The endpoint ends, and the cache is closed */
void zc_cache_destroy(struct zc_cache *cache)
{
	mutex_lock(&zc_caches_lock);
	list_del(&cache->link);
	zc_counts_add(&zc_cache_past, &cache->counts);
	mutex_unlock(&zc_caches_lock);
}

int __init zc_caches_init(void)
{
	zc_cache_wq = alloc_workqueue("zcoll_cache", WQ_UNBOUND, 0);
	return zc_cache_wq ? 0 : -ENOMEM;
}

void zc_caches_uninit(void)
{
	destroy_workqueue(zc_cache_wq);
}
