// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mailboxes: memory that the ranks of a node share, so that small operations need no call
 * ("DOC: Mailboxes" of the ABI).
 *
 * The memory is one shmem file for each communicator, made at the first mmap(): it is
 * sparse, charged to who touches it, and can be pinned as other memory. Mappings are of the shmem
 * file, by a view that cannot be mapped again: they keep the module, and no endpoint. What may be
 * written is settled at mmap(): VM_MAYWRITE goes where the caller must not write, so that
 * mprotect() does not bring it back.
 *
 * The kernel writes the verdict page, which it holds, and trusts nothing in the rest: it reads
 * stamps, to tell people who is missing.
 *
 * Sleeping. The *bell* counts what ranks may wait for. Who parks gives the count that it saw
 * before it last looked, so that a bell between that and its sleep is not lost; who
 * rings after a write orders the write before its look at the parked flags, as the sleeper orders
 * its flag before its last look.
 *
 * Locking: zc_comm.mailbox is set once, under zc_comm.lock; it lives as long as the
 * communicator.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>

#include "compat.h"
#include "zcoll.h"

/**
 * struct zc_mailbox - the shared memory of a communicator
 * @file: all of it
 * @page: its first page, held
 * @verdict: in @page
 */
struct zc_mailbox {
	struct file *file;
	struct page *page;
	struct zcoll_verdict *verdict;
};

/* ---- making ---- */

static struct page *zc_mailbox_page(struct file *file, u64 offset)
{
	return shmem_read_mapping_page(file->f_mapping, offset >> PAGE_SHIFT);
}

static void zc_mailbox_destroy(struct zc_mailbox *mailbox)
{
	if (!IS_ERR_OR_NULL(mailbox->page))
		put_page(mailbox->page);
	if (!IS_ERR_OR_NULL(mailbox->file))
		fput(mailbox->file);
	kfree(mailbox);
}

static struct zc_mailbox *zc_mailbox_make(u32 nranks)
{
	struct zc_mailbox *mailbox = kzalloc(sizeof(*mailbox), GFP_KERNEL_ACCOUNT);
	int err;

	if (!mailbox)
		return ERR_PTR(-ENOMEM);
	mailbox->file = shmem_file_setup("zcoll", ZCOLL_SPAN(nranks), ZC_COMPAT_NORESERVE);
	err = PTR_ERR_OR_ZERO(mailbox->file);
	if (err)
		goto out;
	/* Held, so that it stays where it is */
	mailbox->page = zc_mailbox_page(mailbox->file, 0);
	err = PTR_ERR_OR_ZERO(mailbox->page);
	if (err)
		goto out;
	mailbox->verdict = page_address(mailbox->page);
	return mailbox;

out:
	zc_mailbox_destroy(mailbox);
	return ERR_PTR(err);
}

/* The communicator's mailbox, made if it has none */
static struct zc_mailbox *zc_mailbox_get(struct zc_comm *comm)
{
	struct zc_mailbox *mailbox, *other;

	/* Pairs with its setting: what it points to is complete */
	mailbox = smp_load_acquire(&comm->mailbox);
	if (mailbox)
		return mailbox;
	mailbox = zc_mailbox_make(comm->layout.nranks);
	if (IS_ERR(mailbox))
		return mailbox;
	spin_lock(&comm->lock);
	other = comm->mailbox;
	if (!other) {
		/* Pairs with the look without the lock */
		smp_store_release(&comm->mailbox, mailbox);
		zc_mailbox_tell(comm);
	}
	spin_unlock(&comm->lock);
	if (!other)
		return mailbox;
	zc_mailbox_destroy(mailbox);
	return other;
}

/* The communicator is going away */
void zc_mailbox_free(struct zc_comm *comm)
{
	if (comm->mailbox)
		zc_mailbox_destroy(comm->mailbox);
}

/* ---- mapping ---- */

static long zc_view_fallocate(struct file *file, int mode, loff_t offset, loff_t len)
{
	const struct file_operations *shmem = file_inode(file)->i_fop;

	return shmem->fallocate ? shmem->fallocate(file, mode, offset, len) : -EOPNOTSUPP;
}

/*
 * What mappings have as their file. remap_file_pages() maps any other part of a mapping's file,
 * and asks only the file: this one has no mmap. The others serve madvise() and msync().
 */
static const struct file_operations zc_view_fops = {
	.owner = THIS_MODULE,
	.fallocate = zc_view_fallocate,
	.fsync = noop_fsync,
};

static struct file *zc_mailbox_view(const struct zc_mailbox *mailbox)
{
	struct file *view = dentry_open(&mailbox->file->f_path, O_RDWR | O_LARGEFILE,
					current_cred());

	if (!IS_ERR(view)) {
		__module_get(THIS_MODULE);
		replace_fops(view, &zc_view_fops);
	}
	return view;
}

/* What of its span a mapping is of */
enum zc_mailbox_part { ZC_PART_VERDICT, ZC_PART_OWN, ZC_PART_OTHER, ZC_PART_HEAP, ZC_PART_NONE };

static enum zc_mailbox_part zc_mailbox_part(const struct zc_rank *rank, u64 start, u64 bytes)
{
	u64 span = start >> ZCOLL_SPAN_SHIFT, at = start & (ZCOLL_SPAN_BYTES - 1);

	if (!span)
		return !at && bytes == PAGE_SIZE ? ZC_PART_VERDICT : ZC_PART_NONE;
	if (span > rank->comm->layout.nranks || bytes > ZCOLL_SPAN_BYTES - at)
		return ZC_PART_NONE;
	if (at >= ZCOLL_MAILBOX_BYTES)
		return ZC_PART_HEAP;
	if (bytes > ZCOLL_MAILBOX_BYTES - at)
		return ZC_PART_NONE;
	return span - 1 == rank->rank ? ZC_PART_OWN : ZC_PART_OTHER;
}

/**
 * zc_mailbox_mmap - map shared memory
 * @rank: the endpoint
 * @vma: the mapping
 *
 * Return: 0; -EPERM: not the address space that joined; -EOPNOTSUPP: several nodes, or too
 * many ranks; -EINVAL: not a range that can be mapped, or private; -EACCES: not to be
 * written; or -ENOMEM, -ENFILE.
 */
int zc_mailbox_mmap(struct zc_rank *rank, struct vm_area_struct *vma)
{
	u64 start = (u64)vma->vm_pgoff << PAGE_SHIFT, bytes = vma->vm_end - vma->vm_start;
	struct zc_comm *comm = rank->comm;
	enum zc_mailbox_part part;
	struct zc_mailbox *mailbox;
	struct file *view;
	bool writable;

	if (vma->vm_mm != rank->mm)
		return -EPERM;
	if (comm->net || comm->layout.nranks > ZCOLL_MAILBOX_RANKS)
		return -EOPNOTSUPP;
	if (vma->vm_pgoff > (U64_MAX >> PAGE_SHIFT))
		return -EINVAL;
	part = zc_mailbox_part(rank, start, bytes);
	if (part == ZC_PART_NONE || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	writable = part == ZC_PART_OWN || part == ZC_PART_HEAP;
	if (!writable && vma->vm_flags & VM_WRITE)
		return -EACCES;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	mailbox = zc_mailbox_get(comm);
	if (IS_ERR(mailbox))
		return PTR_ERR(mailbox);
	view = zc_mailbox_view(mailbox);
	if (IS_ERR(view))
		return PTR_ERR(view);

	/*
	 * A forked child is no rank, but may look at what its parent has allocated. A core dump
	 * would touch all of it, holes, too.
	 */
	zc_compat_vm_flags(vma, VM_DONTEXPAND | VM_DONTDUMP |
			   (part == ZC_PART_HEAP ? 0 : VM_DONTCOPY),
			   VM_MAYEXEC | (writable ? 0 : VM_MAYWRITE));
	vma_set_file(vma, view);
	fput(view);
	return zc_compat_mmap(mailbox->file, vma);
}

/* ---- the verdict ---- */

static void zc_mailbox_ring(struct zc_comm *comm, struct zc_mailbox *mailbox)
{
	/* A full barrier: what the caller has written is seen before who waits looks again */
	atomic_inc_return((atomic_t *)&mailbox->verdict->bell);
	wake_up_all(&comm->bellq);
}

/**
 * zc_mailbox_tell - the communicator has been revoked, or a rank has left
 * @comm: the communicator, locked
 */
void zc_mailbox_tell(struct zc_comm *comm)
{
	struct zc_mailbox *mailbox = comm->mailbox;

	lockdep_assert_held(&comm->lock);
	if (!mailbox)
		return;
	WRITE_ONCE(mailbox->verdict->error, comm->error);
	WRITE_ONCE(mailbox->verdict->gone, comm->gone);
	zc_mailbox_ring(comm, mailbox);
}

/* ---- who has called ---- */

/**
 * zc_mailbox_called - does a rank's mailbox have a line for an operation?
 * @comm: the communicator
 * @rank: the rank
 * @seq: the operation
 *
 * Context: may sleep.
 */
bool zc_mailbox_called(struct zc_comm *comm, u32 rank, u64 seq)
{
	/* Pairs with its setting */
	struct zc_mailbox *mailbox = smp_load_acquire(&comm->mailbox);
	u64 at = ZCOLL_SPAN(rank) + ZCOLL_LINE_AT(seq), stamp;
	struct page *page;

	if (!mailbox || comm->layout.nranks > ZCOLL_MAILBOX_RANKS)
		return false;
	page = zc_mailbox_page(mailbox->file, at);
	if (IS_ERR(page))
		return false;
	stamp = READ_ONCE(*(u64 *)(page_address(page) + offset_in_page(at)));
	put_page(page);
	return (stamp | ZCOLL_FORM_MASK) == ZCOLL_STAMP(seq, ZCOLL_FORM_MASK);
}

/* How many ranks' mailboxes have a line for an operation. Context: may sleep. */
u32 zc_mailbox_callers(struct zc_comm *comm, u64 seq)
{
	u32 i, n = 0;

	if (!READ_ONCE(comm->mailbox))
		return 0;
	for (i = 0; i < comm->layout.nranks; i++)
		n += zc_mailbox_called(comm, i, seq);
	return n;
}

/*
 * Who has no line for it: names to a text. Those who have one may still have their part of the
 * operation to do. Context: may sleep.
 */
void zc_mailbox_add_missing(struct zc_text *text, struct zc_comm *comm, u64 seq)
{
	const char *comma = "";
	u32 i;

	for (i = 0; i < comm->layout.nranks; i++) {
		if (zc_mailbox_called(comm, i, seq))
			continue;
		zc_text_add(text, "%s%u", comma, i);
		comma = ", ";
	}
	if (!*comma)
		zc_text_add(text, "nobody, but not all have done their part");
}

/**
 * zc_mailbox_count - what a rank says it has done without the kernel
 * @rank: the endpoint
 * @args: its ops_mailbox and ops_heap are filled
 *
 * Context: may sleep.
 */
void zc_mailbox_count(struct zc_rank *rank, struct zcoll_stats *args)
{
	/* Pairs with its setting */
	struct zc_mailbox *mailbox = smp_load_acquire(&rank->comm->mailbox);
	const struct zcoll_mailbox *own;
	struct page *page;

	args->ops_mailbox = 0;
	args->ops_heap = 0;
	if (!mailbox)
		return;
	page = zc_mailbox_page(mailbox->file, ZCOLL_SPAN(rank->rank));
	if (IS_ERR(page))
		return;
	own = page_address(page);
	args->ops_mailbox = READ_ONCE(own->mails);
	args->ops_heap = READ_ONCE(own->heaps);
	put_page(page);
}

/* ---- sleeping ---- */

static bool zc_mailbox_rung(struct zc_comm *comm, u32 bell)
{
	return READ_ONCE(comm->mailbox->verdict->bell) != bell || READ_ONCE(comm->error);
}

/* A deadline has passed while its rank was parked */
static void zc_mailbox_expired(struct zc_rank *rank, u64 seq)
{
	struct zc_comm *comm = rank->comm;
	struct zc_text text = {};

	zc_text_add(&text, "operation %llu: deadline of rank %u passed; missing: ", seq,
		    rank->rank);
	zc_mailbox_add_missing(&text, comm, seq);
	spin_lock(&comm->lock);
	zc_comm_fail(comm, -ETIMEDOUT, &text);
	spin_unlock(&comm->lock);
}

/**
 * zc_mailbox_park - sleep until the bell rings
 * @rank: the endpoint
 * @args: as in the ABI; its timeout_ns is updated
 *
 * Return: 0, or -ETIMEDOUT, -ERESTARTSYS, -ENXIO, -EINVAL.
 */
int zc_mailbox_park(struct zc_rank *rank, struct zcoll_park *args)
{
	struct zc_comm *comm = rank->comm;
	ktime_t until = KTIME_MAX;
	int err;

	if (args->flags & ~ZCOLL_PARK_DEADLINE || args->__reserved)
		return -EINVAL;
	/* Pairs with its setting */
	if (!smp_load_acquire(&comm->mailbox))
		return -ENXIO;
	if (args->timeout_ns == ZCOLL_WAIT_FOREVER)
		return wait_event_interruptible(comm->bellq, zc_mailbox_rung(comm, args->bell));
	until = ktime_add_safe(ktime_get(), min_t(u64, args->timeout_ns, KTIME_MAX));
	err = wait_event_interruptible_hrtimeout(comm->bellq, zc_mailbox_rung(comm, args->bell),
						 min_t(u64, args->timeout_ns, KTIME_MAX));
	if (err == -ERESTARTSYS)
		args->timeout_ns = max_t(s64, ktime_to_ns(ktime_sub(until, ktime_get())), 0);
	if (err != -ETIME)
		return err;
	if (args->flags & ZCOLL_PARK_DEADLINE)
		zc_mailbox_expired(rank, args->seq);
	return -ETIMEDOUT;
}

/* Return: 0 or -ENXIO */
int zc_mailbox_bell(struct zc_rank *rank)
{
	/* Pairs with its setting */
	struct zc_mailbox *mailbox = smp_load_acquire(&rank->comm->mailbox);

	if (!mailbox)
		return -ENXIO;
	zc_mailbox_ring(rank->comm, mailbox);
	return 0;
}
