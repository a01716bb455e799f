// SPDX-License-Identifier: GPL-2.0
/*
 * Errors come by the communicator's handler, with a class that programs know and a text
 * that says what is wrong; memory that cannot be pinned is no error.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

#define N	5000

static const int constant[N] = { 5, 6, 7 };

static int handled;

static void handler(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
	handled++;
}

static MPI_Comm dup_with_handler(void)
{
	MPI_Errhandler eh;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_create_errhandler(handler, &eh);
	MPI_Comm_set_errhandler(comm, eh);
	MPI_Errhandler_free(&eh);
	handled = 0;
	return comm;
}

static int class_of(int code)
{
	int class;

	MPI_Error_class(code, &class);
	return class;
}

/* An error of a class, told once, whose text has @part */
static bool is_error(int ret, int class, const char *part)
{
	char text[MPI_MAX_ERROR_STRING];
	int len;

	MPI_Error_string(ret, text, &len);
	if (class_of(ret) == class && handled == 1 && strstr(text, part))
		return true;
	printf("# rank %d: class %d, told %d times: %s\n", me, class_of(ret), handled, text);
	return false;
}

/* What is wrong on this rank alone, and before it has called */
static void arguments(MPI_Comm comm)
{
	int in = 0, out, ret;

	ret = MPI_Allreduce(&in, &out, -1, MPI_INT, MPI_SUM, comm);
	check(class_of(ret) == MPI_ERR_COUNT && handled == 1, "a negative count");
	ret = MPI_Bcast(&in, 1, MPI_INT, ranks, comm);
	check(class_of(ret) == MPI_ERR_ROOT && handled == 2, "a root that is not there");
	ret = MPI_Allreduce(&in, &out, 1, MPI_DATATYPE_NULL, MPI_SUM, comm);
	check(ret != MPI_SUCCESS && handled == 3, "no datatype");
	ret = MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_OP_NULL, comm);
	check(class_of(ret) == MPI_ERR_OP && handled == 4, "no operator");
	in = me;
	MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_MAX, comm);
	check(out == ranks - 1 && handled == 4, "the communicator is good after that");
}

static void overlap(MPI_Comm comm)
{
	static int both[2 * N];
	int ret;

	handled = 0;
	ret = MPI_Allreduce(both, both + 1, N, MPI_INT, MPI_SUM, comm);
	check(is_error(ret, MPI_ERR_BUFFER, "overlap"), "buffers that overlap");
}

/* Have the communicator made. An error would end the barrier, too, where it is not over yet */
static void make(MPI_Comm comm)
{
	MPI_Barrier(comm);
	PMPI_Barrier(MPI_COMM_WORLD);
}

/* Ranks that call different things: all learn of it, by a wait if they have a request */
static void mismatch(bool blocking)
{
	MPI_Comm comm = dup_with_handler();
	MPI_Request r = MPI_REQUEST_NULL;
	int in[2] = { 1, 2 }, out[2], ret;

	make(comm);
	if (blocking) {
		ret = MPI_Allreduce(in, out, me ? 2 : 1, MPI_INT, MPI_SUM, comm);
	} else {
		ret = MPI_Iallreduce(in, out, me ? 2 : 1, MPI_INT, MPI_SUM, comm, &r);
		if (ret == MPI_SUCCESS)
			ret = MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
	check(is_error(ret, MPI_ERR_OTHER, "count") && r == MPI_REQUEST_NULL,
	      blocking ? "a mismatch, blocking" : "a mismatch, by a request");
	ret = MPI_Barrier(comm);
	check(ret != MPI_SUCCESS && handled == 2, "later calls fail, too");
	MPI_Comm_free(&comm);
}

static void in_status(void)
{
	MPI_Comm comm = dup_with_handler();
	MPI_Status statuses[2];
	MPI_Request r[2];
	int in[2] = { 1, 2 }, out[4], ret;

	make(comm);
	MPI_Iallreduce(in, out, 2, MPI_INT, MPI_SUM, comm, &r[0]);
	ret = MPI_Iallreduce(in, out + 2, me ? 2 : 1, MPI_INT, MPI_SUM, comm, &r[1]);
	if (ret == MPI_SUCCESS) {
		ret = MPI_Waitall(2, r, statuses);
		check(ret == MPI_ERR_IN_STATUS && class_of(statuses[1].MPI_ERROR) == MPI_ERR_OTHER,
		      "Waitall tells which request has failed");
	} else {
		MPI_Wait(&r[0], &statuses[0]);
		check(class_of(ret) == MPI_ERR_OTHER,
		      "Waitall tells which request has failed");
	}
	MPI_Comm_free(&comm);
}

/* A persistent request outlives its communicator, and then its errors are the world's */
static void freed(void)
{
	MPI_Comm comm = dup_with_handler();
	int in[2] = { 1, 2 }, out[2], ret;
	MPI_Request r;

	INIT(Allreduce)(in, out, me ? 2 : 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r);
	MPI_Comm_free(&comm);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	ret = MPI_Start(&r);
	if (ret == MPI_SUCCESS)
		ret = MPI_Wait(&r, MPI_STATUS_IGNORE);
	check(class_of(ret) == MPI_ERR_OTHER && !handled,
	      "a persistent request fails after its communicator was freed");
	MPI_Request_free(&r);
}

/* MPI allows any memory */
static void memory(void)
{
	char path[] = "/tmp/zcoll-mpi-XXXXXX";
	int fd = mkstemp(path), out[N] = { 0 }, *mapped, sum;

	MPI_Allreduce(constant, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	check(out[0] == 5 * ranks && out[2] == 7 * ranks && !out[3], "a constant is sent");
	memcpy(out, constant, sizeof(out));
	MPI_Bcast(me ? out : (int *)constant, N, MPI_INT, 0, MPI_COMM_WORLD);
	check(out[1] == 6, "a constant is broadcast");

	unlink(path);
	if (ftruncate(fd, sizeof(out)))
		exit(1);
	mapped = mmap(NULL, sizeof(out), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MPI_Allreduce(constant, mapped, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	check(mapped[1] == 6 * ranks, "a mapped file is received into");
	sum = me;
	MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	check(sum == ranks * (ranks - 1) / 2, "the communicator is good after that, too");
	munmap(mapped, sizeof(out));
	close(fd);
}

int main(int argc, char **argv)
{
	MPI_Comm comm;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	comm = dup_with_handler();
	if (CHECKS_ARGUMENTS)
		arguments(comm);
	memory();
	if (with_zcoll) {
		overlap(comm);
		mismatch(true);
		mismatch(false);
		in_status();
		freed();
	}
	MPI_Comm_free(&comm);
	return end();
}
