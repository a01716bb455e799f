/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between kernels. All conditionals of the module are here.
 *
 * ZC_HAVE_* are the probes of kmod/compat/ that compile against this kernel. A
 * version number says nothing: stable trees and distributions backport.
 */
#ifndef ZCOLL_COMPAT_H
#define ZCOLL_COMPAT_H

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/types.h>
#ifdef CONFIG_X86_64
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>
#elif defined(CONFIG_ARCH_HAS_KERNEL_FPU_SUPPORT)
#include <linux/fpu.h>
#else
#error "zcoll folds floating point: this architecture has no kernel FPU sections"
#endif

#include "compat_probes.h"
#include "compat/uring.h"
#include "engine/fold.h"

/* ---- io_uring commands ---- */

/* The command's bytes in the SQE, or in io_uring's copy of it */
static inline const void *zc_compat_payload(struct io_uring_cmd *ucmd)
{
#ifdef ZC_HAVE_CMD_SQE
	return ucmd->sqe->cmd;
#else
	return ucmd->cmd;
#endif
}

static inline void zc_compat_done(struct io_uring_cmd *ucmd, int result,
				  unsigned int issue_flags)
{
#ifdef ZC_HAVE_DONE_RES2
	io_uring_cmd_done(ucmd, result, 0, issue_flags);
#else
	io_uring_cmd_done(ucmd, result, issue_flags);
#endif
}

/* Define the task work function @name that calls @fn(ucmd, issue_flags) */
#ifdef ZC_HAVE_TW_REQ
#define ZC_COMPAT_TASK_WORK(name, fn)						\
static void name(struct io_tw_req tw_req, io_tw_token_t tw)			\
{										\
	fn(io_uring_cmd_from_tw(tw_req), IO_URING_CMD_TASK_WORK_ISSUE_FLAGS);	\
}
#else
#define ZC_COMPAT_TASK_WORK(name, fn)						\
static void name(struct io_uring_cmd *ucmd, unsigned int issue_flags)		\
{										\
	fn(ucmd, issue_flags);							\
}
#endif

/* Does io_uring tell when a ring or a task with commands in flight goes away? */
#ifdef ZC_HAVE_CANCEL
#define ZC_COMPAT_CANCEL true

static inline bool zc_compat_is_cancel(unsigned int issue_flags)
{
	return issue_flags & IO_URING_F_CANCEL;
}

static inline void zc_compat_mark_cancelable(struct io_uring_cmd *ucmd,
					     unsigned int issue_flags)
{
	io_uring_cmd_mark_cancelable(ucmd, issue_flags);
}

static inline bool zc_compat_in_exec(struct task_struct *task)
{
	return false;
}

static inline bool zc_compat_ring_dying(struct io_uring_cmd *ucmd)
{
	return false;
}
#else
#define ZC_COMPAT_CANCEL false

static inline bool zc_compat_is_cancel(unsigned int issue_flags)
{
	return false;
}

static inline void zc_compat_mark_cancelable(struct io_uring_cmd *ucmd,
					     unsigned int issue_flags)
{
}

/* Does @task sleep inside exec? A file being read would be an uninterruptible sleep. */
static inline bool zc_compat_in_exec(struct task_struct *task)
{
	return task->in_execve && (READ_ONCE(task->__state) & TASK_INTERRUPTIBLE);
}

/* Is the ring of a command in flight being closed? Its request is around the command. */
static inline bool zc_compat_ring_dying(struct io_uring_cmd *ucmd)
{
	struct io_kiocb *request = cmd_to_io_kiocb(ucmd);

	return percpu_ref_is_dying(&request->ctx->refs);
}
#endif

/* ---- mappings ---- */

static inline void zc_compat_vm_flags(struct vm_area_struct *vma, unsigned long set,
				      unsigned long clear)
{
#ifdef ZC_HAVE_VM_FLAGS
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

static inline int zc_compat_mmap(struct file *file, struct vm_area_struct *vma)
{
#ifdef ZC_HAVE_VFS_MMAP
	return vfs_mmap(file, vma);
#else
	return call_mmap(file, vma);
#endif
}

/* Of shmem_file_setup(): memory is accounted when it is touched */
#ifdef ZC_HAVE_VMA_FLAGS_T
#define ZC_COMPAT_NORESERVE mk_vma_flags(VMA_NORESERVE_BIT)
#else
#define ZC_COMPAT_NORESERVE VM_NORESERVE
#endif

/* ---- memory that is short ---- */

#ifdef ZC_HAVE_SHRINKER_ALLOC
static inline struct shrinker *
zc_compat_shrinker(unsigned long (*count)(struct shrinker *, struct shrink_control *),
		   unsigned long (*scan)(struct shrinker *, struct shrink_control *))
{
	struct shrinker *shrinker = shrinker_alloc(0, "zcoll");

	if (!shrinker)
		return ERR_PTR(-ENOMEM);
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker_register(shrinker);
	return shrinker;
}

static inline void zc_compat_shrinker_free(struct shrinker *shrinker)
{
	shrinker_free(shrinker);
}
#else
static inline struct shrinker *
zc_compat_shrinker(unsigned long (*count)(struct shrinker *, struct shrink_control *),
		   unsigned long (*scan)(struct shrinker *, struct shrink_control *))
{
	struct shrinker *shrinker = kzalloc(sizeof(*shrinker), GFP_KERNEL);
	int err;

	if (!shrinker)
		return ERR_PTR(-ENOMEM);
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker->seeks = DEFAULT_SEEKS;
	err = register_shrinker(shrinker, "zcoll");
	if (!err)
		return shrinker;
	kfree(shrinker);
	return ERR_PTR(err);
}

static inline void zc_compat_shrinker_free(struct shrinker *shrinker)
{
	unregister_shrinker(shrinker);
	kfree(shrinker);
}
#endif

/* ---- RDMA ---- */

/* Is there what fabric "rdma" needs? Kbuild asks the same. */
#define ZC_COMPAT_RDMA (IS_ENABLED(CONFIG_INFINIBAND_ADDR_TRANS) && \
			IS_ENABLED(CONFIG_CRYPTO_LIB_SHA256))

/* ---- caches ---- */

#ifdef CONFIG_X86_64
/* The instruction itself: User-Mode Linux has no function for it */
static inline void zc_compat_cpuid(u32 leaf, u32 n, u32 reg[4])
{
	asm volatile("cpuid" : "=a" (reg[0]), "=b" (reg[1]), "=c" (reg[2]), "=d" (reg[3])
		     : "0" (leaf), "2" (n));
}

/*
 * Bytes of the largest cache for data up to a level, 0: not known. From Intel's leaf 4 or, where
 * that is empty, AMD's of the same layout, as in arch/x86/kernel/cpu/cacheinfo.c.
 */
static inline u64 zc_compat_cache_bytes(u32 level)
{
	u32 reg[4], leaf = 4, n;
	u64 bytes = 0;

	/* Beyond the last leaf is what the last one says */
	zc_compat_cpuid(0, 0, reg);
	if (reg[0] < leaf)
		return 0;
	zc_compat_cpuid(0x80000000, 0, reg);
	if (reg[0] >= 0x8000001d) {
		zc_compat_cpuid(leaf, 0, reg);
		leaf = reg[0] & 0x1f ? leaf : 0x8000001d;
	}
	for (n = 0; n < 16; n++) {
		zc_compat_cpuid(leaf, n, reg);
		/* Type: 0 no more, 2 for instructions */
		if (!(reg[0] & 0x1f))
			break;
		if ((reg[0] & 0x1f) == 2 || (reg[0] >> 5 & 7) > level)
			continue;
		/* Ways, partitions, bytes of a line, sets; each less one */
		bytes = max(bytes, ((reg[1] >> 22) + 1ULL) * ((reg[1] >> 12 & 0x3ff) + 1) *
				   ((reg[1] & 0xfff) + 1) * (reg[2] + 1ULL));
	}
	return bytes;
}
#else
static inline u64 zc_compat_cache_bytes(u32 level)
{
	return 0;
}
#endif

/* ---- SIMD ---- */

#ifndef CONFIG_64BIT
#error "zcoll needs a 64-bit kernel: buffers are mapped whole"
#endif

/*
 * Process context. No sleep, no fault, until the end. User-Mode Linux has empty
 * sections: there registers are kept by not being scheduled away.
 */
static inline void zc_compat_simd_begin(void)
{
	preempt_disable();
	kernel_fpu_begin();
}

static inline void zc_compat_simd_end(void)
{
	kernel_fpu_end();
	preempt_enable();
}

static inline bool zc_compat_cpu_plain(void)
{
	return true;
}

#ifdef CONFIG_X86_64
/* User-Mode Linux runs as a process: what its host enabled is enabled */
#ifdef CONFIG_UML
#define zc_compat_xfeatures(mask) true
#else
#define zc_compat_xfeatures(mask) cpu_has_xfeatures(mask, NULL)
#endif

static inline bool zc_compat_cpu_sse2(void)
{
	return boot_cpu_has(X86_FEATURE_XMM2);
}

static inline bool zc_compat_cpu_avx2(void)
{
	return boot_cpu_has(X86_FEATURE_AVX2) && boot_cpu_has(X86_FEATURE_F16C) &&
	       zc_compat_xfeatures(XFEATURE_MASK_SSE | XFEATURE_MASK_YMM);
}

static inline bool zc_compat_cpu_avx512(void)
{
	return boot_cpu_has(X86_FEATURE_AVX512F) && boot_cpu_has(X86_FEATURE_AVX512BW) &&
	       boot_cpu_has(X86_FEATURE_AVX512DQ) && boot_cpu_has(X86_FEATURE_AVX512VL) &&
	       zc_compat_cpu_avx2() && zc_compat_xfeatures(XFEATURE_MASK_AVX512);
}

#endif

/* Fold loops, and whether this CPU has what they need; best last */
struct zc_compat_isa {
	const struct zc_fold_isa *loops;
	bool (*usable)(void);
};

static const struct zc_compat_isa zc_compat_isas[] __maybe_unused = {
	{ &zc_fold_ref, zc_compat_cpu_plain },
#ifdef CONFIG_X86_64
	{ &zc_fold_sse2, zc_compat_cpu_sse2 },
	{ &zc_fold_avx2, zc_compat_cpu_avx2 },
	{ &zc_fold_avx512, zc_compat_cpu_avx512 },
#endif
};

#endif /* ZCOLL_COMPAT_H */
