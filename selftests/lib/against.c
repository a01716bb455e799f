// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "against.h"
#include "oracle.h"

#define GUARD	64
#define POISON	0xa5

/* All that a call of one rank needs; a buffer is whole bytes, and guards on both sides */
struct trial {
	struct zcoll_comm *comm;
	struct zcoll_call call;
	const struct against *against;
	unsigned int rank, nranks;
	size_t size, block, whole, in_len, out_len;
	char *in, *out;		/* buffers of the call, with guards */
	char *want;
	char **inputs;		/* of all ranks */
};

bool call_reduces(unsigned int collective)
{
	return collective == ZCOLL_ALLREDUCE || collective == ZCOLL_REDUCE ||
	       collective == ZCOLL_REDUCE_SCATTER;
}

bool call_rooted(unsigned int collective)
{
	return collective == ZCOLL_BROADCAST || collective == ZCOLL_REDUCE;
}

/* -------------------------------------------------------------------- data */

void fill_bits(char *data, size_t len, unsigned int rank, size_t size)
{
	uint64_t state = rank * 1000003 + 17;

	for (size_t i = 0; i < len; i++) {
		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		data[i] = state >> 56;
		if (i % size == size - 1)
			data[i] = (data[i] & 0x83) | 0x38;
	}
}

static size_t in_len(const struct trial *t, unsigned int rank)
{
	if (t->call.collective == ZCOLL_BROADCAST && rank != t->call.root)
		return 0;
	return t->call.collective == ZCOLL_REDUCE_SCATTER ? t->whole : t->block;
}

static size_t out_len(const struct trial *t, unsigned int rank)
{
	if (t->call.collective == ZCOLL_REDUCE && rank != t->call.root)
		return 0;
	return t->call.collective == ZCOLL_ALLGATHER ? t->whole : t->block;
}

static const char *ask_oracle(const struct trial *t)
{
	const struct oracle o = {
		.plan = t->against->plan, .dtype = t->call.dtype, .op = t->call.op,
		.root = t->call.root, .nranks = t->nranks, .count = t->call.count,
		.map = t->against->map,
	};
	void *outputs[t->nranks];

	memset(outputs, 0, sizeof(outputs));
	outputs[t->rank] = t->want;
	return oracle_run(&o, (const void *const *)t->inputs, outputs);
}

static void setup(struct trial *t)
{
	size_t room = t->whole + 3 * GUARD;

	t->in = malloc(room);
	t->out = malloc(room);
	t->want = calloc(1, t->whole + 1);
	t->inputs = calloc(t->nranks, sizeof(*t->inputs));
	memset(t->in, POISON, room);
	memset(t->out, POISON, room);
	for (unsigned int r = 0; r < t->nranks; r++) {
		t->inputs[r] = malloc(in_len(t, r) + 1);
		fill_bits(t->inputs[r], in_len(t, r), r, t->size);
	}
}

static void teardown(struct trial *t)
{
	for (unsigned int r = 0; r < t->nranks; r++)
		free(t->inputs[r]);
	free(t->inputs);
	free(t->want);
	free(t->in);
	free(t->out);
}

/* -------------------------------------------------------------------- calls */

static int on_ring(struct zcoll_comm *comm, const struct zcoll_call *call)
{
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	struct zcoll_cmd cmd;
	int ret = io_uring_queue_init(4, &ring, 0);

	if (ret)
		return ret;
	ret = zcoll_prep_call(io_uring_get_sqe(&ring), 0, comm, &cmd, call);
	if (!ret)
		ret = io_uring_submit_and_wait(&ring, 1) == 1 ? 0 : -EIO;
	if (!ret)
		ret = io_uring_wait_cqe(&ring, &cqe);
	if (!ret)
		ret = cqe->res;
	io_uring_queue_exit(&ring);
	return ret;
}

static int do_call(struct zcoll_comm *comm, const struct zcoll_call *call, enum how how)
{
	struct zcoll_req *req;
	int ret;

	switch (how) {
	case REQUEST:
		ret = zcoll_icall(comm, call, &req);
		return ret ? ret : zcoll_wait(req, ZCOLL_WAIT_FOREVER);
	case RING:
		return on_ring(comm, call);
	default:
		return zcoll_call(comm, call);
	}
}

static int call_registered(const struct trial *t)
{
	size_t room = t->whole + 3 * GUARD;
	int ret;

	if (!t->against->registered)
		return do_call(t->comm, &t->call, t->against->how);
	ret = zcoll_register(t->comm, t->in, room);
	if (ret)
		return ret;
	ret = zcoll_register(t->comm, t->out, room);
	if (!ret)
		ret = do_call(t->comm, &t->call, t->against->how);
	zcoll_unregister(t->comm, t->in);
	zcoll_unregister(t->comm, t->out);
	return ret;
}

/* ------------------------------------------------------------------ results */

static bool is_poison(const char *at, const char *end)
{
	for (; at < end; at++)
		if ((unsigned char)*at != POISON)
			return false;
	return true;
}

static const char *compare(const struct trial *t, const char *from, const char *to)
{
	bool same = t->against->in_place && t->out_len;
	const char *first = t->against->in_place && from < to ? from : to;
	const char *last = to + t->out_len;

	if (t->against->in_place && from + t->in_len > last)
		last = from + t->in_len;
	if (memcmp(to, t->want, t->out_len))
		return "the result is not what the plan's order gives";
	if (!same && memcmp(from, t->inputs[t->rank], t->in_len))
		return "the input has changed";
	if (!is_poison(t->out, first < to + t->out_len ? first : to) ||
	    !is_poison(last, t->out + t->whole + 3 * GUARD))
		return "bytes beside the buffer were written";
	return NULL;
}

static int trial(struct trial *t, char *why)
{
	char *whole = t->out + GUARD + t->against->offset, *from, *to;
	const char *wrong = ask_oracle(t);
	int ret;

	from = t->against->in_place ? whole : t->in + GUARD + t->against->offset;
	to = whole;
	if (t->against->in_place && t->call.collective == ZCOLL_ALLGATHER)
		from += t->rank * t->block;
	if (t->against->in_place && t->call.collective == ZCOLL_REDUCE_SCATTER)
		to += t->rank * t->block;
	memcpy(from, t->inputs[t->rank], t->in_len);
	if (t->call.collective != ZCOLL_BARRIER) {
		t->call.send = from;
		t->call.recv = to;
	}
	ret = call_registered(t);
	if (ret) {
		zcoll_comm_error(t->comm, why, ZCOLL_TEXT_MAX);
		return ret;
	}
	if (!wrong)
		wrong = compare(t, from, to);
	snprintf(why, ZCOLL_TEXT_MAX, "%s", wrong ? wrong : "");
	return wrong ? -EBADMSG : 0;
}

int against_oracle(struct zcoll_comm *comm, const struct zcoll_call *call,
		   const struct against *against, char why[ZCOLL_TEXT_MAX])
{
	struct trial t = {
		.comm = comm, .call = *call, .against = against,
		.rank = zcoll_comm_rank(comm), .nranks = zcoll_comm_size(comm),
		.size = call->dtype ? zcoll_dtype_size(call->dtype) : 1,
	};
	int ret;

	t.block = call->count * t.size;
	t.whole = t.nranks * t.block;
	t.in_len = in_len(&t, t.rank);
	t.out_len = out_len(&t, t.rank);
	setup(&t);
	ret = trial(&t, why);
	teardown(&t);
	return ret;
}
