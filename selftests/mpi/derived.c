// SPDX-License-Identifier: GPL-2.0
/*
 * Derived datatypes: elements with gaps, in another order, at absolute addresses; and ranks
 * that name the same data by different types.
 */
#include <stddef.h>
#include <sys/mman.h>

#include "check.h"

#define N	500

static int data[4 * N], all[64 * 4 * N];

static MPI_Datatype committed(MPI_Datatype type)
{
	MPI_Type_commit(&type);
	return type;
}

static MPI_Datatype vector_of(int n)
{
	MPI_Datatype type;

	MPI_Type_vector(n, 1, 2, MPI_INT, &type);
	return committed(type);
}

/* Every rank has its own idea of the type; the signature is that of N ints */
static void signatures(void)
{
	MPI_Datatype row, wide = vector_of(N);
	bool good = true;

	MPI_Type_contiguous(N, MPI_INT, &row);
	row = committed(row);
	for (int root = 0; root < ranks; root++) {
		memset(data, 0, sizeof(data));
		for (int i = 0; me == root && i < 2 * N; i++)
			data[i] = 1000 * root + i;
		/* Rank 0 has a vector, 1 one row, others N elements */
		if (!me)
			MPI_Bcast(data, 1, wide, root, MPI_COMM_WORLD);
		else if (me == 1)
			MPI_Bcast(data, 1, row, root, MPI_COMM_WORLD);
		else
			MPI_Bcast(data, N, MPI_INT, root, MPI_COMM_WORLD);
		for (int i = 0; i < N; i++)
			good = good && data[me ? i : 2 * i] == 1000 * root + (root ? i : 2 * i);
		for (int i = 0; !me && root && i < N; i++)
			good = good && !data[2 * i + 1];
	}
	check(good, "Bcast, each rank with a type of its own");

	memset(all, 0, sizeof(all));
	for (int i = 0; i < 2 * N; i++)
		data[i] = 1000 * me + i / (me ? 1 : 2);
	if (!me)
		MPI_Allgather(data, 1, wide, all, 1, row, MPI_COMM_WORLD);
	else
		MPI_Allgather(data, N, MPI_INT, all, N, MPI_INT, MPI_COMM_WORLD);
	good = true;
	for (int i = 0; i < ranks * N; i++)
		good = good && all[i] == 1000 * (i / N) + i % N;
	check(good, "Allgather, each rank with a type of its own");
	MPI_Type_free(&row);
	MPI_Type_free(&wide);
}

/* A column of a matrix of two, in place; blocks lie among each other by resizing */
static void columns(void)
{
	MPI_Datatype vector, column;
	bool good = true;

	MPI_Type_vector(N, 1, ranks, MPI_INT, &vector);
	MPI_Type_create_resized(vector, 0, sizeof(int), &column);
	column = committed(column);
	memset(all, 0, sizeof(all));
	for (int i = 0; i < N; i++)
		all[i * ranks + me] = 1000 * me + i;
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, column, MPI_COMM_WORLD);
	for (int i = 0; i < N * ranks; i++)
		good = good && all[i] == 1000 * (i % ranks) + i / ranks;
	check(good && !all[N * ranks], "Allgather in place into the columns of a matrix");
	MPI_Type_free(&vector);
	MPI_Type_free(&column);
}

static void order(void)
{
	int lengths[] = { 1, 1, 2 }, places[] = { 3, 0, 1 }, in[4] = { 0 };
	MPI_Datatype mixed;

	MPI_Type_indexed(3, lengths, places, MPI_INT, &mixed);
	mixed = committed(mixed);
	if (!me)
		memcpy(in, (int[]){ 10, 11, 12, 13 }, sizeof(in));
	/* All but the root take the elements as they are sent: 13, 10, 11, 12 */
	MPI_Bcast(in, me ? 4 : 1, me ? MPI_INT : mixed, 0, MPI_COMM_WORLD);
	check(!me || (in[0] == 13 && in[1] == 10 && in[2] == 11 && in[3] == 12),
	      "a type without gaps in another order than memory");
	MPI_Type_free(&mixed);
}

static void gaps(void)
{
	struct pair { short number; double value; } pairs[3] = { { 0 } };
	int lengths[] = { 1, 1 };
	MPI_Aint places[] = { offsetof(struct pair, number), offsetof(struct pair, value) };
	MPI_Datatype parts[] = { MPI_SHORT, MPI_DOUBLE }, pair;
	struct { double value; int at; } best = { me, me };
	bool good = true;

	MPI_Type_create_struct(2, lengths, places, parts, &pair);
	pair = committed(pair);
	memset(pairs, 0x55, sizeof(pairs));
	for (int i = 0; !me && i < 3; i++)
		pairs[i] = (struct pair){ i, i + 0.5 };
	MPI_Bcast(pairs, 3, pair, 0, MPI_COMM_WORLD);
	for (int i = 0; i < 3; i++)
		good = good && pairs[i].number == i && pairs[i].value == i + 0.5 &&
		       (!me || ((unsigned char *)&pairs[i])[4] == 0x55);
	check(good, "a struct, of which the gaps are left alone");

	MPI_Bcast(&best, 1, MPI_DOUBLE_INT, ranks - 1, MPI_COMM_WORLD);
	check(best.at == ranks - 1 && best.value == ranks - 1, "a named type with a gap");
	MPI_Type_free(&pair);
}

static void addresses(void)
{
	int a = me ? 0 : 17, b = me ? 0 : 18, lengths[] = { 1, 1 };
	MPI_Datatype type;
	MPI_Aint places[2];

	MPI_Get_address(&a, &places[0]);
	MPI_Get_address(&b, &places[1]);
	MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type);
	type = committed(type);
	MPI_Bcast(MPI_BOTTOM, 1, type, 0, MPI_COMM_WORLD);
	check(a == 17 && b == 18, "absolute addresses and MPI_BOTTOM");
	MPI_Type_free(&type);
}

/* Two elements that lie further apart than an int can say */
static void far_apart(void)
{
	const size_t extent = (2UL << 30) + 4096;
	MPI_Datatype far;
	int *p;

	p = mmap(NULL, 2 * extent, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		exit(1);
	MPI_Type_create_resized(MPI_INT, 0, extent, &far);
	far = committed(far);
	p[0] = me ? 0 : 21;
	p[extent / sizeof(int)] = me ? 0 : 22;
	MPI_Bcast(p, 2, far, 0, MPI_COMM_WORLD);
	check(p[0] == 21 && p[extent / sizeof(int)] == 22, "elements 2 GiB apart");
	MPI_Type_free(&far);
	munmap(p, 2 * extent);
}

/* Made by the functions of MPI 4, where there are some */
static void large_count(void)
{
	MPI_Datatype row;
	int in[4] = { 0 };

	CONTIGUOUS(4, MPI_INT, &row);
	row = committed(row);
	for (int i = 0; !me && i < 4; i++)
		in[i] = i + 1;
	MPI_Bcast(in, 1, row, 0, MPI_COMM_WORLD);
	check(in[0] == 1 && in[3] == 4, "a type with a count of MPI_Count");
	MPI_Type_free(&row);
}

static void duplicates(void)
{
	int in = me, sum = -1;
	MPI_Datatype dup;

	MPI_Type_dup(MPI_INT, &dup);
	MPI_Allreduce(&in, &sum, 1, dup, MPI_SUM, MPI_COMM_WORLD);
	check(sum == ranks * (ranks - 1) / 2, "a reduction with a duplicate of a type");
	MPI_Type_free(&dup);
}

int main(int argc, char **argv)
{
	begin(&argc, &argv, MPI_THREAD_SINGLE);
	signatures();
	columns();
	order();
	gaps();
	addresses();
	far_apart();
	large_count();
	if (with_zcoll)
		duplicates();
	return end();
}
