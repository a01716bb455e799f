/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pinned memory, and where its bytes are in the kernel: buf.c.
 */
#ifndef ZCOLL_BUF_H
#define ZCOLL_BUF_H

#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/types.h>

struct zc_comm;
struct zc_region;
struct zc_text;

/* A block: user addresses that a huge page maps */
#define ZC_BLOCK_SHIFT	21
#define ZC_BLOCK_BYTES	BIT_ULL(ZC_BLOCK_SHIFT)

/* Ranks of a node whose buffers may have views in blocks */
#define ZC_BLOCK_RANKS	16

/**
 * struct zc_buf - a pinned range of user memory, with a kernel view
 * @ref: handle and submissions in flight
 * @mm: the address space charged, held with mmgrab()
 * @addr: user address
 * @len: bytes
 * @npages: pages pinned, and charged if @charged
 * @charged: counted in mm->pinned_vm
 * @base: kernel address of the first page of a flat view; NULL: there is none yet
 * @blocks: NULL, or for each block that the buffer touches the kernel address of its first
 *	byte, even if that is before the buffer
 * @vmapped: when it was pinned, the view needed a mapping of our own beside the direct map
 * @region: for the network, NULL: not needed. Made before others see the buffer
 */
struct zc_buf {
	struct kref ref;
	struct mm_struct *mm;
	u64 addr;
	u64 len;
	unsigned long npages;
	bool charged;
	bool vmapped;
	void *base;
	void **blocks;
	struct zc_region *region;
};

struct zc_buf *zc_buf_pin(u64 addr, u64 len, const struct zc_comm *comm, struct zc_text *why);
int zc_buf_flatten(struct zc_buf *buf, struct zc_text *why);
void zc_buf_put(struct zc_buf *buf);

/* The page at a kernel address of pinned memory */
static inline struct page *zc_page_at(const void *address)
{
	return is_vmalloc_addr(address) ? vmalloc_to_page(address) : virt_to_page(address);
}

/* Where a byte of the flat view is, NULL: there is none */
static inline void *zc_buf_flat(const struct zc_buf *buf, u64 offset)
{
	void *base = READ_ONCE(buf->base);

	return base ? base + offset_in_page(buf->addr) + offset : NULL;
}

/* Where a byte of the view in blocks is; @bytes of its block follow */
static inline void *zc_buf_in_block(const struct zc_buf *buf, u64 offset, u64 *bytes)
{
	u64 address = buf->addr + offset, within = address & (ZC_BLOCK_BYTES - 1);
	u64 block = (address >> ZC_BLOCK_SHIFT) - (buf->addr >> ZC_BLOCK_SHIFT);

	*bytes = ZC_BLOCK_BYTES - within;
	return buf->blocks[block] + within;
}

#endif /* ZCOLL_BUF_H */
