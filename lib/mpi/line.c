// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The line: operations that wait until memory may be pinned for them.
 *
 * The limit is that of the process, and what others have pinned is free when they are over; for
 * that, other ranks have to pin theirs. If one rank let one operation go first and another rank
 * another one, both might wait for ever. So operations get memory in the order of their calls,
 * whatever their communicators; who calls while others wait, waits behind them. That is enough
 * if all ranks call in the same order, as most programs do. What needs little memory leaves
 * enough for the others, and waits for nobody.
 */
#include "internal.h"

#define LITTLE	(64UL << 10)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct zm_op *first;

/* It may be pinned whatever the others do */
bool zm_line_needs_little(const struct zm_op *op)
{
	return op->in_bytes + op->out_bytes <= LITTLE;
}

/* Where the line points to @op, or its end. Called with the lock */
static struct zm_op **find(const struct zm_op *op)
{
	struct zm_op **at = &first;

	while (*at && *at != op)
		at = &(*at)->behind;
	return at;
}

/**
 * zm_line_join - wait behind the others
 * @op: the operation, in the line already or not
 */
void zm_line_join(struct zm_op *op)
{
	struct zm_op **at;

	if (zm_line_needs_little(op))
		return;
	pthread_mutex_lock(&lock);
	at = find(op);
	if (!*at) {
		op->behind = NULL;
		*at = op;
	}
	pthread_mutex_unlock(&lock);
}

/**
 * zm_line_leave - wait no more
 * @op: the operation, in the line or not
 */
void zm_line_leave(struct zm_op *op)
{
	struct zm_op **at;

	if (zm_line_needs_little(op))
		return;
	pthread_mutex_lock(&lock);
	at = find(op);
	if (*at)
		*at = op->behind;
	pthread_mutex_unlock(&lock);
}

/**
 * zm_line_is_turn - is nobody before it?
 * @op: the operation, in the line or not
 */
bool zm_line_is_turn(const struct zm_op *op)
{
	bool turn;

	if (zm_line_needs_little(op))
		return true;
	pthread_mutex_lock(&lock);
	turn = !first || first == op;
	pthread_mutex_unlock(&lock);
	return turn;
}
