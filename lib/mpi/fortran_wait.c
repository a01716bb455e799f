// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * MPI_WAIT and its like in Fortran programs, and MPI_ERROR_CLASS.
 *
 * Requests are numbers there, so arrays of them are translated and back. Indices begin
 * with 1.
 */
#include <stdlib.h>

#include "fortran.h"

#define STATUS_INTS	(sizeof(MPI_Status) / sizeof(MPI_Fint))

/* The arrays of one call, in C */
struct arrays {
	int n;
	MPI_Request *requests;
	MPI_Status *statuses;	/* or MPI_STATUSES_IGNORE */
};

static void open_arrays(struct arrays *a, int n, const MPI_Fint *requests, const void *statuses)
{
	bool ignored = statuses == &ZM_F_STATUSES_IGNORE ||
		       statuses == &ZM_F_STATUS_IGNORE;

	a->n = n < 0 ? 0 : n;
	a->requests = malloc((a->n + 1) * sizeof(*a->requests));
	a->statuses = ignored ? MPI_STATUSES_IGNORE : calloc(a->n + 1, sizeof(*a->statuses));
	if (!a->requests || (!ignored && !a->statuses))
		abort();	/* there is no result that would be true */
	for (int i = 0; i < a->n; i++)
		a->requests[i] = PMPI_Request_f2c(requests[i]);
}

/* Give the requests back, and the first @filled statuses */
static void close_arrays(struct arrays *a, MPI_Fint *requests, int filled, MPI_Fint *statuses)
{
	for (int i = 0; i < a->n; i++)
		requests[i] = PMPI_Request_c2f(a->requests[i]);
	if (a->statuses != MPI_STATUSES_IGNORE)
		for (int i = 0; i < filled; i++)
			PMPI_Status_c2f(&a->statuses[i], &statuses[i * STATUS_INTS]);
	free(a->requests);
	if (a->statuses != MPI_STATUSES_IGNORE)
		free(a->statuses);
}

static bool has_statuses(int ret)
{
	return ret == MPI_SUCCESS || ret == MPI_ERR_IN_STATUS;
}

/* How many of them there are in a result that may be MPI_UNDEFINED */
static int filled(int done)
{
	return done == MPI_UNDEFINED ? 0 : done;
}

static int f_index(int i)
{
	return i == MPI_UNDEFINED ? i : i + 1;
}

void ZM_F08(wait)(MPI_Fint *request, MPI_Fint *status, MPI_Fint *ierr)
{
	struct arrays a;
	int ret;

	open_arrays(&a, 1, request, status);
	ret = MPI_Wait(a.requests, a.statuses);
	close_arrays(&a, request, has_statuses(ret), status);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, wait, MPI_WAIT);

void ZM_F08(test)(MPI_Fint *request, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *ierr)
{
	struct arrays a;
	int ret, done = 0;

	open_arrays(&a, 1, request, status);
	ret = MPI_Test(a.requests, &done, a.statuses);
	*flag = done;
	close_arrays(&a, request, has_statuses(ret) && done, status);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, test, MPI_TEST);

void ZM_F08(request_get_status)(MPI_Fint *request, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *ierr)
{
	struct arrays a;
	int ret, done = 0;

	open_arrays(&a, 1, request, status);
	ret = MPI_Request_get_status(a.requests[0], &done, a.statuses);
	*flag = done;
	close_arrays(&a, request, has_statuses(ret) && done, status);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, request_get_status, MPI_REQUEST_GET_STATUS);

void ZM_F08(waitall)(MPI_Fint *n, MPI_Fint *requests, MPI_Fint *statuses, MPI_Fint *ierr)
{
	struct arrays a;
	int ret;

	open_arrays(&a, *n, requests, statuses);
	ret = MPI_Waitall(*n, a.requests, a.statuses);
	close_arrays(&a, requests, has_statuses(ret) ? a.n : 0, statuses);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, waitall, MPI_WAITALL);

void ZM_F08(testall)(MPI_Fint *n, MPI_Fint *requests, MPI_Fint *flag, MPI_Fint *statuses,
		    MPI_Fint *ierr)
{
	struct arrays a;
	int ret, done = 0;

	open_arrays(&a, *n, requests, statuses);
	ret = MPI_Testall(*n, a.requests, &done, a.statuses);
	*flag = done;
	close_arrays(&a, requests, has_statuses(ret) && done ? a.n : 0, statuses);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, testall, MPI_TESTALL);

void ZM_F08(waitany)(MPI_Fint *n, MPI_Fint *requests, MPI_Fint *index, MPI_Fint *status,
		    MPI_Fint *ierr)
{
	struct arrays a;
	int ret, i = MPI_UNDEFINED;

	open_arrays(&a, *n, requests, status);
	ret = MPI_Waitany(*n, a.requests, &i, a.statuses);
	*index = f_index(i);
	close_arrays(&a, requests, has_statuses(ret), status);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, waitany, MPI_WAITANY);

void ZM_F08(testany)(MPI_Fint *n, MPI_Fint *requests, MPI_Fint *index, MPI_Fint *flag,
		    MPI_Fint *status, MPI_Fint *ierr)
{
	int ret, i = MPI_UNDEFINED, done = 0;
	struct arrays a;

	open_arrays(&a, *n, requests, status);
	ret = MPI_Testany(*n, a.requests, &i, &done, a.statuses);
	*index = f_index(i);
	*flag = done;
	close_arrays(&a, requests, has_statuses(ret) && done, status);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, testany, MPI_TESTANY);

/* Waitsome and Testsome */
static void some(int (*call)(int, MPI_Request[], int *, int[], MPI_Status[]), int n,
		 MPI_Fint *requests, MPI_Fint *done, MPI_Fint *indices, MPI_Fint *statuses,
		 MPI_Fint *ierr)
{
	int ret, some = 0;
	struct arrays a;

	open_arrays(&a, n, requests, statuses);
	ret = call(n, a.requests, &some, indices, a.statuses);
	*done = some;
	for (int i = 0; has_statuses(ret) && i < filled(some); i++)
		indices[i]++;
	close_arrays(&a, requests, has_statuses(ret) ? filled(some) : 0, statuses);
	zm_f_return(ierr, ret);
}

void ZM_F08(waitsome)(MPI_Fint *n, MPI_Fint *requests, MPI_Fint *done, MPI_Fint *indices,
		     MPI_Fint *statuses, MPI_Fint *ierr)
{
	some(MPI_Waitsome, *n, requests, done, indices, statuses, ierr);
}
ZM_FORTRAN(mpi, waitsome, MPI_WAITSOME);

void ZM_F08(testsome)(MPI_Fint *n, MPI_Fint *requests, MPI_Fint *done, MPI_Fint *indices,
		     MPI_Fint *statuses, MPI_Fint *ierr)
{
	some(MPI_Testsome, *n, requests, done, indices, statuses, ierr);
}
ZM_FORTRAN(mpi, testsome, MPI_TESTSOME);

/* ------------------------------------------------------- persistent requests */

void ZM_F08(start)(MPI_Fint *request, MPI_Fint *ierr)
{
	MPI_Request c_request = PMPI_Request_f2c(*request);
	int ret = MPI_Start(&c_request);

	*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, start, MPI_START);

void ZM_F08(startall)(MPI_Fint *n, MPI_Fint *requests, MPI_Fint *ierr)
{
	struct arrays a;
	int ret;

	open_arrays(&a, *n, requests, &ZM_F_STATUSES_IGNORE);
	ret = MPI_Startall(*n, a.requests);
	close_arrays(&a, requests, 0, NULL);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, startall, MPI_STARTALL);

void ZM_F08(request_free)(MPI_Fint *request, MPI_Fint *ierr)
{
	MPI_Request c_request = PMPI_Request_f2c(*request);
	int ret = MPI_Request_free(&c_request);

	*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, request_free, MPI_REQUEST_FREE);

/* -------------------------------------------------------------------- errors */

void ZM_F08(error_class)(MPI_Fint *code, MPI_Fint *class, MPI_Fint *ierr)
{
	int c_class = *class;
	int ret = MPI_Error_class(*code, &c_class);

	*class = c_class;
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, error_class, MPI_ERROR_CLASS);
