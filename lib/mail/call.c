// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A blocking call, by mailboxes where that can be.
 *
 * By *mail*: each rank copies its input into its mailbox, and pulls its result from all of
 * them. A rank needs nothing of another after that, so a call has one wait.
 *
 * By *heap*: inputs and outputs lie where all ranks can reach them (zcoll_alloc()), and
 * nothing is copied. Of a result that all ranks get each rank makes a part, and writes it to
 * all outputs, so that each input byte is read once and each output byte written once, as the
 * kernel does it. Then all wait until all are ready.
 *
 * Which it is depends on what all ranks call; a rank that cannot, because its memory is
 * elsewhere, says in its line that the call is for the kernel.
 */
#include <errno.h>

#include "mail.h"

/* Bytes of the whole up to which copies are less work than a second wait */
#define COPY_BYTES	1024
/* The same where ranks share CPUs, and a wait is a turn of the others */
#define COPY_BYTES_CROWDED	8192
/*
 * Where ranks share CPUs, bytes of the whole up to which each makes its part, and waits for all
 * others to get a turn. In the kernel, who has a turn does what is left of the work.
 */
#define HEAP_BYTES_CROWDED	(256UL << 10)
/* Bytes of all ranks' inputs together, which each rank reads, up to which mail is less work */
#define MAIL_ALL_BYTES	(128UL << 10)
/*
 * Of all inputs and outputs, from which on results go past the caches: 1.5 to 1.9 times as fast as
 * into them already at just that size (2 ranks, 8 MiB). Not by sysconf(), which may tell the sum
 * of caches of which a core reaches one (320 MiB where the module finds 32).
 */
#define STREAM_BYTES	(32UL << 20)
/* Elements of a part begin at a multiple of so many bytes */
#define PART_BYTES	64

/* ------------------------------------------------------------------ which way */

/* Equal for equal calls, and only for them; counts that do not fit are for the kernel */
#define COUNT_BITS	42

static uint64_t pack(const struct zcoll_comm *comm, const struct zcoll_call *call)
{
	return (uint64_t)call->count << 22 | (uint64_t)call->root << 16 |
	       (uint64_t)(call->flags | atomic_load(&comm->flags)) << 12 |
	       (uint64_t)call->op << 8 | (uint64_t)call->dtype << 4 | call->collective;
}

/* Are @bytes at @at in the heap of a span? */
static bool within(uint64_t at, uint64_t bytes)
{
	return bytes <= ZCOLL_SPAN_BYTES && at >= ZCOLL_MAILBOX_BYTES &&
	       at <= ZCOLL_SPAN_BYTES - bytes;
}

/* Where @side lies in this rank's span; 0: it does not, or there is none */
static uint64_t place_in_span(const struct zc_mail *mail, const struct zc_side *side)
{
	uintptr_t span = (uintptr_t)atomic_load_explicit(&mail->spans[mail->rank],
							 memory_order_relaxed);

	return span && within(side->addr - span, side->len) ? side->addr - span : 0;
}

/* Are this rank's operands where all can reach them, and can it reach theirs? */
static bool in_heap(struct zcoll_comm *comm, const struct zc_sides *sides,
		    struct zc_operands *operands)
{
	operands->send = place_in_span(comm->mail, &sides->in);
	operands->recv = place_in_span(comm->mail, &sides->out);
	if ((sides->in.len && !operands->send) || (sides->out.len && !operands->recv))
		return false;
	for (unsigned int i = 0; i < comm->nranks; i++)
		if (!zc_mail_span(comm, i))
			return false;
	return true;
}

/*
 * An agreed verdict is the kernel's, for death may come between two ranks' looks. So is that of a
 * communicator that has come to its end.
 */
static bool for_kernel(struct zcoll_comm *comm, const struct zcoll_call *call)
{
	return call->count >> COUNT_BITS || atomic_load(&comm->used_plans[call->collective]) ||
	       (call->flags | atomic_load(&comm->flags)) & ZCOLL_CMD_AGREED ||
	       !zc_mail_all_open(comm->mail) || zc_mail_revoked(comm->mail);
}

/* Up to so many bytes of the whole, copies are less work than a second wait */
static uint64_t copy_bytes(const struct zc_mail *mail)
{
	return mail->crowded ? COPY_BYTES_CROWDED : COPY_BYTES;
}

/* Is it worth while to look whether operands are in heaps? */
static bool heap_pays(const struct zc_mail *mail, uint64_t bytes)
{
	return bytes > copy_bytes(mail) && (!mail->crowded || bytes <= HEAP_BYTES_CROWDED);
}

static unsigned int choose(struct zcoll_comm *comm, const struct zc_sides *sides, uint64_t seq,
			   struct zc_operands *operands)
{
	if (for_kernel(comm, sides->call))
		return ZCOLL_FORM_COMMAND;
	if (heap_pays(comm->mail, sides->all) && in_heap(comm, sides, operands))
		return ZCOLL_FORM_HEAP;
	if (sides->all <= comm->mail_bytes && sides->all * comm->nranks <= MAIL_ALL_BYTES &&
	    (sides->in.len <= ZCOLL_LINE_PAYLOAD || zc_mail_slot_free(comm->mail, seq)))
		return ZCOLL_FORM_MAIL;
	return ZCOLL_FORM_COMMAND;
}

/* --------------------------------------------------------------------- by mail */

static void send_mail(struct zcoll_comm *comm, const struct zc_sides *sides,
		      struct zc_letter *letter)
{
	const struct zc_side *in = &sides->in;

	if (in->len > ZCOLL_LINE_PAYLOAD) {
		zc_mail_copy(comm->mail, (char *)comm->mail->own + ZC_MAIL_SLOT_AT(letter->seq),
			     (const void *)in->addr, in->len);
		zc_mail_write(comm, letter, NULL, 0);
	} else {
		zc_mail_write(comm, letter, (const void *)in->addr, in->len);
	}
}

static void do_mail(struct zcoll_comm *comm, const struct zc_sides *sides,
		    const struct zc_letter *letter)
{
	const void *inputs[ZCOLL_MAILBOX_RANKS];
	const struct zc_mail *mail = comm->mail;
	bool in_line = sides->input <= ZCOLL_LINE_PAYLOAD;

	for (unsigned int i = 0; i < comm->nranks; i++)
		inputs[i] = in_line ? zc_mail_line(mail, i, letter->seq)->payload :
			    (const void *)zc_mail_at(mail, i, ZC_MAIL_SLOT_AT(letter->seq));
	zc_mail_pull(comm, sides, inputs);
}

/* --------------------------------------------------------------------- by heap */

/* What a rank says of its operands; read once, for it can write there at any time */
static struct zc_operands read_operands(const struct zcoll_line *line)
{
	const uint64_t *said = (const uint64_t *)line->payload;

	return (struct zc_operands) {
		.send = __atomic_load_n(&said[0], __ATOMIC_RELAXED),
		.recv = __atomic_load_n(&said[1], __ATOMIC_RELAXED),
	};
}

/* All ranks' operands. Return: false: what a rank says is not in its heap. */
static bool find_operands(struct zcoll_comm *comm, const struct zc_sides *sides,
			  const struct zc_letter *letter, const void **inputs, void **outputs)
{
	const struct zcoll_call *call = sides->call;

	for (unsigned int i = 0; i < comm->nranks; i++) {
		char *span = zc_mail_span(comm, i);
		struct zc_operands at = read_operands(zc_mail_line(comm->mail, i, letter->seq));

		if ((call->collective != ZCOLL_BROADCAST || i == call->root) &&
		    !within(at.send, sides->input))
			return false;
		if ((call->collective != ZCOLL_REDUCE || i == call->root) &&
		    !within(at.recv, sides->output))
			return false;
		inputs[i] = span + at.send;
		outputs[i] = span + at.recv;
	}
	return true;
}

/* Where the part of rank @i begins, in elements */
static uint64_t part_at(const struct zcoll_comm *comm, const struct zcoll_call *call,
			unsigned int i)
{
	uint64_t step = PART_BYTES / zcoll_dtype_size(call->dtype);

	if (i == comm->nranks)
		return call->count;
	return (call->count / step * i / comm->nranks) * step;
}

static void do_heap(struct zcoll_comm *comm, const struct zc_sides *sides,
		    const void *const *inputs, void *const *outputs)
{
	const struct zcoll_call *call = sides->call;
	bool one = call->collective == ZCOLL_REDUCE;
	uint64_t first;

	if (call->collective != ZCOLL_ALLREDUCE && !one) {
		zc_mail_pull(comm, sides, inputs);
		return;
	}
	first = part_at(comm, call, comm->rank);
	zc_mail_fold(comm, call, one ? outputs + call->root : outputs, one ? 1 : comm->nranks,
		     inputs, first, part_at(comm, call, comm->rank + 1) - first,
		     !sides->same && sides->all >= STREAM_BYTES / 2 / comm->nranks);
}

/* A rank says that its operands are where they cannot be: nobody can go on */
static int misled(struct zcoll_comm *comm, uint64_t seq)
{
	zcoll_comm_abort(comm);
	return zc_fail(comm, -ECANCELED,
		       "rank %u, operation %llu: a rank names memory outside of its heap; aborted",
		       comm->rank, (unsigned long long)seq);
}

/* The communicator came to its end while ranks reduced; or one left, and others wait for it */
static int broken_off(struct zcoll_comm *comm, uint64_t seq)
{
	int error = __atomic_load_n(&comm->mail->verdict->error, __ATOMIC_RELAXED);

	if (error)
		return zc_fail_op(comm, seq, error);
	zcoll_comm_abort(comm);
	return zc_fail(comm, -ESHUTDOWN, "rank %u, operation %llu: a rank left in the middle of it",
		       comm->rank, (unsigned long long)seq);
}

static int by_heap(struct zcoll_comm *comm, const struct zc_sides *sides,
		   struct zc_letter *letter)
{
	const void *inputs[ZCOLL_MAILBOX_RANKS];
	void *outputs[ZCOLL_MAILBOX_RANKS];

	if (!find_operands(comm, sides, letter, inputs, outputs))
		return misled(comm, letter->seq);
	do_heap(comm, sides, inputs, outputs);
	zc_mail_done(comm, letter->seq);
	return zc_mail_await_done(comm, letter) ? 0 : broken_off(comm, letter->seq);
}

/* ----------------------------------------------------------------- the functions */

static void count(struct zcoll_mailbox *own, unsigned int form)
{
	__atomic_fetch_add(form == ZCOLL_FORM_MAIL ? &own->mails : &own->heaps, 1,
			   __ATOMIC_RELAXED);
}

/**
 * zc_mail_call - do a blocking call without the kernel, if that can be
 * @comm: has mailboxes
 * @sides: the call, checked
 * @seq: its number
 * @result: output, if true is returned
 * @deadline_ns: output, if false is returned: what is left of the deadline; 0: all of it
 *
 * Return: true: it has ended; false: it is to be submitted to the kernel.
 */
bool zc_mail_call(struct zcoll_comm *comm, const struct zc_sides *sides, uint64_t seq,
		  int *result, uint64_t *deadline_ns)
{
	struct zc_operands operands = { 0 };
	struct zc_letter letter = {
		.seq = seq,
		.packed = pack(comm, sides->call),
		.form = choose(comm, sides, seq, &operands),
		.deadline_ns = sides->call->deadline_ns ? sides->call->deadline_ns :
							  comm->deadline_ns,
	};

	zc_seq_begin(comm, seq);
	if (letter.form == ZCOLL_FORM_MAIL)
		send_mail(comm, sides, &letter);
	else
		zc_mail_write(comm, &letter, &operands, sizeof(operands));
	if (letter.form == ZCOLL_FORM_COMMAND || zc_mail_await(comm, &letter) != ZC_LOOK_SAME) {
		zc_seq_begin_undo(comm, seq);
		*deadline_ns = zc_mail_left(&letter);
		return false;
	}
	*result = 0;
	if (letter.form == ZCOLL_FORM_MAIL)
		do_mail(comm, sides, &letter);
	else
		*result = by_heap(comm, sides, &letter);
	count(comm->mail->own, letter.form);
	zc_seq_done(comm, seq);
	return true;
}

/**
 * zc_mail_announce - say that a call goes to the kernel
 * @comm: the communicator; nothing happens if it has no mailboxes
 * @call: the call
 * @seq: its number
 */
void zc_mail_announce(struct zcoll_comm *comm, const struct zcoll_call *call, uint64_t seq)
{
	struct zc_letter letter = { .seq = seq, .form = ZCOLL_FORM_COMMAND };

	if (!comm->mail)
		return;
	letter.packed = pack(comm, call);
	zc_mail_write(comm, &letter, NULL, 0);
}

/* All of this rank's operations below @seq have ended: others may use what they have read */
void zc_mail_ended(struct zcoll_comm *comm, uint64_t seq)
{
	if (comm->mail)
		__atomic_store_n(&comm->mail->own->ended, seq, __ATOMIC_RELEASE);
}
