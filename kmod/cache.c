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
 * On a machine with several NUMA nodes its balancing announces changes, too, of memory without a
 * policy, whether it moves anything or not: such ranges have a miss now and then.
 *
 * What is kept counts as locked memory. So each endpoint keeps a limited amount, what was used
 * last, and no more than half of what RLIMIT_MEMLOCK allows the process. Before anything is
 * refused for that limit, all that is idle in the process's caches goes; and what has been idle
 * for a while goes when the machine's memory is short (not a cgroup's).
 *
 * A miss, and the end of an endpoint, wait while the process itself changes ranges that are kept
 * or being pinned (mmu_interval_read_begin(), mmu_interval_notifier_remove()).
 *
 * With several nodes nothing is kept: the keys that other nodes have of memory that was not
 * registered must be worthless when the operation has ended.
 *
 * Lifetimes and locking. A kept range is in the tree and the list of its cache. Whoever takes it
 * out, under zc_cache.lock, puts it on the list of those to be freed, which a work item does: a
 * notifier may not be removed in its own call. What a call could not keep is freed likewise.
 * Notifiers are called under locks of the memory management: zc_cache.lock is the last of all,
 * and nothing is allocated under it. zc_caches_lock -> zc_cache.lock, and nobody waits for
 * anything under the former.
 */
#include <linux/interval_tree.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "zcoll.h"

/* Ranges that an endpoint keeps, at most */
#define ZC_CACHE_RANGES 8192
/* Taken out at a time: how long a lock is held */
#define ZC_CACHE_BATCH 256

/**
 * struct zc_kept - a range that is kept pinned
 * @notifier: tells of changes
 * @cache: whose it is
 * @buf: the buffer, of whole pages; the cache has a reference. NULL: not to be kept
 * @node: in zc_cache.tree, user addresses
 * @link: in zc_cache.kept, or in .stale
 * @found: in the tree; under zc_cache.lock
 * @used: since memory was short the last time; likewise
 */
struct zc_kept {
	struct mmu_interval_notifier notifier;
	struct zc_cache *cache;
	struct zc_buf *buf;
	struct interval_tree_node node;
	struct list_head link;
	bool found;
	bool used;
};

static struct shrinker *zc_cache_shrinker;
/* Frees what is kept no longer, also for reclaim. Works of other queues wait for it. */
static struct workqueue_struct *zc_cache_wq;

static uint cache_mib = 1024;

/* Who waits until something has been given back */
static DECLARE_WAIT_QUEUE_HEAD(zc_cache_waitq);
static atomic_t zc_cache_frees = ATOMIC_INIT(0);

static DEFINE_MUTEX(zc_caches_lock);
static LIST_HEAD(zc_caches);
/* Counters of those that have ended */
static struct zc_cache_counts zc_cache_past;

/* Pages that an endpoint keeps, at most */
static u64 zc_cache_limit(void)
{
	return (u64)READ_ONCE(cache_mib) << (20 - PAGE_SHIFT);
}

static bool zc_kept_idle(const struct zc_kept *kept)
{
	return kref_read(&kept->buf->ref) == 1;
}

/* To be freed; under zc_cache.lock */
static void zc_kept_throw(struct zc_kept *kept)
{
	struct zc_cache *cache = kept->cache;

	if (list_empty(&cache->stale))
		queue_work(zc_cache_wq, &cache->work);
	list_move(&kept->link, &cache->stale);
}

/* No call finds it any more; under zc_cache.lock */
static void zc_kept_take_out(struct zc_kept *kept)
{
	struct zc_cache *cache = kept->cache;

	lockdep_assert_held(&cache->lock);
	interval_tree_remove(&kept->node, &cache->tree);
	kept->found = false;
	zc_kept_throw(kept);
	cache->nkept--;
	cache->counts.pages -= kept->buf->npages;
	cache->stale_pages += kept->buf->npages;
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
		cache->counts.dropped += range->event != MMU_NOTIFY_RELEASE;
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
	u64 pages = 0;

	spin_lock(&cache->lock);
	list_splice_init(&cache->stale, &stale);
	spin_unlock(&cache->lock);
	/* Notifiers wait for changes that go on, such as fork, which copies what is pinned */
	list_for_each_entry(kept, &stale, link) {
		if (!kept->buf)
			continue;
		pages += kept->buf->npages;
		zc_buf_put(kept->buf);
		cond_resched();
	}
	spin_lock(&cache->lock);
	cache->stale_pages -= pages;
	spin_unlock(&cache->lock);
	/* Pairs with zc_caches_shrink(): who sees the count sees what has been given back */
	atomic_fetch_inc_release(&zc_cache_frees);
	wake_up_all(&zc_cache_waitq);
	list_for_each_entry_safe(kept, next, &stale, link) {
		mmu_interval_notifier_remove(&kept->notifier);
		kfree(kept);
	}
}

/*
 * Take out what is idle, the oldest first, until so many pages are. @spares: but not what has been
 * used since it was asked the last time. Return: pages.
 */
static u64 zc_cache_take_idle(struct zc_cache *cache, u64 pages, bool spares)
{
	struct zc_kept *kept, *next;
	u32 n = 0;
	u64 taken = 0;

	spin_lock(&cache->lock);
	list_for_each_entry_safe_reverse(kept, next, &cache->kept, link) {
		if (taken >= pages || ++n > ZC_CACHE_RANGES)
			break;
		if (!zc_kept_idle(kept))
			continue;
		if (spares && kept->used) {
			kept->used = false;
			continue;
		}
		taken += kept->buf->npages;
		zc_kept_take_out(kept);
	}
	spin_unlock(&cache->lock);
	return taken;
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
		kept->used = true;
		buf = kept->buf;
		kref_get(&buf->ref);
		cache->counts.hits++;
		break;
	}
	spin_unlock(&cache->lock);
	return buf;
}

/* Pages by which the process has more locked than caches may let it have; under zc_cache.lock */
static s64 zc_cache_excess(const struct zc_cache *cache, const struct zc_buf *buf)
{
	u64 limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	if (!buf->charged)
		return 0;
	return (s64)(atomic64_read(&buf->mm->pinned_vm) - cache->stale_pages - limit / 2);
}

/* Take the oldest out until no more is kept than may be; under zc_cache.lock */
static void zc_cache_trim(struct zc_cache *cache, s64 excess)
{
	while (cache->nkept > ZC_CACHE_RANGES || cache->counts.pages > zc_cache_limit() ||
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

/* From here on calls find it; under zc_cache.lock. Return: false: there is no room for it. */
static bool zc_cache_insert(struct zc_cache *cache, struct zc_kept *kept)
{
	s64 excess = zc_cache_excess(cache, kept->buf);

	if (kept->buf->npages > zc_cache_limit() || excess > (s64)cache->counts.pages)
		return false;
	zc_cache_take_out_covered(cache, kept->node.start, kept->node.last);
	interval_tree_insert(&kept->node, &cache->tree);
	list_add(&kept->link, &cache->kept);
	kept->found = true;
	kept->used = true;
	cache->nkept++;
	cache->counts.pages += kept->buf->npages;
	zc_cache_trim(cache, zc_cache_excess(cache, kept->buf));
	return true;
}

/* Whole pages: what is pinned anyway */
static void zc_buf_widen(struct zc_buf *buf)
{
	buf->addr &= PAGE_MASK;
	buf->len = (u64)buf->npages << PAGE_SHIFT;
}

/* Keep a buffer, if its range has not changed since @seq. Return: it is kept. */
static bool zc_cache_keep(struct zc_rank *rank, struct zc_kept *kept, struct zc_buf *buf,
			  unsigned long seq)
{
	struct zc_cache *cache = &rank->cache;
	bool keep;

	zc_buf_widen(buf);
	kept->buf = buf;
	kept->node.start = buf->addr;
	kept->node.last = buf->addr + buf->len - 1;
	spin_lock(&cache->lock);
	/* The cache's reference; the caller has its own */
	kref_get(&buf->ref);
	keep = !cache->closed && !mmu_interval_read_retry(&kept->notifier, seq) &&
	       zc_cache_insert(cache, kept);
	spin_unlock(&cache->lock);
	if (keep)
		return true;
	kept->buf = NULL;
	zc_buf_put(buf);
	return false;
}

/* Pin a range, and keep it if it does not change meanwhile */
static struct zc_buf *zc_cache_fill(struct zc_rank *rank, u64 addr, u64 len,
				    struct zc_text *why)
{
	u64 first = addr & PAGE_MASK, bytes = PAGE_ALIGN(addr + len) - first;
	struct zc_cache *cache = &rank->cache;
	struct zc_kept *kept;
	unsigned long seq;
	struct zc_buf *buf;

	kept = kzalloc(sizeof(*kept), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!kept)
		return zc_buf_pin(addr, len, rank->comm, why);
	kept->cache = cache;
	INIT_LIST_HEAD(&kept->link);
	if (mmu_interval_notifier_insert(&kept->notifier, rank->mm, first, bytes, &zc_kept_ops)) {
		kfree(kept);
		return zc_buf_pin(addr, len, rank->comm, why);
	}
	seq = mmu_interval_read_begin(&kept->notifier);
	buf = zc_buf_pin(addr, len, rank->comm, why);
	if (!IS_ERR(buf) && zc_cache_keep(rank, kept, buf, seq))
		return buf;
	/* Not here, where it might have to wait for changes that go on */
	spin_lock(&cache->lock);
	zc_kept_throw(kept);
	spin_unlock(&cache->lock);
	return buf;
}

/**
 * zc_cache_pin - a buffer for a range that is not registered
 * @rank: endpoint of the current process
 * @addr: first byte
 * @len: bytes, not 0
 * @exact: a buffer of its own, which holds no other pages
 * @why: gets the text of a failure
 *
 * Context: process context of the owner, may sleep.
 * Return: a buffer that has the range, with a reference for the caller, or an ERR_PTR as
 * zc_buf_pin().
 */
struct zc_buf *zc_cache_pin(struct zc_rank *rank, u64 addr, u64 len, bool exact,
			    struct zc_text *why)
{
	struct zc_cache *cache = &rank->cache;
	struct zc_buf *buf;
	ktime_t begin;
	u64 last;

	exact |= rank->comm->net || !READ_ONCE(cache_mib);
	/* What cannot be is refused with a text there */
	if (check_add_overflow(addr, len - 1, &last) || last >= TASK_SIZE_MAX)
		return zc_buf_pin(addr, len, rank->comm, why);
	buf = exact ? NULL : zc_cache_find(cache, addr, last);
	if (buf)
		return buf;
	begin = ktime_get();
	buf = exact ? zc_buf_pin(addr, len, rank->comm, why) :
		      zc_cache_fill(rank, addr, len, why);
	if (IS_ERR(buf))
		return buf;
	spin_lock(&cache->lock);
	cache->counts.misses++;
	cache->counts.pin_ns += ktime_to_ns(ktime_sub(ktime_get(), begin));
	spin_unlock(&cache->lock);
	return buf;
}

/* Pages of a process that are on their way back */
static u64 zc_caches_stale(const struct mm_struct *mm)
{
	struct zc_cache *cache;
	u64 pages = 0;

	mutex_lock(&zc_caches_lock);
	list_for_each_entry(cache, &zc_caches, link)
		if (cache->mm == mm) {
			spin_lock(&cache->lock);
			pages += cache->stale_pages;
			spin_unlock(&cache->lock);
		}
	mutex_unlock(&zc_caches_lock);
	return pages;
}

/**
 * zc_caches_shrink - give back what is kept and idle of a process
 * @mm: its address space
 *
 * Context: may sleep, until it has been given back, and what was on its way; for a second at
 * most, for other threads of the process may give back something all the time.
 * Return: whether there may have been any.
 */
bool zc_caches_shrink(const struct mm_struct *mm)
{
	struct zc_cache *cache;
	unsigned long end = jiffies + HZ;
	bool any = false;
	int frees;

	mutex_lock(&zc_caches_lock);
	list_for_each_entry(cache, &zc_caches, link) {
		if (cache->mm != mm)
			continue;
		zc_cache_take_idle(cache, U64_MAX, false);
		any = true;
	}
	mutex_unlock(&zc_caches_lock);
	/* Counted before it is looked: what is freed after the look has changed it */
	for (frees = atomic_read_acquire(&zc_cache_frees);
	     any && zc_caches_stale(mm) && time_before(jiffies, end);
	     frees = atomic_read_acquire(&zc_cache_frees))
		if (wait_event_killable_timeout(zc_cache_waitq,
						atomic_read(&zc_cache_frees) != frees, HZ) < 0)
			return false;
	return any;
}

/* ---- limits that others set ---- */

/* A lower limit holds at once */
static int zc_cache_mib_set(const char *value, const struct kernel_param *param)
{
	struct zc_cache *cache;
	int err = param_set_uint(value, param);

	if (err)
		return err;
	mutex_lock(&zc_caches_lock);
	list_for_each_entry(cache, &zc_caches, link) {
		spin_lock(&cache->lock);
		zc_cache_trim(cache, 0);
		spin_unlock(&cache->lock);
	}
	mutex_unlock(&zc_caches_lock);
	return 0;
}

static const struct kernel_param_ops zc_cache_mib_ops = {
	.set = zc_cache_mib_set,
	.get = param_get_uint,
};

module_param_cb(cache_mib, &zc_cache_mib_ops, &cache_mib, 0644);
MODULE_PARM_DESC(cache_mib, "MiB of memory that was not registered, which each rank keeps pinned between calls, at most; 0: none");

/* When memory is short, what has not been used for a while goes: it can be swapped then */
static unsigned long zc_caches_shrinkable(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct zc_cache *cache;
	u64 pages = 0;

	if (!mutex_trylock(&zc_caches_lock))
		return 0;
	list_for_each_entry(cache, &zc_caches, link)
		pages += READ_ONCE(cache->counts.pages);
	mutex_unlock(&zc_caches_lock);
	return pages ?: SHRINK_EMPTY;
}

static unsigned long zc_caches_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct zc_cache *cache;
	u64 pages = 0;

	if (!mutex_trylock(&zc_caches_lock))
		return SHRINK_STOP;
	list_for_each_entry(cache, &zc_caches, link)
		if (pages < sc->nr_to_scan)
			pages += zc_cache_take_idle(cache, sc->nr_to_scan - pages, true);
	mutex_unlock(&zc_caches_lock);
	return pages ?: SHRINK_STOP;
}

/* ---- counters ---- */

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
	bool more = true;
	u32 n;

	while (more) {
		spin_lock(&cache->lock);
		cache->closed = true;
		for (n = 0; n < ZC_CACHE_BATCH && cache->nkept; n++)
			zc_kept_take_out(list_first_entry(&cache->kept, struct zc_kept, link));
		more = cache->nkept;
		spin_unlock(&cache->lock);
		cond_resched();
	}
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
	int err;

	zc_cache_wq = alloc_workqueue("zcoll_cache", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!zc_cache_wq)
		return -ENOMEM;
	zc_cache_shrinker = zc_compat_shrinker(zc_caches_shrinkable, zc_caches_scan);
	err = PTR_ERR_OR_ZERO(zc_cache_shrinker);
	if (err)
		destroy_workqueue(zc_cache_wq);
	return err;
}

void zc_caches_uninit(void)
{
	zc_compat_shrinker_free(zc_cache_shrinker);
	destroy_workqueue(zc_cache_wq);
}
