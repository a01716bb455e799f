// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Waiting: MPI_Wait() and its like, for arrays in which there may be requests of ours.
 *
 * MPI gets the arrays as they are, once it can see those of ours that are over (they are
 * *shown*). Before that, functions that need all requests wait for each of ours in turn;
 * those that need any ask MPI about the others between short waits for ours.
 *
 * To MPI a persistent request of ours that is under way looks inactive, for which it has a
 * special answer; that is corrected here.
 */
#include <stdlib.h>

#include "internal.h"

#define FEW	16

/* Waiting for one of ours, between looks at MPI's requests */
#define PAUSE_MIN_NS	50000ULL
#define PAUSE_MAX_NS	1000000ULL

/* Of an array of requests those that are ours and under way, the others NULL */
struct set {
	int n;
	struct zm_request **own;
	struct zm_request *few[FEW];
	int running;	/* not over yet */
};

static bool is_under_way(const struct zm_request *r)
{
	return atomic_load(&r->op.state) != ZM_IDLE;
}

static struct zm_request *find(MPI_Request handle)
{
	struct zm_request *r = handle == MPI_REQUEST_NULL ? NULL : zm_request_find(handle);

	if (r && !is_under_way(r)) {
		zm_request_put(r);
		r = NULL;
	}
	return r;
}

static void set_close(struct set *s)
{
	for (int i = 0; i < s->n; i++)
		if (s->own[i])
			zm_request_put(s->own[i]);
	if (s->own != s->few)
		free(s->own);
}

/* Return: is there one of ours? Else there is nothing to close */
static bool set_open(struct set *s, int n, const MPI_Request *requests)
{
	if (n <= 0 || !requests || !atomic_load(&zm_nr_requests))
		return false;
	s->n = n;
	s->running = 0;
	s->own = n <= FEW ? s->few : malloc(n * sizeof(*s->own));
	if (!s->own)
		abort();	/* there is no result that would be true */
	for (int i = 0; i < n; i++) {
		s->own[i] = find(requests[i]);
		s->running += s->own[i] != NULL;
	}
	if (s->running)
		return true;
	set_close(s);
	return false;
}

/* Look at ours, the first for up to @ns, and show those that are over */
static void set_look(struct set *s, uint64_t ns)
{
	s->running = 0;
	for (int i = 0; i < s->n; i++) {
		if (!s->own[i])
			continue;
		if (zm_op_try(&s->own[i]->op, ns)) {
			zm_request_show(s->own[i]);
		} else {
			s->running++;
			ns = 0;
		}
	}
}

static void set_wait(struct set *s)
{
	for (int i = 0; i < s->n; i++) {
		if (!s->own[i])
			continue;
		zm_op_wait(&s->own[i]->op);
		zm_request_show(s->own[i]);
	}
	s->running = 0;
}

static uint64_t longer(uint64_t pause)
{
	if (!pause)
		return PAUSE_MIN_NS;
	return pause < PAUSE_MAX_NS / 2 ? 2 * pause : PAUSE_MAX_NS;
}

/* ------------------------------------------------------- what MPI has taken */

/*
 * MPI has given a request back as over. A persistent one can be started again; of another
 * the handle is gone. Return: its error code.
 */
static int consume(struct zm_request *r)
{
	if (r->persistent) {
		r->shown = false;
		atomic_store(&r->op.state, ZM_IDLE);
	}
	return zm_error_code(&r->op);
}

static int consume_one(struct set *s, int i)
{
	if (i == MPI_UNDEFINED || !s->own[i])
		return MPI_SUCCESS;
	return zm_raise(s->own[i]->op.comm, consume(s->own[i]));
}

static void set_error(MPI_Status *statuses, int at, int code)
{
	if (statuses != MPI_STATUSES_IGNORE)
		statuses[at].MPI_ERROR = code;
}

/* All of the array, or those @indices; statuses are in the same order */
static int consume_many(struct set *s, int n, const int *indices, MPI_Status *statuses, int ret)
{
	const struct zm_comm *failed = NULL;
	int code;

	for (int at = 0; at < n; at++) {
		struct zm_request *r = s->own[indices ? indices[at] : at];

		if (!r)
			continue;
		code = consume(r);
		if (code == MPI_SUCCESS)
			continue;
		if (!failed && ret == MPI_SUCCESS)
			for (int i = 0; i < n; i++)
				set_error(statuses, i, MPI_SUCCESS);
		failed = r->op.comm;
		set_error(statuses, at, code);
	}
	if (!failed)
		return ret;
	return ret == MPI_SUCCESS ? zm_raise(failed, MPI_ERR_IN_STATUS) : MPI_ERR_IN_STATUS;
}

/* -------------------------------------------------------------- one request */

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	struct set s;
	int ret;

	if (!set_open(&s, 1, request))
		return PMPI_Wait(request, status);
	set_wait(&s);
	ret = PMPI_Wait(request, status);
	if (ret == MPI_SUCCESS)
		ret = consume_one(&s, 0);
	set_close(&s);
	return ret;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	int ret = MPI_SUCCESS;
	struct set s;

	if (!set_open(&s, 1, request))
		return PMPI_Test(request, flag, status);
	set_look(&s, 0);
	if (s.running) {
		zm_progress();
		*flag = 0;
	} else {
		ret = PMPI_Test(request, flag, status);
		if (ret == MPI_SUCCESS)
			ret = consume_one(&s, 0);
	}
	set_close(&s);
	return ret;
}

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	int ret = MPI_SUCCESS;
	struct set s;

	if (!set_open(&s, 1, &request))
		return PMPI_Request_get_status(request, flag, status);
	set_look(&s, 0);
	if (s.running) {
		zm_progress();
		*flag = 0;
	} else {
		ret = PMPI_Request_get_status(request, flag, status);
	}
	set_close(&s);
	return ret;
}

/* ------------------------------------------------------------- all requests */

int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
	struct set s;
	int ret;

	if (!set_open(&s, n, requests))
		return PMPI_Waitall(n, requests, statuses);
	set_wait(&s);
	ret = PMPI_Waitall(n, requests, statuses);
	ret = consume_many(&s, n, NULL, statuses, ret);
	set_close(&s);
	return ret;
}

int MPI_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	int ret = MPI_SUCCESS;
	struct set s;

	if (!set_open(&s, n, requests))
		return PMPI_Testall(n, requests, flag, statuses);
	set_look(&s, 0);
	*flag = 0;
	if (s.running)
		zm_progress();
	else
		ret = PMPI_Testall(n, requests, flag, statuses);
	if (*flag)
		ret = consume_many(&s, n, NULL, statuses, ret);
	set_close(&s);
	return ret;
}

/* ------------------------------------------------------------- any requests */

/* MPI's answer, corrected: with ours under way, there is an active request */
static int test_any(struct set *s, int n, MPI_Request requests[], int *index, int *flag,
		    MPI_Status *status, uint64_t ns)
{
	int ret;

	set_look(s, ns);
	ret = PMPI_Testany(n, requests, index, flag, status);
	if (ret == MPI_SUCCESS && *flag && *index == MPI_UNDEFINED && s->running)
		*flag = 0;
	if (ret == MPI_SUCCESS && *flag)
		ret = consume_one(s, *index);
	return ret;
}

int MPI_Testany(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	struct set s;
	int ret;

	if (!set_open(&s, n, requests))
		return PMPI_Testany(n, requests, index, flag, status);
	ret = test_any(&s, n, requests, index, flag, status, 0);
	set_close(&s);
	return ret;
}

int MPI_Waitany(int n, MPI_Request requests[], int *index, MPI_Status *status)
{
	uint64_t pause = 0;
	struct set s;
	int ret, flag;

	if (!set_open(&s, n, requests))
		return PMPI_Waitany(n, requests, index, status);
	do {
		ret = test_any(&s, n, requests, index, &flag, status, pause);
		pause = longer(pause);
	} while (ret == MPI_SUCCESS && !flag);
	set_close(&s);
	return ret;
}

static int test_some(struct set *s, int n, MPI_Request requests[], int *done, int indices[],
		     MPI_Status statuses[], uint64_t ns)
{
	int ret;

	set_look(s, ns);
	*done = MPI_UNDEFINED;
	ret = PMPI_Testsome(n, requests, done, indices, statuses);
	if (*done == MPI_UNDEFINED && s->running)
		*done = 0;
	if (*done != MPI_UNDEFINED)
		ret = consume_many(s, *done, indices, statuses, ret);
	return ret;
}

int MPI_Testsome(int n, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
	struct set s;
	int ret;

	if (!set_open(&s, n, requests))
		return PMPI_Testsome(n, requests, done, indices, statuses);
	ret = test_some(&s, n, requests, done, indices, statuses, 0);
	set_close(&s);
	return ret;
}

int MPI_Waitsome(int n, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
	uint64_t pause = 0;
	struct set s;
	int ret;

	if (!set_open(&s, n, requests))
		return PMPI_Waitsome(n, requests, done, indices, statuses);
	do {
		ret = test_some(&s, n, requests, done, indices, statuses, pause);
		pause = longer(pause);
	} while (ret == MPI_SUCCESS && !*done);
	set_close(&s);
	return ret;
}

/* ------------------------------------------------------ persistent requests */

static struct zm_request *find_ours(const MPI_Request *request)
{
	if (!atomic_load(&zm_nr_requests) || !request || *request == MPI_REQUEST_NULL)
		return NULL;
	return zm_request_find(*request);
}

static struct zm_request *find_persistent(const MPI_Request *request)
{
	struct zm_request *r = find_ours(request);

	if (r && !r->persistent) {
		zm_request_put(r);
		r = NULL;
	}
	return r;
}

int MPI_Start(MPI_Request *request)
{
	struct zm_request *r = find_persistent(request);
	int ret = MPI_SUCCESS;

	if (!r)
		return PMPI_Start(request);
	if (is_under_way(r))
		ret = zm_raise(r->op.comm, MPI_ERR_REQUEST);
	else
		zm_op_start(&r->op);
	zm_request_put(r);
	return ret;
}

int MPI_Startall(int n, MPI_Request requests[])
{
	int ret = MPI_SUCCESS;

	if (n <= 0 || !requests || !atomic_load(&zm_nr_requests))
		return PMPI_Startall(n, requests);
	for (int i = 0; i < n && ret == MPI_SUCCESS; i++)
		ret = MPI_Start(&requests[i]);
	return ret;
}

int MPI_Request_free(MPI_Request *request)
{
	struct zm_request *r = find_ours(request);
	int ret;

	if (!r)
		return PMPI_Request_free(request);
	if (is_under_way(r))
		zm_op_wait(&r->op);
	/* The handle may be another's the moment it is free; MPI tells us of a generalized one */
	if (r->persistent)
		zm_request_remove(r);
	else
		zm_request_show(r);
	ret = PMPI_Request_free(request);
	zm_request_put(r);
	return ret;
}
