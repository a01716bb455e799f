// SPDX-License-Identifier: GPL-2.0
/*
 * Every call, in its three forms, with every type and operator, in place and not, on every
 * kind of communicator, gives what the MPI itself does, bit for bit.
 *
 * Values are small whole numbers, so sums are exact in any order of reduction. Buffers
 * begin at odd places and have guards, so that a byte too many is seen.
 *
 * results [few]: few types but for one call
 */
#include "check.h"

#define GUARD	64
#define MOST	16000		/* bytes of a block */

static const struct { MPI_Datatype type; const char *name; char kind; int size; } types[] = {
	{ MPI_SIGNED_CHAR, "signed char", 'i', 1 }, { MPI_UNSIGNED_CHAR, "unsigned char", 'u', 1 },
	{ MPI_SHORT, "short", 'i', 2 }, { MPI_UNSIGNED_SHORT, "unsigned short", 'u', 2 },
	{ MPI_INT, "int", 'i', 4 }, { MPI_UNSIGNED, "unsigned", 'u', 4 },
	{ MPI_LONG, "long", 'i', 8 }, { MPI_UNSIGNED_LONG, "unsigned long", 'u', 8 },
	{ MPI_LONG_LONG, "long long", 'i', 8 }, { MPI_INT8_T, "int8_t", 'i', 1 },
	{ MPI_UINT64_T, "uint64_t", 'u', 8 }, { MPI_AINT, "aint", 'i', 8 },
	{ MPI_FLOAT, "float", 'f', 4 }, { MPI_DOUBLE, "double", 'f', 8 },
	{ MPI_LONG_DOUBLE, "long double, passed on", 'f', 16 },
};

static const struct { MPI_Op op; const char *name; bool integer; } ops[] = {
	{ MPI_SUM, "sum", false }, { MPI_PROD, "prod", false }, { MPI_MIN, "min", false },
	{ MPI_MAX, "max", false }, { MPI_BXOR, "bxor, passed on", true },
};

enum call { ALLREDUCE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, ALLGATHER, BCAST, CALLS };
static const char *const call_names[CALLS] = {
	"Allreduce", "Reduce", "Reduce_scatter", "Reduce_scatter_block", "Allgather", "Bcast",
};

enum form { BLOCKING, NONBLOCKING, PERSISTENT, REFERENCE, FORMS };

/* One call; its buffers are @send and @recv, or @recv alone */
struct job {
	enum call call;
	MPI_Datatype type;
	int size, kind;
	MPI_Op op;
	int count, root, rank, n;
	bool passed_on, in_place;
	MPI_Comm comm;
	char *send, *recv;
	size_t send_bytes, recv_bytes;
};

static void put(char *at, int kind, int size, int value)
{
	long long whole = value;
	long double wide = value;
	double twice = value;
	float once = value;

	if (kind != 'f')
		memcpy(at, &whole, size);
	else if (size == 4)
		memcpy(at, &once, size);
	else if (size == 8)
		memcpy(at, &twice, size);
	else {
		memset(at, 0, size);
		memcpy(at, &wide, 10);
	}
}

static void fill(const struct job *j, char *at, size_t bytes, int seed)
{
	for (size_t i = 0; i < bytes / j->size; i++)
		put(at + i * j->size, j->kind, j->size, (seed * 7 + i * 3) % 5 + (j->kind == 'i' ? -2 : 1));
}

static int blocking(const struct job *j, const void *send, const int counts[])
{
	switch (j->call) {
	case ALLREDUCE:
		return MPI_Allreduce(send, j->recv, j->count, j->type, j->op, j->comm);
	case REDUCE:
		return MPI_Reduce(send, j->recv, j->count, j->type, j->op, j->root, j->comm);
	case REDUCE_SCATTER:
		return MPI_Reduce_scatter(send, j->recv, counts, j->type, j->op, j->comm);
	case REDUCE_SCATTER_BLOCK:
		return MPI_Reduce_scatter_block(send, j->recv, j->count, j->type, j->op, j->comm);
	case ALLGATHER:
		return MPI_Allgather(send, j->count, j->type, j->recv, j->count, j->type, j->comm);
	default:
		return MPI_Bcast(j->recv, j->count, j->type, j->root, j->comm);
	}
}

static int reference(const struct job *j, const void *send, const int counts[])
{
	switch (j->call) {
	case ALLREDUCE:
		return PMPI_Allreduce(send, j->recv, j->count, j->type, j->op, j->comm);
	case REDUCE:
		return PMPI_Reduce(send, j->recv, j->count, j->type, j->op, j->root, j->comm);
	case REDUCE_SCATTER:
		return PMPI_Reduce_scatter(send, j->recv, counts, j->type, j->op, j->comm);
	case REDUCE_SCATTER_BLOCK:
		return PMPI_Reduce_scatter_block(send, j->recv, j->count, j->type, j->op, j->comm);
	case ALLGATHER:
		return PMPI_Allgather(send, j->count, j->type, j->recv, j->count, j->type, j->comm);
	default:
		return PMPI_Bcast(j->recv, j->count, j->type, j->root, j->comm);
	}
}

static int nonblocking(const struct job *j, const void *send, const int counts[], MPI_Request *r)
{
	switch (j->call) {
	case ALLREDUCE:
		return MPI_Iallreduce(send, j->recv, j->count, j->type, j->op, j->comm, r);
	case REDUCE:
		return MPI_Ireduce(send, j->recv, j->count, j->type, j->op, j->root, j->comm, r);
	case REDUCE_SCATTER:
		return MPI_Ireduce_scatter(send, j->recv, counts, j->type, j->op, j->comm, r);
	case REDUCE_SCATTER_BLOCK:
		return MPI_Ireduce_scatter_block(send, j->recv, j->count, j->type, j->op, j->comm,
						 r);
	case ALLGATHER:
		return MPI_Iallgather(send, j->count, j->type, j->recv, j->count, j->type, j->comm,
				      r);
	default:
		return MPI_Ibcast(j->recv, j->count, j->type, j->root, j->comm, r);
	}
}

static int persistent(const struct job *j, const void *send, const int counts[], MPI_Request *r)
{
	const MPI_Info no = MPI_INFO_NULL;

	switch (j->call) {
	case ALLREDUCE:
		return INIT(Allreduce)(send, j->recv, j->count, j->type, j->op, j->comm, no, r);
	case REDUCE:
		return INIT(Reduce)(send, j->recv, j->count, j->type, j->op, j->root, j->comm, no,
				    r);
	case REDUCE_SCATTER:
		return INIT(Reduce_scatter)(send, j->recv, counts, j->type, j->op, j->comm, no, r);
	case REDUCE_SCATTER_BLOCK:
		return INIT(Reduce_scatter_block)(send, j->recv, j->count, j->type, j->op, j->comm,
						  no, r);
	case ALLGATHER:
		return INIT(Allgather)(send, j->count, j->type, j->recv, j->count, j->type, j->comm,
				       no, r);
	default:
		return INIT(Bcast)(j->recv, j->count, j->type, j->root, j->comm, no, r);
	}
}

/* Inputs are filled, the rest is the same junk each time */
static void prepare(const struct job *j)
{
	memset(j->send - GUARD, 0x5a, j->send_bytes + 2 * GUARD);
	memset(j->recv - GUARD, 0x5a, j->recv_bytes + 2 * GUARD);
	if (j->call == BCAST) {
		if (j->rank == j->root)
			fill(j, j->recv, j->recv_bytes, j->rank);
	} else if (!j->in_place) {
		fill(j, j->send, j->send_bytes, j->rank);
	} else if (j->call == ALLGATHER) {
		fill(j, j->recv + j->rank * j->send_bytes, j->send_bytes, j->rank);
	} else {
		fill(j, j->recv, j->recv_bytes, j->rank);
	}
}

static bool run(const struct job *j, enum form form)
{
	const void *send = j->in_place ? MPI_IN_PLACE : j->send;
	MPI_Request r;
	int *counts = malloc(j->n * sizeof(*counts));
	int ret = MPI_SUCCESS;

	for (int i = 0; i < j->n; i++)
		counts[i] = j->count;
	/* Only the root of a reduction may be in place */
	if (j->call == REDUCE && j->rank != j->root)
		send = j->send;
	prepare(j);
	if (send == j->send && j->call != BCAST)
		fill(j, j->send, j->send_bytes, j->rank);
	switch (form) {
	case BLOCKING:
		ret = blocking(j, send, counts);
		break;
	case NONBLOCKING:
		ret = nonblocking(j, send, counts, &r);
		ret |= MPI_Wait(&r, MPI_STATUS_IGNORE);
		break;
	case PERSISTENT:
		ret = persistent(j, send, counts, &r);
		for (int i = 0; i < 2; i++) {
			prepare(j);
			if (send == j->send && j->call != BCAST)
				fill(j, j->send, j->send_bytes, j->rank);
			ret |= MPI_Start(&r) | MPI_Wait(&r, MPI_STATUS_IGNORE);
		}
		ret |= MPI_Request_free(&r);
		break;
	default:
		ret = reference(j, send, counts);
	}
	free(counts);
	return ret == MPI_SUCCESS;
}

/* Bytes of the result: what lies behind it is in place input, which need not be kept */
static size_t result_bytes(const struct job *j)
{
	if (j->call == REDUCE && j->rank != j->root)
		return 0;
	if (j->call == REDUCE_SCATTER || j->call == REDUCE_SCATTER_BLOCK)
		return (size_t)j->count * j->size;
	return j->recv_bytes;
}

static char expected[8 * MOST + 2 * GUARD], one[8 * MOST + 4 * GUARD], two[8 * MOST + 4 * GUARD];

static bool same(struct job *j, enum form form)
{
	size_t bytes = result_bytes(j);
	bool good = run(j, form);

	for (int i = 0; i < GUARD; i++)
		good = good && j->recv[-1 - i] == 0x5a && j->recv[j->recv_bytes + i] == 0x5a;
	return good && !memcmp(j->recv, expected, bytes);
}

static void place(struct job *j)
{
	size_t block = (size_t)j->count * j->size;
	bool many_in = j->call == REDUCE_SCATTER || j->call == REDUCE_SCATTER_BLOCK;

	j->send_bytes = many_in ? block * j->n : block;
	j->recv_bytes = j->call == ALLGATHER || (many_in && j->in_place) ? block * j->n : block;
	j->send = one + GUARD + j->size;
	j->recv = two + GUARD + j->size;
}

static bool can_be_in_place(const struct job *j)
{
	return j->call != BCAST && (j->call != REDUCE || !j->passed_on || REDUCES_IN_PLACE);
}

/* All forms, in place and not, against one call of the MPI, which is the slowest */
static bool compare(struct job *j, bool persistent_too)
{
	bool good;

	j->in_place = false;
	place(j);
	good = run(j, REFERENCE);
	memcpy(expected, j->recv, j->recv_bytes);
	for (int in_place = 0; in_place <= can_be_in_place(j); in_place++) {
		j->in_place = in_place;
		place(j);
		good = same(j, BLOCKING) && good;
		good = same(j, NONBLOCKING) && good;
		good = good && (!persistent_too || same(j, PERSISTENT));
	}
	return good;
}

static bool has_root(enum call call)
{
	return call == REDUCE || call == BCAST;
}

/* Counts and roots; persistent requests, which are dear to make, for some */
static bool matrix(struct job *j, bool few)
{
	static const int counts[] = { 1000, 3 };
	bool simple = j->type == MPI_INT || j->type == MPI_DOUBLE;
	bool good = true;

	for (int i = 0; i < (few ? 1 : 2); i++)
		for (j->root = 0; j->root < (has_root(j->call) ? j->n : 1); j->root += 3) {
			j->count = counts[i];
			good = compare(j, simple && !i) && good;
		}
	return good;
}

static void every_call(MPI_Comm comm, const char *where, bool few)
{
	struct job j = { .comm = comm };
	char name[200];

	if (comm != MPI_COMM_NULL) {
		PMPI_Comm_rank(comm, &j.rank);
		PMPI_Comm_size(comm, &j.n);
	}
	for (j.call = 0; j.call < CALLS; j.call++) {
		bool reduces = j.call < ALLGATHER;

		for (size_t o = 0; o < (reduces ? sizeof(ops) / sizeof(ops[0]) : 1); o++) {
			bool good = true;

			for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
				if (ops[o].integer && types[t].kind == 'f')
					continue;
				if (few && types[t].type != MPI_INT && types[t].type != MPI_DOUBLE &&
				    (j.call != ALLREDUCE || ops[o].op != MPI_SUM))
					continue;
				j.type = types[t].type;
				j.size = types[t].size;
				j.kind = types[t].kind;
				j.op = ops[o].op;
				j.passed_on = ops[o].integer || j.size > 8 || j.n == 1 ||
					      !with_zcoll;
				if (comm != MPI_COMM_NULL && !matrix(&j, few)) {
					printf("# rank %d: %s %s\n", me, types[t].name, ops[o].name);
					good = false;
				}
			}
			snprintf(name, sizeof(name), "%s, %s%s", where, call_names[j.call],
				 reduces ? " " : "");
			if (reduces)
				strcat(name, ops[o].name);
			check(good, name);
		}
	}
}

/* The even ranks, made by them alone */
static MPI_Comm group_of_even_ranks(void)
{
	MPI_Comm comm = MPI_COMM_NULL;
	MPI_Group world, even;
	int range[1][3] = { { 0, ranks - 1, 2 } };

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_range_incl(world, 1, range, &even);
	if (me % 2 == 0)
		MPI_Comm_create_group(MPI_COMM_WORLD, even, 0, &comm);
	MPI_Group_free(&world);
	MPI_Group_free(&even);
	return comm;
}

static void barriers(void)
{
	MPI_Request r;
	bool good = MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS;

	good = MPI_Ibarrier(MPI_COMM_WORLD, &r) == MPI_SUCCESS && good;
	good = MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_SUCCESS && good;
	good = INIT(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, &r) == MPI_SUCCESS && good;
	for (int i = 0; i < 3; i++)
		good = MPI_Start(&r) == MPI_SUCCESS &&
		       MPI_Wait(&r, MPI_STATUS_IGNORE) == MPI_SUCCESS && good;
	good = MPI_Request_free(&r) == MPI_SUCCESS && r == MPI_REQUEST_NULL && good;
	check(good, "barriers");
}

int main(int argc, char **argv)
{
	MPI_Comm comm;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	barriers();
	every_call(MPI_COMM_WORLD, "world", argc > 1 && !strcmp(argv[1], "few"));
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	every_call(comm, "dup", true);
	MPI_Comm_free(&comm);
	MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &comm);
	every_call(comm, "split", true);
	MPI_Comm_free(&comm);
	comm = group_of_even_ranks();
	every_call(comm, "create_group", true);
	if (comm != MPI_COMM_NULL)
		MPI_Comm_free(&comm);
	every_call(MPI_COMM_SELF, "self", true);
	return end();
}
