// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Errors: a failed operation gets an MPI error code with zcoll's text as its string, and the
 * communicator's error handler is called.
 *
 * The codes are of a class of our own, because MPICH 4.0 mistakes codes that are added to a
 * class of its own for some of its messages. Programs are told the class they know by
 * MPI_Error_class(), which is defined here for that.
 *
 * A communicator that has failed gives the same error again and again, and codes cannot
 * be given back, so equal texts share one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define CODES	16	/* later texts are not told */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char text[MPI_MAX_ERROR_STRING];
	int code;
	int class;	/* that programs are told */
} codes[CODES];
static int nr_codes, own_class;

static int class_of(int err)
{
	switch (err) {
	case -EFAULT:
	case -EINVAL:		/* zm_take() has seen the rest: buffers that overlap */
		return MPI_ERR_BUFFER;
	case -EMSGSIZE:		/* from memory.c */
		return MPI_ERR_TRUNCATE;
	case -ENOMEM:
	case -EDQUOT:
		return MPI_ERR_NO_MEM;
	default:
		return MPI_ERR_OTHER;
	}
}

/* Called with the lock */
static int add_code(int class, const char *text)
{
	int code;

	for (int i = 0; i < nr_codes; i++)
		if (!strcmp(codes[i].text, text))
			return codes[i].code;
	if (nr_codes == CODES ||
	    (!own_class && PMPI_Add_error_class(&own_class) != MPI_SUCCESS) ||
	    PMPI_Add_error_code(own_class, &code) != MPI_SUCCESS ||
	    PMPI_Add_error_string(code, text) != MPI_SUCCESS)
		return class;
	strcpy(codes[nr_codes].text, text);
	codes[nr_codes].class = class;
	codes[nr_codes++].code = code;
	return code;
}

int MPI_Error_class(int code, int *class)
{
	bool ours = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < nr_codes && !ours; i++) {
		ours = codes[i].code == code;
		if (ours)
			*class = codes[i].class;
	}
	pthread_mutex_unlock(&lock);
	return ours ? MPI_SUCCESS : PMPI_Error_class(code, class);
}

/**
 * zm_error_code - MPI's error code of an operation that is over
 * @op: the operation
 *
 * Return: MPI_SUCCESS, or a code.
 */
int zm_error_code(const struct zm_op *op)
{
	char text[MPI_MAX_ERROR_STRING];
	int code;

	if (!op->error)
		return MPI_SUCCESS;
	snprintf(text, sizeof(text), "zcoll: %.*s", MPI_MAX_ERROR_STRING - 8,
		 op->text[0] ? op->text : strerror(-op->error));
	pthread_mutex_lock(&lock);
	code = add_code(class_of(op->error), text);
	pthread_mutex_unlock(&lock);
	return code;
}

/**
 * zm_raise - call the error handler, if there is an error
 * @c: of this communicator, or of the world if it was freed
 * @code: MPI_SUCCESS or a code
 *
 * Return: @code.
 */
int zm_raise(const struct zm_comm *c, int code)
{
	if (code != MPI_SUCCESS)
		PMPI_Comm_call_errhandler(c->handle == MPI_COMM_NULL ? MPI_COMM_WORLD : c->handle,
					  code);
	return code;
}
