// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pinned memory: a range of user pages, charged, pinned for long, and given a
 * kernel view, so that elements across pages are nothing special. With several nodes it
 * is a region of the network, too (net/key.c).
 *
 * The view is *flat*, one range of addresses: the direct map when the pages are one physical run,
 * else a vmap(). But of memory with huge pages, which the direct map has with few entries of
 * tables and of the TLB, it is in *blocks* of 2 MiB of user addresses: each is the direct map
 * if its pages are a run, else a vmap(). Where that does not do, a flat one is made beside it
 * (zc_buf_flatten()). The page array is not kept: the view leads back to the pages.
 *
 * Pages are charged to mm->pinned_vm before they are pinned, as RDMA does, and
 * compared with RLIMIT_MEMLOCK; the mm is held with mmgrab() so that the charge can
 * be given back after the process has died. Nothing here takes mmap_lock on the
 * way down, because a buffer may be put while an address space is torn down.
 *
 * Always pinned for writing: a read-only long-term pin of a copy-on-write page is
 * not reliable on 6.1.
 */
#include <linux/capability.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "net/net.h"

/* Pages pinned, or given back, at a time: how long a signal waits */
#define ZC_PIN_BATCH 512
#define ZC_UNPIN_BATCH 32

static bool zc_buf_try_charge(struct zc_buf *buf, u64 limit, u64 *used)
{
	*used = atomic64_add_return(buf->npages, &buf->mm->pinned_vm);
	if (*used <= limit >> PAGE_SHIFT)
		return true;
	atomic64_sub(buf->npages, &buf->mm->pinned_vm);
	return false;
}

static int zc_buf_charge(struct zc_buf *buf, struct zc_text *why)
{
	u64 limit = rlimit(RLIMIT_MEMLOCK);
	u64 used;

	if (capable(CAP_IPC_LOCK))
		return 0;
	if (zc_buf_try_charge(buf, limit, &used) ||
	    (zc_caches_shrink(buf->mm) && zc_buf_try_charge(buf, limit, &used))) {
		buf->charged = true;
		return 0;
	}
	zc_text_add(why,
		    "locked memory: limit (RLIMIT_MEMLOCK) %llu KiB, in use %llu KiB, needed %lu KiB more; raise it: ulimit -l, or LimitMEMLOCK= of a service",
		    limit >> 10, (used - buf->npages) << (PAGE_SHIFT - 10),
		    buf->npages << (PAGE_SHIFT - 10));
	return -EDQUOT;
}

static void zc_buf_uncharge(struct zc_buf *buf)
{
	if (buf->charged)
		atomic64_sub(buf->npages, &buf->mm->pinned_vm);
}

/*
 * Pages of files are refused: their file system may write them back, or take them
 * away, while we write to them.
 */
static bool zc_page_allowed(struct page *page)
{
	struct folio *folio = page_folio(page);

	return folio_test_anon(folio) || folio_test_swapbacked(folio) ||
	       folio_test_hugetlb(folio);
}

/* Newer kernels refuse to pin file pages with -EFAULT: find out if that is why */
static int zc_pin_error(u64 addr, int error)
{
	struct vm_area_struct *vma;

	/* To io_uring, -EAGAIN would mean something else */
	if (error == -EAGAIN)
		return -EINTR;
	if (error != -EFAULT)
		return error;
	if (mmap_read_lock_killable(current->mm))
		return error;
	vma = find_vma(current->mm, addr);
	if (vma && vma->vm_start <= addr && (vma->vm_flags & VM_WRITE)) {
		u64 offset = (addr - vma->vm_start) + ((u64)vma->vm_pgoff << PAGE_SHIFT);

		if (vma->vm_flags & (VM_IO | VM_PFNMAP))
			error = -EOPNOTSUPP;
		else if (vma->vm_file && (vma->vm_flags & VM_SHARED) &&
			 !is_vm_hugetlb_page(vma) &&
			 offset < i_size_read(file_inode(vma->vm_file)))
			error = -EOPNOTSUPP;
	}
	mmap_read_unlock(current->mm);
	return error;
}

static void zc_pin_text(struct zc_text *why, u64 addr, int error)
{
	if (error == -EOPNOTSUPP)
		zc_text_add(why,
			    "memory at 0x%llx is neither anonymous, shmem/memfd nor hugetlb",
			    addr);
	else if (error == -EFAULT)
		zc_text_add(why, "memory at 0x%llx is not mapped, or not writable", addr);
	else
		zc_text_add(why, "memory at 0x%llx cannot be pinned", addr);
}

static int zc_pin_pages(struct zc_buf *buf, struct page **pages, struct zc_text *why)
{
	u64 start = buf->addr & PAGE_MASK;
	unsigned long done = 0, i;
	int n = 0;

	while (done < buf->npages) {
		int want = min_t(unsigned long, buf->npages - done, ZC_PIN_BATCH);

		if (fatal_signal_pending(current)) {
			n = -EINTR;
			goto out_unpin;
		}
		n = pin_user_pages_fast(start + (done << PAGE_SHIFT), want,
					FOLL_WRITE | FOLL_LONGTERM, pages + done);
		if (n <= 0) {
			n = zc_pin_error(start + (done << PAGE_SHIFT), n ?: -EFAULT);
			goto out_unpin;
		}
		for (i = 0; i < n; i++) {
			if (zc_page_allowed(pages[done + i]))
				continue;
			unpin_user_pages(pages + done, n);
			n = -EOPNOTSUPP;
			goto out_unpin;
		}
		done += n;
		cond_resched();
	}
	return 0;

out_unpin:
	zc_pin_text(why, done ? start + (done << PAGE_SHIFT) : buf->addr, n);
	unpin_user_pages(pages, done);
	return n;
}

static bool zc_pages_in_a_row(struct page **pages, unsigned long n)
{
	unsigned long i;

	for (i = 1; i < n; i++)
		if (page_address(pages[i]) != page_address(pages[0]) + (i << PAGE_SHIFT))
			return false;
	return true;
}

/* A flat view of pages, NULL: no kernel address space */
static void *zc_pages_map(struct page **pages, unsigned long n)
{
	if (zc_pages_in_a_row(pages, n))
		return page_address(pages[0]);
	return vmap(pages, n, VM_MAP, PAGE_KERNEL);
}

static void zc_pages_unmap(void *view)
{
	if (is_vmalloc_addr(view))
		vunmap(view);
}

static int zc_no_view(struct zc_text *why, unsigned long npages)
{
	zc_text_add(why, "no kernel memory or address space to map %lu pages", npages);
	return -ENOMEM;
}

/* ---- views in blocks ---- */

static unsigned long zc_buf_nblocks(const struct zc_buf *buf)
{
	u64 last = buf->addr + ((u64)(buf->npages - 1) << PAGE_SHIFT);

	return (last >> ZC_BLOCK_SHIFT) - (buf->addr >> ZC_BLOCK_SHIFT) + 1;
}

/* Pages of the buffer in a block; @first gets the number of the first one */
static unsigned long zc_block_pages(const struct zc_buf *buf, unsigned long block,
				    unsigned long *first)
{
	unsigned long order = ZC_BLOCK_SHIFT - PAGE_SHIFT, begin = buf->addr >> PAGE_SHIFT;
	unsigned long number = (buf->addr >> ZC_BLOCK_SHIFT) + block;
	unsigned long from = max(number << order, begin);

	*first = from - begin;
	return min((number + 1) << order, begin + buf->npages) - from;
}

/* Bytes of a block that are before the buffer's pages */
static u64 zc_block_skips(const struct zc_buf *buf, unsigned long block)
{
	return block ? 0 : buf->addr & PAGE_MASK & (ZC_BLOCK_BYTES - 1);
}

/* Kernel address of the buffer's first page in a block */
static void *zc_block_view(const struct zc_buf *buf, unsigned long block)
{
	return buf->blocks[block] + zc_block_skips(buf, block);
}

/* Is there a huge page, which the direct map has in one piece? */
static bool zc_buf_is_huge(const struct zc_buf *buf, struct page **pages)
{
	unsigned long block, first, n;

	for (block = 0; block < zc_buf_nblocks(buf); block++) {
		n = zc_block_pages(buf, block, &first);
		if (n << PAGE_SHIFT == ZC_BLOCK_BYTES && zc_pages_in_a_row(pages + first, n))
			return true;
	}
	return false;
}

static int zc_buf_map_blocks(struct zc_buf *buf, struct page **pages, struct zc_text *why)
{
	unsigned long block, first, n;
	void *view;

	buf->blocks = kvmalloc_array(zc_buf_nblocks(buf), sizeof(*buf->blocks),
				     GFP_KERNEL_ACCOUNT);
	if (!buf->blocks)
		return zc_no_view(why, buf->npages);
	for (block = 0; block < zc_buf_nblocks(buf); block++) {
		n = zc_block_pages(buf, block, &first);
		view = zc_pages_map(pages + first, n);
		if (!view)
			goto out_unmap;
		buf->vmapped |= is_vmalloc_addr(view);
		buf->blocks[block] = view - zc_block_skips(buf, block);
	}
	return 0;

out_unmap:
	while (block--)
		zc_pages_unmap(zc_block_view(buf, block));
	kvfree(buf->blocks);
	return zc_no_view(why, buf->npages);
}

/* ---- filling ---- */

/* @flat: the network asks for it, or many ranks */
static int zc_buf_map(struct zc_buf *buf, bool flat, struct page **pages, struct zc_text *why)
{
	if (!flat && !zc_pages_in_a_row(pages, buf->npages) && zc_buf_is_huge(buf, pages))
		return zc_buf_map_blocks(buf, pages, why);
	buf->base = zc_pages_map(pages, buf->npages);
	if (!buf->base)
		return zc_no_view(why, buf->npages);
	buf->vmapped = is_vmalloc_addr(buf->base);
	return 0;
}

/* More than there is cannot be pinned: do not even make room for the list */
static struct page **zc_buf_pages(const struct zc_buf *buf)
{
	if (buf->npages > totalram_pages())
		return NULL;
	return kvmalloc_array(buf->npages, sizeof(struct page *),
			      GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
}

static int zc_buf_fill(struct zc_buf *buf, bool flat, struct zc_text *why)
{
	struct page **pages = zc_buf_pages(buf);
	int err;

	if (!pages) {
		zc_text_add(why, "no kernel memory to pin %lu pages", buf->npages);
		return -ENOMEM;
	}
	err = zc_pin_pages(buf, pages, why);
	if (err)
		goto out_free;
	err = zc_buf_map(buf, flat, pages, why);
	if (err)
		unpin_user_pages(pages, buf->npages);
out_free:
	kvfree(pages);
	return err;
}

/* The mapping goes last, since it is what leads to the pages; nobody uses it now */
static void zc_pages_unpin(void *view, unsigned long npages)
{
	struct page *pages[ZC_UNPIN_BATCH];
	unsigned long done, i, n;

	if (!is_vmalloc_addr(view)) {
		unpin_user_page_range_dirty_lock(virt_to_page(view), npages, true);
		return;
	}
	for (done = 0; done < npages; done += n) {
		n = min_t(unsigned long, npages - done, ZC_UNPIN_BATCH);
		for (i = 0; i < n; i++)
			pages[i] = zc_page_at(view + ((done + i) << PAGE_SHIFT));
		unpin_user_pages_dirty_lock(pages, n, true);
		cond_resched();
	}
	vunmap(view);
}

static void zc_buf_unpin(struct zc_buf *buf)
{
	unsigned long block, first, n;

	if (!buf->blocks) {
		zc_pages_unpin(buf->base, buf->npages);
		return;
	}
	if (buf->base)
		vunmap(buf->base);
	for (block = 0; block < zc_buf_nblocks(buf); block++) {
		n = zc_block_pages(buf, block, &first);
		zc_pages_unpin(zc_block_view(buf, block), n);
	}
	kvfree(buf->blocks);
}

/**
 * zc_buf_flatten - give a buffer a flat view
 * @buf: buffer that the caller holds
 * @why: gets the text of a failure
 *
 * It stays until the buffer goes.
 *
 * Context: process context, may sleep.
 * Return: 0 or -ENOMEM.
 */
int zc_buf_flatten(struct zc_buf *buf, struct zc_text *why)
{
	struct page **pages;
	unsigned long i;
	void *base;
	u64 rest;

	if (READ_ONCE(buf->base))
		return 0;
	pages = zc_buf_pages(buf);
	if (!pages)
		return zc_no_view(why, buf->npages);
	for (i = 0; i < buf->npages; i++)
		pages[i] = zc_page_at(zc_buf_in_block(buf, ((u64)i << PAGE_SHIFT) -
						      offset_in_page(buf->addr), &rest));
	base = vmap(pages, buf->npages, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	if (!base)
		return zc_no_view(why, buf->npages);
	/* Another call may have been quicker */
	if (cmpxchg(&buf->base, NULL, base))
		vunmap(base);
	return 0;
}

/* Let the network read and write it */
static int zc_buf_join_net(struct zc_buf *buf, struct zc_net *net, struct zc_text *why)
{
	struct zc_region *region;

	if (!net)
		return 0;
	region = zc_region_make(net, buf->base, buf->npages);
	if (IS_ERR_OR_NULL(region)) {
		zc_text_add(why, "the network cannot map %lu pages at 0x%llx", buf->npages,
			    buf->addr);
		return region ? PTR_ERR(region) : -ENOMEM;
	}
	buf->region = region;
	return 0;
}

/**
 * zc_buf_pin - pin a range of the current process
 * @addr: first byte
 * @len: bytes, not 0
 * @comm: whose operations are to use it
 * @why: gets the text of a failure
 *
 * Context: process context of the owner, may sleep.
 * Return: a buffer with one reference, or an ERR_PTR: -EOVERFLOW, -EFAULT,
 * -EOPNOTSUPP, -EDQUOT, -ENOMEM, -EINTR, or what the network says.
 */
struct zc_buf *zc_buf_pin(u64 addr, u64 len, const struct zc_comm *comm, struct zc_text *why)
{
	struct zc_buf *buf;
	u64 last;
	int err;

	if (check_add_overflow(addr, len - 1, &last) || last >= TASK_SIZE_MAX) {
		zc_text_add(why, "memory at 0x%llx: %llu bytes go beyond the address space",
			    addr, len);
		return ERR_PTR(check_add_overflow(addr, len - 1, &last) ? -EOVERFLOW : -EFAULT);
	}
	buf = kzalloc(sizeof(*buf), GFP_KERNEL_ACCOUNT);
	if (!buf) {
		zc_text_add(why, "no kernel memory for a buffer");
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&buf->ref);
	buf->addr = addr;
	buf->len = len;
	buf->npages = (last >> PAGE_SHIFT) - (addr >> PAGE_SHIFT) + 1;
	buf->mm = current->mm;
	err = zc_buf_charge(buf, why);
	if (err)
		goto out_free;
	err = zc_buf_fill(buf, comm->net || comm->layout.nlocal > ZC_BLOCK_RANKS, why);
	if (err)
		goto out_uncharge;
	err = zc_buf_join_net(buf, comm->net, why);
	if (err)
		goto out_unpin;
	mmgrab(buf->mm);
	atomic64_add(buf->npages, &zc_totals.pinned_pages);
	return buf;

out_unpin:
	zc_buf_unpin(buf);
out_uncharge:
	zc_buf_uncharge(buf);
out_free:
	kfree(buf);
	return ERR_PTR(err);
}

static void zc_buf_release(struct kref *ref)
{
	struct zc_buf *buf = container_of(ref, struct zc_buf, ref);

	if (buf->region)
		zc_region_destroy(buf->region);
	zc_buf_unpin(buf);
	zc_buf_uncharge(buf);
	atomic64_sub(buf->npages, &zc_totals.pinned_pages);
	mmdrop(buf->mm);
	kfree(buf);
}

/* Context: process context, may sleep. NULL is allowed. */
void zc_buf_put(struct zc_buf *buf)
{
	if (buf)
		kref_put(&buf->ref, zc_buf_release);
}
