// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pinned memory: a range of user pages, charged, pinned for long, and given a
 * flat kernel view, so that elements across pages are nothing special. With several nodes it
 * is a region of the network, too (net/key.c).
 *
 * The view is the direct map when the pages are one physical run, else a vmap().
 * The page array is not kept: the view leads back to the pages.
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
		    "locked memory: limit (RLIMIT_MEMLOCK) %llu KiB, in use %llu KiB, needed %lu KiB more",
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

static int zc_buf_map(struct zc_buf *buf, struct page **pages, struct zc_text *why)
{
	if (zc_pages_in_a_row(pages, buf->npages)) {
		buf->base = page_address(pages[0]);
		return 0;
	}
	buf->base = vmap(pages, buf->npages, VM_MAP, PAGE_KERNEL);
	if (!buf->base) {
		zc_text_add(why, "no kernel address space for %lu pages", buf->npages);
		return -ENOMEM;
	}
	buf->vmapped = true;
	return 0;
}

static int zc_buf_fill(struct zc_buf *buf, struct zc_text *why)
{
	struct page **pages;
	int err;

	/* More than there is cannot be pinned: do not even make room for the list */
	pages = NULL;
	if (buf->npages <= totalram_pages())
		pages = kvmalloc_array(buf->npages, sizeof(*pages),
				       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!pages) {
		zc_text_add(why, "no kernel memory to pin %lu pages", buf->npages);
		return -ENOMEM;
	}
	err = zc_pin_pages(buf, pages, why);
	if (err)
		goto out_free;
	err = zc_buf_map(buf, pages, why);
	if (err)
		unpin_user_pages(pages, buf->npages);
out_free:
	kvfree(pages);
	return err;
}

/* The mapping goes last, since it is what leads to the pages; nobody uses it now */
static void zc_buf_unpin(struct zc_buf *buf)
{
	struct page *pages[ZC_UNPIN_BATCH];
	unsigned long done, i, n;

	if (!buf->vmapped) {
		unpin_user_page_range_dirty_lock(virt_to_page(buf->base), buf->npages, true);
		return;
	}
	for (done = 0; done < buf->npages; done += n) {
		n = min_t(unsigned long, buf->npages - done, ZC_UNPIN_BATCH);
		for (i = 0; i < n; i++)
			pages[i] = vmalloc_to_page(buf->base + ((done + i) << PAGE_SHIFT));
		unpin_user_pages_dirty_lock(pages, n, true);
		cond_resched();
	}
	vunmap(buf->base);
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
 * @net: network that is to reach it, or NULL
 * @why: gets the text of a failure
 *
 * Context: process context of the owner, may sleep.
 * Return: a buffer with one reference, or an ERR_PTR: -EOVERFLOW, -EFAULT,
 * -EOPNOTSUPP, -EDQUOT, -ENOMEM, -EINTR, or what the network says.
 */
struct zc_buf *zc_buf_pin(u64 addr, u64 len, struct zc_net *net, struct zc_text *why)
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
	err = zc_buf_fill(buf, why);
	if (err)
		goto out_uncharge;
	err = zc_buf_join_net(buf, net, why);
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
