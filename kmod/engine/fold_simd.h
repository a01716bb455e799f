/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The fold loops for one vector instruction set. A small .c file per set names
 * it (FOLD_ISA and the macros of fold_vec.h) and includes this file.
 *
 * One pass: for each *block*, at least a cache line of every input is read
 * once, folded in registers, and written to all outputs. All inputs of a block
 * are read before any output of it is written, so an output may be an input.
 *
 * A call is made of up to three stretches: a *lead* of a few bytes that aligns
 * the first output, whole blocks, and a rest. Lead and rest go through
 * fold_part(), which pads each input with zeros on the stack; nothing outside
 * the inputs is read, nothing outside the outputs written.
 */
#include "fold_ops.h"

/* Bytes of each input and output per turn of a loop */
#define BLOCK_BYTES(type)	(PAIR_BYTES(type) < 64 ? 64 : PAIR_BYTES(type))
#define BLOCK_PAIRS(type)	(BLOCK_BYTES(type) / PAIR_BYTES(type))
#define MAX_BLOCK_PAIRS		(64 / FOLD_VECTOR)

/* Calls with more bytes than this are worth a lead that aligns the output */
#define LEAD_WORTH		2048

/* Groups of 8 inputs: subtrees that can wait at a time, for up to 2047 inputs */
#define GROUP_LEVELS		7
/* Single inputs: the same */
#define INPUT_LEVELS		10

/* What tells apart those that share a loop */
enum fold_how {
	FOLD_STREAM = 1,
	FOLD_AVERAGE = 2,	/* SUM, then divide */
	FOLD_MAX = 4,		/* MIN in reverse order */
	FOLD_SIGNED = 8,	/* integers */
};

/*
 * One call. Loops over blocks copy it: for all the compiler knows, an output may
 * overwrite the caller's.
 */
struct fold {
	u8 *const *dst;
	const u8 *const *src;
	u32 ndst, nsrc;
	u64 end;	/* offset of the first byte behind the piece */
	u64 flip;	/* see order_flip() */
	struct average avg;
	bool stream;
};

static __always_inline struct pair load(int type, int op, const struct fold *f, const void *p)
{
	struct pair x = pair_load(type, p);

	return op == ZCOLL_MIN ? pair_flip(x, f->flip) : x;
}

/* From the whole tree's result to what pair_store() takes */
static __always_inline struct pair finish(int type, int op, const struct fold *f, struct pair x)
{
	if (op == ZCOLL_MIN)
		x = pair_flip(x, f->flip);
	if (op == ZCOLL_SUM && f->avg.on)
		x = pair_average(type, x, &f->avg);
	return pair_narrow(type, pair_canonical(type, x));
}

/* Subtrees of fixed size over src[0 ..], at offset @off */

static __always_inline struct pair tree1(int type, int op, const struct fold *f,
					 const u8 *const *src, u64 off)
{
	return load(type, op, f, src[0] + off);
}

static __always_inline struct pair tree2(int type, int op, const struct fold *f,
					 const u8 *const *src, u64 off)
{
	return pair_combine(type, op, tree1(type, op, f, src, off),
			    tree1(type, op, f, src + 1, off));
}

static __always_inline struct pair tree4(int type, int op, const struct fold *f,
					 const u8 *const *src, u64 off)
{
	return pair_combine(type, op, tree2(type, op, f, src, off),
			    tree2(type, op, f, src + 2, off));
}

static __always_inline struct pair tree8(int type, int op, const struct fold *f,
					 const u8 *const *src, u64 off)
{
	return pair_combine(type, op, tree4(type, op, f, src, off),
			    tree4(type, op, f, src + 4, off));
}

/* The last 1 .. 7 inputs: a 4, a 2 and a 1, of those that there are */
static __always_inline struct pair tree_rest(int type, int op, const struct fold *f, u32 n,
					     const u8 *const *src, u64 off)
{
	struct pair x, more;

	if (n & 1)
		x = tree1(type, op, f, src + (n & 6), off);
	if (n & 2) {
		more = tree2(type, op, f, src + (n & 4), off);
		x = n & 1 ? pair_combine(type, op, more, x) : more;
	}
	if (n & 4) {
		more = tree4(type, op, f, src, off);
		x = n & 3 ? pair_combine(type, op, more, x) : more;
	}
	return x;
}

/*
 * Any number of inputs, in groups of 8. Finished subtrees wait on a stack, as
 * the set bits of a binary counter of groups: group i is the right-hand end of
 * as many larger subtrees as i has low bits set.
 */
static __always_inline struct pair tree_any(int type, int op, const struct fold *f, u64 off,
					    struct pair waiting[GROUP_LEVELS])
{
	struct pair x;
	u32 i, k, depth = 0;

	for (i = 0; i < f->nsrc / 8; i++) {
		x = tree8(type, op, f, f->src + 8 * i, off);
		for (k = i; k & 1; k >>= 1)
			x = pair_combine(type, op, waiting[--depth], x);
		if (8 * i + 8 == f->nsrc)
			break;
		waiting[depth++] = x;
	}
	if (f->nsrc % 8)
		x = tree_rest(type, op, f, f->nsrc % 8, f->src + 8 * i, off);
	while (depth)
		x = pair_combine(type, op, waiting[--depth], x);
	return x;
}

/* At most a pair, by powers of two: no loop, and no call of a library */
static __always_inline void copy_part(u8 *to, const u8 *from, u32 len)
{
#define COPY(n)						\
	do {						\
		if (len & (n)) {			\
			__builtin_memcpy(to, from, n);	\
			to += n;			\
			from += n;			\
		}					\
	} while (0)

	COPY(128);
	COPY(64);
	COPY(32);
	COPY(16);
	COPY(8);
	COPY(4);
	COPY(2);
	COPY(1);
#undef COPY
}

/* How many vecs of a pair are needed for @len bytes of memory */
static __always_inline u32 halves(int type, u32 len)
{
	return PAIR_BYTES(type) == FOLD_VECTOR || len > FOLD_VECTOR ? 2 : 1;
}

/*
 * Half of the pair of which only the first @len bytes are there: a half at a time,
 * to need half of the stack.
 */
static __always_inline vec tree_part(int type, int op, const struct fold *f, u64 off,
				     u32 len, bool second)
{
	u8 padded[2 * FOLD_VECTOR] __attribute__((aligned(FOLD_VECTOR))) = {};
	vec waiting[INPUT_LEVELS], x;
	u32 i, k, depth = 0;

	for (i = 0; ; i++) {
		struct pair p;

		copy_part(padded, f->src[i] + off, len);
		p = load(type, op, f, padded);
		x = second ? p.b : p.a;
		for (k = i; k & 1; k >>= 1)
			x = v_combine(type, op, waiting[--depth], x);
		if (i + 1 == f->nsrc)
			break;
		waiting[depth++] = x;
	}
	while (depth)
		x = v_combine(type, op, waiting[--depth], x);
	return x;
}

/* Any bytes from @off to @end, a pair at a time */
static __always_inline void fold_part(int type, int op, const struct fold *f,
				      u64 off, u64 end)
{
	u32 d, half, len;

	for (; off < end; off += len) {
		u8 padded[2 * FOLD_VECTOR] __attribute__((aligned(FOLD_VECTOR)));
		vec part[2] = {};

		len = end - off < PAIR_BYTES(type) ? end - off : PAIR_BYTES(type);
		for (half = 0; half < halves(type, len); half++)
			part[half] = tree_part(type, op, f, off, len, half);
		pair_store(type, padded,
			   finish(type, op, f, (struct pair){ part[0], part[1] }), false);
		for (d = 0; d < f->ndst; d++)
			copy_part(f->dst[d] + off, padded, len);
	}
}

static __always_inline void block_store(int type, const struct fold *f, u64 off,
					const struct pair *x)
{
	u32 d;

	for (d = 0; d < f->ndst; d++) {
		u8 *p = f->dst[d] + off;

		pair_store(type, p, x[0], f->stream);
		if (BLOCK_PAIRS(type) > 1)
			pair_store(type, p + PAIR_BYTES(type), x[1], f->stream);
		if (BLOCK_PAIRS(type) > 2) {
			pair_store(type, p + 2 * PAIR_BYTES(type), x[2], f->stream);
			pair_store(type, p + 3 * PAIR_BYTES(type), x[3], f->stream);
		}
	}
}

/* Whole blocks of any number of inputs */
static __always_inline u64 fold_any(int type, int op, const struct fold *call, u64 off)
{
	struct pair waiting[GROUP_LEVELS], x[MAX_BLOCK_PAIRS];
	const struct fold f = *call;
	u64 at;
	u32 i;

	for (; f.end - off >= BLOCK_BYTES(type); off += BLOCK_BYTES(type)) {
		for (i = 0; i < BLOCK_PAIRS(type); i++) {
			at = off + i * PAIR_BYTES(type);
			x[i] = tree_any(type, op, &f, at, waiting);
			x[i] = finish(type, op, &f, x[i]);
		}
		block_store(type, &f, off, x);
	}
	return off;
}

static __always_inline struct pair tree_few(int type, int op, const struct fold *f, u32 n,
					    const u8 *const *src, u64 off)
{
	if (n == 4)
		return tree4(type, op, f, src, off);
	if (n == 3)
		return pair_combine(type, op, tree2(type, op, f, src, off),
				    tree1(type, op, f, src + 2, off));
	return tree2(type, op, f, src, off);
}

/* Whole blocks of 2, 3 or 4 inputs, at most 2 pairs each: the most usual calls */
static __always_inline u64 fold_few(int type, int op, const struct fold *call, u32 n, u64 off)
{
	const u32 second = BLOCK_BYTES(type) - PAIR_BYTES(type);
	const struct fold f = *call;
	const u8 *const src[4] = {
		f.src[0], f.src[1], n > 2 ? f.src[2] : NULL, n > 3 ? f.src[3] : NULL
	};

	for (; f.end - off >= BLOCK_BYTES(type); off += BLOCK_BYTES(type)) {
		const struct pair x[2] = {
			finish(type, op, &f, tree_few(type, op, &f, n, src, off)),
			finish(type, op, &f, tree_few(type, op, &f, n, src, off + second)),
		};

		block_store(type, &f, off, x);
	}
	return off;
}

/* Bytes up to the first output's next cache line, if that can and need be had */
static __always_inline u64 lead_bytes(const void *dst, u64 bytes, u32 size)
{
	u64 lead = -(uintptr_t)dst % 64;

	return bytes > LEAD_WORTH && lead % size == 0 ? lead : 0;
}

/* The parts of a loop that are functions of their own, see FOLD_LOOP() */
typedef void (*fold_part_fn)(const struct fold *f, u64 off, u64 end);
typedef u64 (*fold_any_fn)(const struct fold *f, u64 off);

static __always_inline void fold_run(int type, int op, const struct fold *f, u64 off,
				     fold_part_fn part, fold_any_fn any)
{
	u64 lead = lead_bytes(f->dst[0] + off, f->end - off, zc_dtype_size(type));

	if (lead)
		part(f, off, off + lead);
	off += lead;
	if (f->nsrc == 2 && BLOCK_PAIRS(type) <= 2)
		off = fold_few(type, op, f, 2, off);
	else if (f->nsrc == 3 && BLOCK_PAIRS(type) <= 2)
		off = fold_few(type, op, f, 3, off);
	else if (f->nsrc == 4 && BLOCK_PAIRS(type) <= 2)
		off = fold_few(type, op, f, 4, off);
	else
		off = any(f, off);
	if (off < f->end)
		part(f, off, f->end);
	if (f->stream)
		__builtin_ia32_sfence();
}

/*
 * One loop. Its two functions that are not inlined each have a stack of waiting
 * subtrees, and only one of them at a time is on the thread's stack.
 */
#define FOLD_LOOP(type, op)								\
static noinline void fold_##type##_##op##_part(const struct fold *f, u64 off, u64 end)	\
{											\
	fold_part(ZCOLL_##type, ZCOLL_##op, f, off, end);				\
}											\
											\
static noinline u64 fold_##type##_##op##_any(const struct fold *f, u64 off)		\
{											\
	return fold_any(ZCOLL_##type, ZCOLL_##op, f, off);				\
}											\
											\
static noinline void fold_##type##_##op##_loop(void *const *dst, const void *const *src, \
					       u32 ndst, u32 nsrc, u32 divisor,		\
					       u64 first, u64 count, enum fold_how how)	\
{											\
	const u32 size = zc_dtype_size(ZCOLL_##type);					\
	const struct fold f = {								\
		.dst = (u8 *const *)dst,						\
		.src = (const u8 *const *)src,						\
		.ndst = ndst,								\
		.nsrc = nsrc,								\
		.end = (first + count) * size,						\
		.stream = how & FOLD_STREAM,						\
		.flip = order_flip(ZCOLL_##type, how & FOLD_SIGNED, how & FOLD_MAX),	\
		.avg = average_init(divisor, how & FOLD_AVERAGE, how & FOLD_SIGNED),	\
	};										\
											\
	fold_run(ZCOLL_##type, ZCOLL_##op, &f, first * size,				\
		 fold_##type##_##op##_part, fold_##type##_##op##_any);			\
}

/* The functions of the table: one type and operator each */
#define FOLD_ENTRY(type, op, loop, how)							\
static void fold_##type##_##op(void *const *dst, const void *const *src, u32 ndst,	\
			u32 nsrc, u32 divisor, u64 first, u64 count, bool stream)	\
{											\
	loop(dst, src, ndst, nsrc, divisor, first, count,				\
	     (how) | (stream ? FOLD_STREAM : 0));					\
}

#define FOLD_ENTRIES(type, loops, sign)							\
FOLD_ENTRY(type, SUM, fold_##loops##_SUM_loop, 0)					\
FOLD_ENTRY(type, PROD, fold_##loops##_PROD_loop, 0)					\
FOLD_ENTRY(type, MIN, fold_##loops##_MIN_loop, sign)					\
FOLD_ENTRY(type, MAX, fold_##loops##_MIN_loop, FOLD_MAX | (sign))			\
FOLD_ENTRY(type, AVG, fold_##loops##_SUM_loop, FOLD_AVERAGE | (sign))

#define FOLD_LOOPS(type)								\
FOLD_LOOP(type, SUM)									\
FOLD_LOOP(type, PROD)									\
FOLD_LOOP(type, MIN)

#define FOLD_ROW(type)									\
	[ZCOLL_##type] = {								\
		[ZCOLL_SUM] = fold_##type##_SUM,					\
		[ZCOLL_PROD] = fold_##type##_PROD,					\
		[ZCOLL_MIN] = fold_##type##_MIN,					\
		[ZCOLL_MAX] = fold_##type##_MAX,					\
		[ZCOLL_AVG] = fold_##type##_AVG,					\
	}

FOLD_LOOPS(UINT8)
FOLD_LOOPS(UINT16)
FOLD_LOOPS(UINT32)
FOLD_LOOPS(UINT64)
FOLD_LOOPS(FP16)
FOLD_LOOPS(BF16)
FOLD_LOOPS(FP32)
FOLD_LOOPS(FP64)

FOLD_ENTRIES(INT8, UINT8, FOLD_SIGNED)
FOLD_ENTRIES(UINT8, UINT8, 0)
FOLD_ENTRIES(INT16, UINT16, FOLD_SIGNED)
FOLD_ENTRIES(UINT16, UINT16, 0)
FOLD_ENTRIES(INT32, UINT32, FOLD_SIGNED)
FOLD_ENTRIES(UINT32, UINT32, 0)
FOLD_ENTRIES(INT64, UINT64, FOLD_SIGNED)
FOLD_ENTRIES(UINT64, UINT64, 0)
FOLD_ENTRIES(FP16, FP16, 0)
FOLD_ENTRIES(BF16, BF16, 0)
FOLD_ENTRIES(FP32, FP32, 0)
FOLD_ENTRIES(FP64, FP64, 0)

const struct zc_fold_isa FOLD_ISA = {
	.name = FOLD_NAME,
	.fn = {
		FOLD_ROW(INT8),
		FOLD_ROW(UINT8),
		FOLD_ROW(INT16),
		FOLD_ROW(UINT16),
		FOLD_ROW(INT32),
		FOLD_ROW(UINT32),
		FOLD_ROW(INT64),
		FOLD_ROW(UINT64),
		FOLD_ROW(FP16),
		FOLD_ROW(BF16),
		FOLD_ROW(FP32),
		FOLD_ROW(FP64),
	},
};
