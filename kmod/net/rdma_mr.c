// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions: memory that the device reads for writes, and that peers write into.
 *
 * A region is mapped in chunks, each with a table of runs: pages that lie one behind the other for
 * the device. To be sent, a run needs no key but the protection domain's own. To be written by
 * peers, each chunk has a memory region with a remote key, and an address that is its offset in
 * the zcoll region: no kernel address is told to anybody. Remote keys are made by a work
 * request on a queue pair of the rail, and are good for all queue pairs of its protection domain,
 * which are those of this communicator.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "rdma.h"

/* A chunk of a region on a rail */
struct zc_rdma_chunk {
	struct zc_rdma_region *region;
	struct sg_table runs;
	bool mapped;
	struct ib_mr *mr;
	struct ib_cqe cqe;
};

/**
 * struct zc_rdma_region - what the fabric keeps of a region
 * @link: in zc_rdma.regions
 * @region: the region
 * @nchunks: chunks, on each rail
 * @expose_work: makes the keys
 * @half: half-link whose queue pairs are used for that; counted in @half->exposers
 * @pending: registrations under way
 * @error: the first that failed, 0: none
 * @chunks: those of rail 0, then those of rail 1, and so on
 */
struct zc_rdma_region {
	struct list_head link;
	struct zc_region *region;
	u32 nchunks;
	struct work_struct expose_work;
	struct zc_half *half;
	atomic_t pending;
	int error;
	struct zc_rdma_chunk chunks[];
};

static struct zc_rdma_chunk *zc_chunk(const struct zc_rdma_region *fab, u32 rail, u32 chunk)
{
	return (struct zc_rdma_chunk *)&fab->chunks[rail * fab->nchunks + chunk];
}

static struct zc_rdma *zc_region_rdma(const struct zc_region *region)
{
	return region->net->fab;
}

/* ---- mapping ---- */

static struct page *zc_region_page(const struct zc_region *region, unsigned long i)
{
	return zc_page_at(region->base + i * PAGE_SIZE);
}

/*
 * Before 6.10 dma_need_sync() says yes to all that goes through an IOMMU, on whatever machine. What
 * is coherent is copied there only for devices that are not trusted.
 */
static bool zc_iommu_is_coherent(struct device *dev)
{
	return get_dma_ops(dev) && device_iommu_mapped(dev) && dev_is_dma_coherent(dev) &&
	       !(dev_is_pci(dev) && to_pci_dev(dev)->untrusted);
}

/* Nobody tells this fabric when the CPU wants to see what has been written */
static bool zc_chunk_is_coherent(struct ib_device *dev, struct sg_table *runs)
{
	struct scatterlist *sg;
	int i;

	if (ib_uses_virt_dma(dev) || zc_iommu_is_coherent(dev->dma_device))
		return true;
	for_each_sgtable_dma_sg(runs, sg, i)
		if (dma_need_sync(dev->dma_device, sg_dma_address(sg)))
			return false;
	return true;
}

static int zc_chunk_map(struct zc_rdma_chunk *chunk, struct ib_device *dev,
			struct page **pages, u32 count)
{
	int err;

	err = sg_alloc_table_from_pages_segment(&chunk->runs, pages, count, 0,
						(unsigned long)count << PAGE_SHIFT,
						ib_dma_max_seg_size(dev), GFP_KERNEL);
	if (err)
		return err;
	err = ib_dma_map_sgtable_attrs(dev, &chunk->runs, DMA_BIDIRECTIONAL, 0);
	if (err) {
		sg_free_table(&chunk->runs);
		return err;
	}
	chunk->mapped = true;
	return zc_chunk_is_coherent(dev, &chunk->runs) ? 0 : -EOPNOTSUPP;
}

/* Peers cannot write into it any more */
static void zc_chunk_hide(struct zc_rdma_chunk *chunk)
{
	if (chunk->mr)
		ib_dereg_mr(chunk->mr);
	chunk->mr = NULL;
}

static void zc_chunk_unmap(struct zc_rdma_chunk *chunk, struct ib_device *dev)
{
	zc_chunk_hide(chunk);
	if (!chunk->mapped)
		return;
	ib_dma_unmap_sgtable_attrs(dev, &chunk->runs, DMA_BIDIRECTIONAL, 0);
	sg_free_table(&chunk->runs);
	chunk->mapped = false;
}

static int zc_region_map_all(struct zc_rdma_region *fab, struct zc_rdma *rdma,
			     struct page **pages)
{
	struct zc_region *region = fab->region;
	u32 c, r, i, count;
	int err;

	for (c = 0; c < fab->nchunks; c++) {
		unsigned long first = (unsigned long)c * ZC_RDMA_CHUNK_PAGES;

		count = min_t(unsigned long, region->npages - first, ZC_RDMA_CHUNK_PAGES);
		for (i = 0; i < count; i++)
			pages[i] = zc_region_page(region, first + i);
		for (r = 0; r < rdma->nrails; r++) {
			err = zc_chunk_map(zc_chunk(fab, r, c), rdma->rails[r].dev, pages, count);
			if (err)
				return err;
		}
		/* A buffer may be of many GiB */
		cond_resched();
	}
	return 0;
}

static void zc_region_unmap_all(struct zc_rdma_region *fab)
{
	struct zc_rdma *rdma = zc_region_rdma(fab->region);
	u32 c, r;

	for (r = 0; r < rdma->nrails; r++)
		for (c = 0; c < fab->nchunks; c++)
			zc_chunk_unmap(zc_chunk(fab, r, c), rdma->rails[r].dev);
}

static void zc_region_expose_fn(struct work_struct *work);

static struct zc_rdma_region *zc_rdma_region_alloc(struct zc_region *region)
{
	struct zc_rdma *rdma = zc_region_rdma(region);
	u32 nchunks = DIV_ROUND_UP(region->npages, ZC_RDMA_CHUNK_PAGES);
	struct zc_rdma_region *fab;

	fab = kvzalloc(struct_size(fab, chunks, array_size(nchunks, rdma->nrails)), GFP_KERNEL);
	if (!fab)
		return NULL;
	fab->region = region;
	fab->nchunks = nchunks;
	INIT_WORK(&fab->expose_work, zc_region_expose_fn);
	return fab;
}

int zc_rdma_map(struct zc_region *region)
{
	struct zc_rdma *rdma = zc_region_rdma(region);
	struct page **pages = kmalloc_array(ZC_RDMA_CHUNK_PAGES, sizeof(*pages), GFP_KERNEL);
	struct zc_rdma_region *fab = zc_rdma_region_alloc(region);
	int err = -ENOMEM;

	if (!pages || !fab)
		goto out;
	err = -ENODEV;
	if (!zc_rdma_enter(rdma))
		goto out;
	err = zc_region_map_all(fab, rdma, pages);
	if (err) {
		zc_region_unmap_all(fab);
	} else {
		mutex_lock(&rdma->lock);
		list_add(&fab->link, &rdma->regions);
		mutex_unlock(&rdma->lock);
		region->fab = fab;
	}
	zc_rdma_exit(rdma);
out:
	kfree(pages);
	if (err)
		kvfree(fab);
	return err;
}

void zc_rdma_unmap(struct zc_region *region)
{
	struct zc_rdma *rdma = zc_region_rdma(region);
	struct zc_rdma_region *fab = region->fab;

	if (!fab)
		return;
	/* It ends soon: with its registrations, or with the half-link */
	flush_work(&fab->expose_work);
	mutex_lock(&rdma->lock);
	list_del(&fab->link);
	zc_region_unmap_all(fab);
	mutex_unlock(&rdma->lock);
	region->fab = NULL;
	kvfree(fab);
}

/* The devices are going away; there is no half-link any more */
void zc_rdma_regions_detach(struct zc_rdma *rdma)
{
	struct zc_rdma_region *fab;

	mutex_lock(&rdma->lock);
	list_for_each_entry(fab, &rdma->regions, link)
		zc_region_unmap_all(fab);
	mutex_unlock(&rdma->lock);
}

/* ---- sending from it ---- */

/*
 * Gather the bytes from @offset on, at most @max runs and no more than is in one chunk; @offset
 * and @bytes become those of what is left. Return: runs.
 */
u32 zc_rdma_gather(const struct zc_region *region, const struct zc_rail *rail, u64 *offset,
		   u64 *bytes, struct ib_sge *sges, u32 max)
{
	struct zc_rdma_chunk *chunk = zc_chunk(region->fab, rail->index,
					       *offset / ZC_RDMA_CHUNK_BYTES);
	u64 skip = *offset % ZC_RDMA_CHUNK_BYTES;
	struct scatterlist *sg;
	u32 n = 0;
	int i;

	for_each_sgtable_dma_sg(&chunk->runs, sg, i) {
		u64 length = sg_dma_len(sg);

		if (skip >= length) {
			skip -= length;
			continue;
		}
		length = min(length - skip, *bytes);
		sges[n++] = (struct ib_sge){
			.addr = sg_dma_address(sg) + skip,
			.length = length,
			.lkey = rail->pd->local_dma_lkey,
		};
		skip = 0;
		*offset += length;
		*bytes -= length;
		if (!*bytes || n == max)
			break;
	}
	return n;
}

/* ---- exposing it ---- */

void zc_rdma_key(struct zc_region *region, u32 rail, u32 chunk, u64 *address, u32 *key)
{
	const struct ib_mr *mr = zc_chunk(region->fab, rail, chunk)->mr;

	*address = mr->iova;
	*key = mr->rkey;
}

static void zc_reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct zc_rdma_chunk *chunk = container_of(wc->wr_cqe, struct zc_rdma_chunk, cqe);
	struct zc_conn *conn = cq->cq_context;
	struct zc_comm *comm = zc_conn_net(conn)->comm;

	if (wc->status != IB_WC_SUCCESS) {
		/* What is flushed has not failed by itself: it may go well on another half-link */
		if (!chunk->region->error)
			WRITE_ONCE(chunk->region->error,
				   wc->status == IB_WC_WR_FLUSH_ERR ? -ENOTCONN : -EIO);
		zc_conn_lose(conn, -EIO, ib_wc_status_msg(wc->status));
	}
	spin_lock(&comm->lock);
	conn->regs_used--;
	spin_unlock(&comm->lock);
	/* Pairs with zc_region_is_settled(): who sees it sees the error, too */
	(void)atomic_dec_return_release(&chunk->region->pending);
	wake_up_all(&conn->rail->rdma->waitq);
}

/* A memory region over all of the chunk, not yet known to the device */
static int zc_chunk_prepare(struct zc_rdma_chunk *chunk, const struct zc_rail *rail, u32 number)
{
	/* rxe before 6.3 looks for another row of 256 pages when a write ends with the last one */
	u32 pages = min_t(u32, ZC_RDMA_CHUNK_PAGES + 1,
			  rail->dev->attrs.max_fast_reg_page_list_len);
	struct ib_mr *mr = ib_alloc_mr(rail->pd, IB_MR_TYPE_MEM_REG, pages);
	int n;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	chunk->mr = mr;
	n = ib_map_mr_sg(mr, chunk->runs.sgl, chunk->runs.nents, NULL, PAGE_SIZE);
	if (n != chunk->runs.nents)
		return n < 0 ? n : -EINVAL;
	mr->iova = number * ZC_RDMA_CHUNK_BYTES;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	return 0;
}

/* Under zc_comm.lock */
static int zc_chunk_register(struct zc_rdma_chunk *chunk, struct zc_conn *conn)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.wr.wr_cqe = &chunk->cqe,
		.wr.send_flags = IB_SEND_SIGNALED,
		.mr = chunk->mr,
		.key = chunk->mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	int err;

	chunk->cqe.done = zc_reg_done;
	conn->regs_used++;
	atomic_inc(&chunk->region->pending);
	err = ib_post_send(conn->qp, &wr.wr, NULL);
	if (!err)
		return 0;
	conn->regs_used--;
	atomic_dec(&chunk->region->pending);
	zc_conn_lose(conn, -EHOSTDOWN, "the queue pair takes nothing more");
	return -ENOTCONN;
}

static bool zc_conn_may_register(struct zc_conn *conn)
{
	return READ_ONCE(conn->regs_used) < ZC_RDMA_REGS || READ_ONCE(conn->error) ||
	       READ_ONCE(conn->half->closing);
}

static int zc_chunk_expose(struct zc_rdma_region *fab, u32 r, u32 c)
{
	struct zc_rdma_chunk *chunk = zc_chunk(fab, r, c);
	struct zc_conn *conn = fab->half->conns[r];
	struct zc_comm *comm = fab->region->net->comm;
	int err;

	chunk->region = fab;
	err = READ_ONCE(conn->error) ? -ENOTCONN : zc_chunk_prepare(chunk, conn->rail, c);
	while (!err) {
		wait_event(conn->rail->rdma->waitq, zc_conn_may_register(conn));
		spin_lock(&comm->lock);
		if (fab->half->closing || conn->error)
			err = -ENOTCONN;
		else if (conn->regs_used < ZC_RDMA_REGS)
			err = zc_chunk_register(chunk, conn) ?: 1;
		spin_unlock(&comm->lock);
	}
	return min(err, 0);
}

/*
 * All registrations are done, or will never be. Before that, the device may be about to do one,
 * and the region cannot go away.
 */
static bool zc_region_is_settled(const struct zc_rdma_region *fab)
{
	return !atomic_read_acquire(&fab->pending) || READ_ONCE(fab->half->quiet);
}

/*
 * It could not be exposed: what has been made of it is taken back, so that it can be tried again by
 * another half-link. Completions that have not come by now never will.
 */
static void zc_region_hide(struct zc_rdma_region *fab)
{
	u32 i, count = zc_region_rdma(fab->region)->nrails * fab->nchunks;

	for (i = 0; i < count; i++)
		zc_chunk_hide(&fab->chunks[i]);
	atomic_set(&fab->pending, 0);
	fab->error = 0;
}

static void zc_region_expose_fn(struct work_struct *work)
{
	struct zc_rdma_region *fab = container_of(work, struct zc_rdma_region, expose_work);
	struct zc_region *region = fab->region;
	struct zc_rdma *rdma = zc_region_rdma(region);
	struct zc_comm *comm = region->net->comm;
	u32 c, r;
	int err = 0;

	for (r = 0; r < rdma->nrails && !err; r++)
		for (c = 0; c < fab->nchunks && !err; c++)
			err = zc_chunk_expose(fab, r, c);
	wait_event(rdma->waitq, zc_region_is_settled(fab));
	if (!err && atomic_read(&fab->pending))
		err = -ENOTCONN;
	err = READ_ONCE(fab->error) ?: err;
	/* While the half-link, or the device, is kept by it */
	if (err)
		zc_region_hide(fab);
	spin_lock(&comm->lock);
	fab->half->exposers--;
	spin_unlock(&comm->lock);
	wake_up_all(&rdma->waitq);
	zc_region_exposed(region, err);
}

void zc_rdma_expose(struct zc_region *region, struct zc_out *out)
{
	struct zc_rdma_region *fab = region->fab;

	fab->half = out->fab;
	fab->half->exposers++;
	queue_work(zc_rdma_wq, &fab->expose_work);
}
