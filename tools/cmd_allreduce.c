// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll allreduce: reduce arrays in files, one of each rank, element by element.
 *
 * The arrays pass through two *pieces* of registered memory in turn: while the
 * ranks reduce one, the next is read into the other. So an array may be larger
 * than the memory, and a user's limit of locked memory (8 MiB by default) is
 * enough.
 *
 * The kernel compares types, operators and counts of each piece. Before that, the
 * ranks show each other the layouts of their arrays, because shape and order are
 * nothing to the kernel, and all files are to be alike.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cmd.h"
#include "msg.h"
#include "parse.h"
#include "progress.h"
#include "session.h"

#define PIECE_BYTES	(2u << 20)
#define WHAT		"all-reduce"

static const char help[] =
"Usage: zcoll allreduce --op OP [OPTION...] IN OUT\n"
"\n"
"Reduces the arrays IN of all ranks element by element, and writes the result to\n"
"OUT, on each rank. Under `zcoll run`, %r in a name stands for the rank.\n"
"\n"
"      --op OP        sum, prod, min, max or avg\n"
"      --dtype T      type of the elements: int8 uint8 int16 uint16 int32 uint32\n"
"                     int64 uint64 fp16 bf16 fp32 fp64; also float16 or half,\n"
"                     bfloat16, float32 or float, float64 or double\n"
"      --deadline T   give up when one step, joining included, takes longer (10m;\n"
"                     0: never)\n"
"  -h, --help         show this text\n"
"\n"
"IN is a NumPy file (.npy, versions 1 to 3, little-endian numbers), or raw data with\n"
"--dtype. OUT has the type, shape and order of IN. bf16, which NumPy lacks, is a\n"
"V2 or u2 array with --dtype bf16. All ranks' arrays must be alike.\n"
"\n"
"Times are a number and ns, us, ms, s, m or h; without a unit in seconds.\n"
"All ranks must join within ZCOLL_JOIN_TIMEOUT of the environment (60s), or within\n"
"--deadline if that is less.\n"
"\n"
"OUT appears when it is complete, in place of an older file. Without a launcher,\n"
"the process is the only rank.\n"
"\n"
"Exit status: 0 success, 1 failure (no OUT is written), 2 wrong usage.\n"
"\n"
"Example: zcoll run -n 4 -- zcoll allreduce --op sum in.%r.npy out.%r.npy\n";

struct options {
	int op;
	int dtype;
	uint64_t deadline_ns;
	const char *in;
	const char *out;
};

/* ---- are the arrays alike? ---- */

/* What the ranks show each other: one row of numbers for each */
enum { ROW_RAW, ROW_ORDER, ROW_COUNT, ROW_NDIM, ROW_SHAPE, ROW_LEN = ROW_SHAPE + NPY_MAX_DIMS };

static void fill_row(uint64_t *row, const struct array_in *in)
{
	row[ROW_RAW] = in->raw;
	row[ROW_ORDER] = in->npy.fortran_order;
	row[ROW_COUNT] = in->npy.count;
	row[ROW_NDIM] = in->npy.ndim;
	memcpy(&row[ROW_SHAPE], in->npy.shape, sizeof(in->npy.shape));
}

static void row_text(const uint64_t *row, char *text, size_t len)
{
	char shape[128];

	if (row[ROW_RAW]) {
		snprintf(text, len, "%" PRIu64 " raw elements", row[ROW_COUNT]);
		return;
	}
	npy_shape_text(&row[ROW_SHAPE], (unsigned int)row[ROW_NDIM], shape, sizeof(shape));
	snprintf(text, len, "shape %s%s", shape, row[ROW_ORDER] ? " in Fortran order" : "");
}

static int compare_rows(const uint64_t *rows, unsigned int nranks)
{
	char first[192], other[192];
	unsigned int r;

	for (r = 1; r < nranks; r++) {
		if (!memcmp(rows, rows + r * ROW_LEN, ROW_LEN * sizeof(*rows)))
			continue;
		row_text(rows, first, sizeof(first));
		row_text(rows + r * ROW_LEN, other, sizeof(other));
		return failed("the arrays differ: rank 0 has %s, rank %u has %s", first, r, other);
	}
	return 0;
}

static int compare_layouts(struct zcoll_comm *comm, const struct array_in *in)
{
	unsigned int nranks = zcoll_comm_size(comm);
	uint64_t *rows;
	int err;

	rows = calloc(nranks, ROW_LEN * sizeof(*rows));
	if (!rows)
		return failed("out of memory");
	fill_row(rows + zcoll_comm_rank(comm) * ROW_LEN, in);
	err = zcoll_allreduce(comm, rows, rows, (uint64_t)nranks * ROW_LEN, ZCOLL_UINT64,
			      ZCOLL_SUM);
	err = err ? session_failed(comm, "comparing the arrays", err) : compare_rows(rows, nranks);
	free(rows);
	return err;
}

/* ---- the work ---- */

/* One half of the pipeline */
struct piece {
	char *memory;
	size_t bytes;
	struct zcoll_req *req;
};

struct reduction {
	struct zcoll_comm *comm;
	int op;
	const struct array_in *in;
	struct array_out *out;
	struct piece pieces[2];
	uint64_t started;	/* bytes given to operations */
	uint64_t written;
	struct progress progress;
};

static int start_piece(struct reduction *red, struct piece *piece)
{
	const struct npy *npy = &red->in->npy;
	uint64_t left = npy->data_bytes - red->started;
	int err;

	piece->bytes = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
	err = array_read(red->in, red->started, piece->memory, piece->bytes);
	if (err)
		return err;
	err = zcoll_iallreduce(red->comm, piece->memory, piece->memory,
			       piece->bytes / npy->itemsize, npy->dtype, red->op, &piece->req);
	if (err)
		return session_failed(red->comm, WHAT, err);
	red->started += piece->bytes;
	return 0;
}

static int finish_piece(struct reduction *red, struct piece *piece)
{
	int err;

	err = zcoll_wait(piece->req, ZCOLL_WAIT_FOREVER);
	piece->req = NULL;
	if (err)
		return session_failed(red->comm, WHAT, err);
	err = array_write(red->out, piece->memory, piece->bytes);
	red->written += piece->bytes;
	progress_update(&red->progress, red->out->path, red->written,
			red->in->npy.data_bytes, true);
	return err;
}

/* Empty arrays take one operation too: the ranks meet, and differences come out */
static int reduce(struct reduction *red)
{
	unsigned int turn = 0;
	int err;

	err = start_piece(red, &red->pieces[turn]);
	while (!err && red->started < red->in->npy.data_bytes) {
		err = start_piece(red, &red->pieces[!turn]);
		if (!err)
			err = finish_piece(red, &red->pieces[turn]);
		turn = !turn;
	}
	if (!err)
		err = finish_piece(red, &red->pieces[turn]);
	return err;
}

static int reduce_files(struct zcoll_comm *comm, const struct options *opts,
			const struct array_in *in, struct array_out *out)
{
	struct reduction red = { .comm = comm, .op = opts->op, .in = in, .out = out };
	size_t len = in->npy.data_bytes < PIECE_BYTES ? (size_t)in->npy.data_bytes : PIECE_BYTES;
	char *memory;
	int err;

	/* whole pages, and at least one */
	len = (len + 4096) & ~(size_t)4095;
	memory = zcoll_alloc(comm, 2 * len);
	if (!memory)
		return session_failed(comm, "memory for the arrays", -errno);
	red.pieces[0].memory = memory;
	red.pieces[1].memory = memory + len;
	progress_start(&red.progress, zcoll_comm_rank(comm) == 0);
	err = reduce(&red);
	progress_end(&red.progress);
	/* on failure an operation may still use it: zcoll_comm_free() comes first then */
	if (!err)
		zcoll_free(comm, memory);
	return err;
}

static int run(const struct options *opts)
{
	struct zcoll_comm *comm;
	struct array_out out;
	struct array_in in;
	int status;

	status = array_open(&in, opts->in, opts->dtype);
	if (status)
		return status;
	status = session_open(&comm, opts->deadline_ns);
	if (status)
		goto close;
	status = compare_layouts(comm, &in);
	if (!status)
		status = array_create(&out, opts->out, &in);
	if (!status) {
		status = reduce_files(comm, opts, &in, &out);
		if (!status)
			status = array_commit(&out);
		array_discard(&out);
	}
	zcoll_comm_free(comm);
close:
	array_close(&in);
	return status;
}

static int parse_options(struct options *opts, int argc, char **argv)
{
	enum { OPT_OP = 256, OPT_DTYPE, OPT_DEADLINE };
	static const struct option options[] = {
		{ "op", required_argument, NULL, OPT_OP },
		{ "dtype", required_argument, NULL, OPT_DTYPE },
		{ "deadline", required_argument, NULL, OPT_DEADLINE },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case OPT_OP:
			opts->op = zcoll_op_parse(optarg);
			if (opts->op < 0)
				return usage_name("--op", optarg, zcoll_op_name, ZCOLL_NR_OPS, NULL);
			break;
		case OPT_DTYPE:
			opts->dtype = zcoll_dtype_parse(optarg);
			if (opts->dtype < 0)
				return usage_name("--dtype", optarg, zcoll_dtype_name,
						  ZCOLL_NR_TYPES, NULL);
			break;
		case OPT_DEADLINE:
			if (parse_deadline(optarg, &opts->deadline_ns))
				return usage("--deadline %s: not a time up to one day", optarg);
			break;
		default:
			return usage_option();
		}
	}
	if (!opts->op)
		return usage("--op OP is missing");
	if (argc - optind != 2)
		return usage("an input and an output file, please");
	opts->in = argv[optind];
	opts->out = argv[optind + 1];
	return 0;
}

static int allreduce(int argc, char **argv)
{
	struct options opts = { .deadline_ns = SESSION_DEFAULT };
	int status = parse_options(&opts, argc, argv);

	return status ? status : run(&opts);
}

const struct command cmd_allreduce = {
	.name = "allreduce",
	.summary = "reduce arrays in files, one of each rank",
	.help = help,
	.run = allreduce,
};
