// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The shared memory: mapped when a communicator has been joined, given back with it. Where
 * it cannot be had, for there are several nodes, or too many ranks, or an older module, there
 * is none, and the kernel does everything.
 *
 * Other ranks' heaps are mapped when they are first needed: their spans are large, and many
 * programs use one memory only.
 */
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compat.h"
#include "mail.h"

/* Longer than a sleeper needs to wake up, or one rank's sleep would make the other sleep, too */
#define SPINS		20000
/*
 * Where ranks share a CPU, the line may be of a rank that cannot run while this one looks; but
 * if the others are on another CPU, a turn given away too early comes back for nothing
 */
#define SPINS_CROWDED	50
#define YIELDS_CROWDED	8

static void *map(const struct zcoll_comm *comm, uint64_t offset, size_t bytes, int prot)
{
	void *p = mmap(NULL, bytes, prot, MAP_SHARED | MAP_NORESERVE, comm->fd, offset);

	return p == MAP_FAILED ? NULL : p;
}

static bool map_boxes(const struct zcoll_comm *comm, struct zc_mail *mail)
{
	size_t page = sysconf(_SC_PAGESIZE);

	mail->verdict = map(comm, 0, page, PROT_READ);
	if (!mail->verdict)
		return false;
	for (unsigned int i = 0; i < comm->nranks; i++) {
		int prot = i == comm->rank ? PROT_READ | PROT_WRITE : PROT_READ;

		mail->boxes[i] = map(comm, ZCOLL_SPAN(i), ZCOLL_MAILBOX_BYTES, prot);
		if (!mail->boxes[i])
			return false;
	}
	return true;
}

static void unmap_boxes(struct zc_mail *mail)
{
	if (mail->verdict)
		munmap((void *)mail->verdict, sysconf(_SC_PAGESIZE));
	for (unsigned int i = 0; i < mail->nranks; i++)
		if (mail->boxes[i])
			munmap((void *)mail->boxes[i], ZCOLL_MAILBOX_BYTES);
}

static void unmap_heaps(struct zc_mail *mail)
{
	for (unsigned int i = 0; i < mail->nranks; i++)
		if (mail->spans[i])
			munmap(mail->spans[i] + ZCOLL_MAILBOX_BYTES,
			       ZCOLL_SPAN_BYTES - ZCOLL_MAILBOX_BYTES);
}

/* Are there fewer CPUs for the ranks than ranks, as far as this one can see? */
static bool shares_cpu(const struct zc_mail *mail)
{
	cpu_set_t cpus;

	/* Bound to one CPU, as launchers do it: the others will be bound to theirs */
	if (sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) == 1)
		return mail->crowded;
	return (unsigned int)CPU_COUNT(&cpus) < mail->nranks;
}

static void set_patience(struct zc_mail *mail)
{
	mail->crowded = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN) < mail->nranks;
	mail->spins = shares_cpu(mail) ? SPINS_CROWDED : SPINS;
	mail->yields = shares_cpu(mail) ? YIELDS_CROWDED : 0;
}

/**
 * zc_mail_open - map the mailboxes, if there can be some
 * @comm: has joined
 *
 * From then on comm->mail is there, and this rank writes lines.
 */
void zc_mail_open(struct zcoll_comm *comm)
{
	struct zc_mail *mail;

	if (!comm->has_mailbox || comm->nodes > 1 || comm->nranks > ZCOLL_MAILBOX_RANKS)
		return;
	mail = calloc(1, sizeof(*mail));
	if (!mail)
		return;
	mail->nranks = comm->nranks;
	mail->rank = comm->rank;
	mail->loops = zc_compat_loops();
	if (!map_boxes(comm, mail)) {
		unmap_boxes(mail);
		free(mail);
		return;
	}
	mail->own = (struct zcoll_mailbox *)mail->boxes[comm->rank];
	set_patience(mail);
	comm->mail = mail;
	__atomic_store_n(&mail->own->version, ZCOLL_MAILBOX_VERSION, __ATOMIC_RELEASE);
}

/* A child of fork() has the heaps only: where its parent has mailboxes may be something else */
void zc_mail_close(struct zcoll_comm *comm)
{
	if (!comm->mail)
		return;
	if (zc_is_owner(comm))
		unmap_boxes(comm->mail);
	unmap_heaps(comm->mail);
	free(comm->mail);
	comm->mail = NULL;
}

/**
 * zc_mail_span - a rank's span
 * @comm: has mailboxes
 * @rank: the rank
 *
 * Return: where it would begin, of which the heap is mapped; NULL: it cannot be.
 */
char *zc_mail_span(struct zcoll_comm *comm, unsigned int rank)
{
	struct zc_mail *mail = comm->mail;
	char *span = atomic_load_explicit(&mail->spans[rank], memory_order_acquire);
	const size_t bytes = ZCOLL_SPAN_BYTES - ZCOLL_MAILBOX_BYTES;
	char *heap, *other = NULL;

	if (span)
		return span;
	heap = map(comm, ZCOLL_SPAN(rank) + ZCOLL_MAILBOX_BYTES, bytes, PROT_READ | PROT_WRITE);
	if (!heap)
		return NULL;
	if (rank != comm->rank)
		madvise(heap, bytes, MADV_DONTDUMP);
	madvise(heap, bytes, MADV_HUGEPAGE);
	span = heap - ZCOLL_MAILBOX_BYTES;
	if (atomic_compare_exchange_strong(&mail->spans[rank], &other, span))
		return span;
	munmap(heap, bytes);
	return other;
}
