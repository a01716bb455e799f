// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The three forms of a collective call: blocking, non-blocking, persistent.
 *
 * Each returns whether the call was taken; if so, its result is in @ret.
 */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

#define BAD_MEMORY	"buffers cannot be used"

static bool take(struct zm_op *op, const struct zm_args *a, enum zm_form form)
{
	enum zm_reason reason = zm_take(op, a, form);

	zm_count(a->collective, reason);
	return reason == ZM_TAKEN;
}

/* The operation is over, or could not begin */
static int result_of(const struct zm_op *op)
{
	return zm_raise(op->comm, zm_error_code(op));
}

bool zm_blocking(const struct zm_args *a, int *ret)
{
	struct zm_op op = { 0 };
	int err;

	if (!take(&op, a, ZM_BLOCKING))
		return false;
	err = zm_memory_set(&op, a);
	if (err)
		zm_op_fail(&op, err, BAD_MEMORY);
	else
		zm_op_do(&op);
	*ret = result_of(&op);
	zm_op_end(&op);
	return true;
}

/* A request with no handle yet. NULL: it is passed on, or an error in *@ret */
static struct zm_request *request_of(const struct zm_args *a, enum zm_form form, int *ret)
{
	struct zm_request *r = calloc(1, sizeof(*r));
	struct zm_op without = { 0 };	/* memory: the others take the call all the same */
	struct zm_op *op = r ? &r->op : &without;
	int err;

	*ret = MPI_SUCCESS;
	if (!take(op, a, form)) {
		free(r);
		return NULL;
	}
	err = r ? zm_memory_set(op, a) : -ENOMEM;
	if (!err) {
		zm_memory_hold(op);
		return r;
	}
	zm_op_fail(op, err, BAD_MEMORY);
	*ret = result_of(op);
	zm_op_end(op);
	free(r);
	return NULL;
}

/* There is no handle: give the request up */
static int drop(struct zm_request *r, int code)
{
	zm_raise(r->op.comm, code);
	zm_memory_release(&r->op);
	zm_op_end(&r->op);
	free(r);
	return code;
}

static bool has_failed(struct zm_op *op)
{
	return atomic_load(&op->state) == ZM_OVER && op->error;
}

bool zm_nonblocking(const struct zm_args *a, MPI_Request *request, int *ret)
{
	struct zm_request *r = request_of(a, ZM_NONBLOCKING, ret);

	if (!r)
		return *ret != MPI_SUCCESS;
	zm_op_start(&r->op);
	if (has_failed(&r->op)) {
		*request = MPI_REQUEST_NULL;
		*ret = drop(r, zm_error_code(&r->op));
		return true;
	}
	*ret = zm_request_new(r, request, false);
	if (*ret != MPI_SUCCESS) {
		zm_op_wait(&r->op);
		drop(r, *ret);
	}
	return true;
}

bool zm_persistent(const struct zm_args *a, MPI_Request *request, int *ret)
{
	struct zm_request *r = request_of(a, ZM_PERSISTENT, ret);

	if (!r)
		return *ret != MPI_SUCCESS;
	*ret = zm_request_new(r, request, true);
	if (*ret != MPI_SUCCESS)
		drop(r, *ret);
	return true;
}
