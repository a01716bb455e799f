// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Communicators: making them (join.c does the joining), leaving, and questions about
 * them.
 *
 * To the kernel a rank is an address space, so a forked child must not submit. The
 * library notices without a system call by a page that fork() wipes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

void zcoll_attr_init(struct zcoll_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->nranks = 1;
	attr->join_timeout_ns = ZCOLL_JOIN_TIMEOUT_NS;
}

/* ---------------------------------------------------------- whose it is */

static uint32_t *owner_page(void)
{
	size_t len = sysconf(_SC_PAGESIZE);
	uint32_t *page;

	page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, len, MADV_WIPEONFORK)) {
		munmap(page, len);
		return NULL;
	}
	*page = 1;
	return page;
}

/* Is this the address space that joined? */
bool zc_is_owner(const struct zcoll_comm *comm)
{
	return *(volatile const uint32_t *)comm->owner;
}

/*
 * In the child of a fork() another thread of the parent may have held any lock when
 * it was made, so no text is kept: zcoll_comm_error() knows it.
 */
int zc_check_owner(struct zcoll_comm *comm)
{
	return zc_is_owner(comm) ? 0 : -EPERM;
}

/* ------------------------------------------------- state of the communicator */

/* How the communicator stands; @st holds buffers for what to know more, or zeroes */
int zc_comm_status(struct zcoll_comm *comm, struct zcoll_status *st)
{
	st->size = sizeof(*st);
	st->flags = ZCOLL_STATUS_COMM;
	return zc_ioctl(comm->fd, ZCOLL_IOC_STATUS, st);
}

bool zc_is_revoked(struct zcoll_comm *comm)
{
	struct zcoll_status st = { 0 };

	return !zc_comm_status(comm, &st) && st.state == ZCOLL_STATE_DONE;
}

/* ------------------------------------------------------------------ making */

void zc_comm_destroy(struct zcoll_comm *comm)
{
	if (comm->fd >= 0)
		close(comm->fd);
	for (unsigned int i = 0; i < comm->nr_lifelines; i++)
		close(comm->lifelines[i]);
	free(comm->lifelines);
	if (comm->owner)
		munmap((void *)comm->owner, sysconf(_SC_PAGESIZE));
	pthread_rwlock_destroy(&comm->ranges_lock);
	pthread_mutex_destroy(&comm->seq_lock);
	pthread_mutex_destroy(&comm->ring_lock);
	pthread_mutex_destroy(&comm->planner_lock);
	pthread_mutex_destroy(&comm->text_lock);
	free(comm->node_map);
	free(comm);
}

static struct zcoll_comm *comm_new(const struct zcoll_attr *attr, const struct zcoll_info *info,
				   const struct zc_settings *settings)
{
	struct zcoll_comm *comm = calloc(1, sizeof(*comm));

	if (!comm)
		return NULL;
	comm->fd = -1;
	comm->rank = attr->rank;
	comm->nranks = attr->nranks;
	comm->nodes = 1;
	comm->members = 1;
	comm->deadline_ns = attr->deadline_ns;
	comm->window = info->window;
	comm->types = info->types;
	comm->ops = info->ops;
	comm->has_mailbox = settings->mailbox && info->features & ZCOLL_FEAT_MAILBOX;
	comm->mail_bytes = settings->mail_bytes;
	pthread_rwlock_init(&comm->ranges_lock, NULL);
	pthread_mutex_init(&comm->seq_lock, NULL);
	pthread_mutex_init(&comm->ring_lock, NULL);
	pthread_mutex_init(&comm->planner_lock, NULL);
	pthread_mutex_init(&comm->text_lock, NULL);
	comm->owner = owner_page();
	if (!comm->owner) {
		zc_comm_destroy(comm);
		return NULL;
	}
	return comm;
}

/**
 * zc_comm_new - read the settings, open the device and make a communicator that has not joined
 * @comm: output
 * @dev: output: the device
 * @attr: attr
 */
int zc_comm_new(struct zcoll_comm **comm, int *dev, const struct zcoll_attr *attr)
{
	struct zc_settings settings;
	struct zcoll_info info;
	int ret = zc_settings_get(&settings, attr);

	if (ret)
		return ret;
	*dev = zc_device_open(attr->device, &info, attr->error, attr->error_len);
	if (*dev < 0)
		return *dev;
	*comm = comm_new(attr, &info, &settings);
	if (*comm)
		return 0;
	close(*dev);
	return zc_text(attr->error, attr->error_len, -ENOMEM,
		       "rank %u: no memory for a communicator", attr->rank);
}

static int check_exchange(const struct zcoll_attr *attr)
{
	if (attr->exchange > ZCOLL_EXCHANGE_GATHER)
		return zc_text(attr->error, attr->error_len, -EINVAL, "exchange %u: no such kind",
			       attr->exchange);
	if (attr->exchange == ZCOLL_EXCHANGE_GATHER && !attr->gather)
		return zc_text(attr->error, attr->error_len, -EINVAL,
			       "the caller's exchange: the attr has no function");
	if (attr->exchange && !attr->join_timeout_ns)
		return zc_text(attr->error, attr->error_len, -EINVAL,
			       "join time-out of 0: on several nodes ranks must be waited for");
	if (attr->aggregators && attr->exchange != ZCOLL_EXCHANGE_STORE)
		return zc_text(attr->error, attr->error_len, -EINVAL,
			       "%u aggregators: they need a store (ZCOLL_STORE=HOST:PORT)",
			       attr->aggregators);
	if (attr->aggregators >= ZCOLL_MAX_NODES)
		return zc_text(attr->error, attr->error_len, -EINVAL,
			       "%u aggregators: at most %u", attr->aggregators,
			       ZCOLL_MAX_NODES - 1);
	return 0;
}

/* What the kernel would refuse too, but with less to say about it */
static int check_attr(const struct zcoll_attr *attr, const char *what, unsigned int number)
{
	unsigned int max = attr->exchange ? ZCOLL_MAX_SIZE : ZCOLL_MAX_RANKS;

	if (!attr->nranks || attr->nranks > max)
		return zc_text(attr->error, attr->error_len, -EINVAL,
			       "%u ranks: must be 1 to %u", attr->nranks, max);
	if (attr->rank >= number)
		return zc_text(attr->error, attr->error_len, -EINVAL,
			       "%s %u of %u: must be 0 to %u", what, attr->rank, number,
			       number - 1);
	if (attr->deadline_ns > ZCOLL_MAX_DEADLINE_NS)
		return zc_text(attr->error, attr->error_len, -EINVAL,
			       "deadline of %llu ns: at most %llu, a day",
			       (unsigned long long)attr->deadline_ns,
			       (unsigned long long)ZCOLL_MAX_DEADLINE_NS);
	return check_exchange(attr);
}

static int create_here(struct zcoll_comm **out, const struct zcoll_attr *attr)
{
	struct zcoll_comm *comm;
	int dev, ret;

	ret = zc_comm_new(&comm, &dev, attr);
	if (ret)
		return ret;
	ret = zc_join_here(comm, dev, attr);
	close(dev);
	if (ret) {
		zc_comm_destroy(comm);
		return ret;
	}
	*out = comm;
	return 0;
}

int zcoll_comm_create(struct zcoll_comm **comm, const struct zcoll_attr *attr)
{
	int ret;

	if (attr->size != sizeof(*attr))
		return -EINVAL;		/* then the place of the text is not known either */
	ret = check_attr(attr, "rank", attr->nranks);
	if (ret)
		return ret;
	ret = attr->exchange ? zc_join_nodes(comm, attr, false) : create_here(comm, attr);
	if (!ret)
		zc_mail_open(*comm);
	return ret;
}

int zcoll_aggregator_create(struct zcoll_comm **comm, const struct zcoll_attr *attr)
{
	int ret;

	if (attr->size != sizeof(*attr))
		return -EINVAL;
	if (!attr->aggregators)
		return zc_text(attr->error, attr->error_len, -EINVAL,
			       "an aggregator, but ZCOLL_AGGREGATORS or the attr says that there are 0");
	ret = check_attr(attr, "aggregator", attr->aggregators);
	return ret ? ret : zc_join_nodes(comm, attr, true);
}

int zcoll_comm_create_from_env(struct zcoll_comm **comm, char *error, size_t error_len)
{
	struct zcoll_attr attr;
	int ret;

	zcoll_attr_init(&attr);
	attr.error = error;
	attr.error_len = error_len;
	ret = zcoll_attr_from_env(&attr);
	return ret ? ret : zcoll_comm_create(comm, &attr);
}

/* ----------------------------------------------------------------- leaving */

static void leave(struct zcoll_comm *comm)
{
	struct zcoll_flags flags = { .size = sizeof(flags) };

	while (zc_ioctl(comm->fd, ZCOLL_IOC_LEAVE, &flags) == -EINTR)
		;
}

int zcoll_comm_free(struct zcoll_comm *comm)
{
	if (!comm)
		return 0;
	if (zc_is_owner(comm)) {
		if (zc_requests_busy(comm) && !zc_is_revoked(comm))
			return zc_fail(comm, -EBUSY,
				       "rank %u: requests are in flight or were not waited for: wait for them, or abort the communicator, then free it",
				       comm->rank);
		zc_meeting_abandon(comm);
		leave(comm);
		zc_lifelines_end(comm);
	}
	zc_requests_free(comm);
	zc_ranges_free(comm);
	zc_mail_close(comm);
	zc_comm_destroy(comm);
	return 0;
}

int zcoll_comm_abort(struct zcoll_comm *comm)
{
	struct zcoll_flags flags = { .size = sizeof(flags) };
	int ret = zc_ioctl(comm->fd, ZCOLL_IOC_ABORT, &flags);

	if (ret)
		return zc_fail(comm, ret, "rank %u: abort: %s", comm->rank, strerror(-ret));
	return 0;
}

/* --------------------------------------------------------------- questions */

unsigned int zcoll_comm_rank(const struct zcoll_comm *comm)
{
	return comm->rank;
}

unsigned int zcoll_comm_size(const struct zcoll_comm *comm)
{
	return comm->nranks;
}

unsigned int zcoll_comm_nodes(const struct zcoll_comm *comm)
{
	return comm->nodes;
}

unsigned int zcoll_comm_node(const struct zcoll_comm *comm)
{
	return comm->node;
}

int zcoll_comm_node_of(const struct zcoll_comm *comm, unsigned int rank)
{
	if (rank >= comm->nranks)
		return -EINVAL;
	return comm->node_map ? (int)comm->node_map[rank] : 0;
}

int zcoll_comm_fd(const struct zcoll_comm *comm)
{
	return comm->fd;
}

int zcoll_comm_stats(struct zcoll_comm *comm, struct zcoll_stats *stats)
{
	int ret;

	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	ret = zc_ioctl(comm->fd, ZCOLL_IOC_STATS, stats);
	if (ret)
		return zc_fail(comm, ret, "rank %u: statistics: %s", comm->rank, strerror(-ret));
	return 0;
}

int zcoll_comm_pending(struct zcoll_comm *comm, uint64_t seq, struct zcoll_status *status)
{
	int ret;

	status->size = sizeof(*status);
	status->flags = 0;
	status->seq = seq;
	status->__reserved = 0;
	ret = zc_ioctl(comm->fd, ZCOLL_IOC_STATUS, status);
	if (ret)
		return zc_fail(comm, ret, "rank %u: status of operation %llu: %s", comm->rank,
			       (unsigned long long)seq, strerror(-ret));
	return 0;
}
