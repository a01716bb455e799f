// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Bootstrap from the environment: a table of launchers, of which the first whose
 * variables are there counts. What is wrong with a variable is told with its name
 * and value.
 *
 * The key of a communicator is made of the *name of the job*, which must be the
 * same on all ranks and no other job's.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "bootstrap.h"

#define FAIL(attr, err, ...)	zc_text((attr)->error, (attr)->error_len, err, __VA_ARGS__)

/* -------------------------------------------------------------- one variable */

static int missing(struct zcoll_attr *attr, const char *have, const char *name)
{
	return FAIL(attr, -EINVAL, "%s is set and %s is not", have, name);
}

/* A decimal number that fits 31 bits */
static int get_number(struct zcoll_attr *attr, const char *name, unsigned int *number)
{
	const char *value = getenv(name);
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (!isdigit((unsigned char)value[0]) || *end || errno || n > INT32_MAX)
		return FAIL(attr, -EINVAL, "%s=%.80s: not a number", name, value);
	*number = n;
	return 0;
}

/* A time: a whole number and its unit */
static int get_time(struct zcoll_attr *attr, const char *name, uint64_t max, uint64_t *ns)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {
		{ "", 1000000000 }, { "s", 1000000000 }, { "ms", 1000000 },
		{ "us", 1000 }, { "ns", 1 },
	};
	const char *value = getenv(name);
	unsigned long long n;
	char *end;

	if (!value)
		return 0;
	errno = 0;
	n = strtoull(value, &end, 10);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!isdigit((unsigned char)value[0]) || errno || strcmp(end, units[i].unit))
			continue;
		if (n > max / units[i].ns)
			return FAIL(attr, -EINVAL, "%s=%.80s: at most %llu s", name, value,
				    (unsigned long long)(max / 1000000000));
		*ns = n * units[i].ns;
		return 0;
	}
	return FAIL(attr, -EINVAL, "%s=%.80s: not a time: a whole number and ns, us, ms or s", name,
		    value);
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* ZCOLL_KEY: 32 hex digits */
static int get_key(struct zcoll_attr *attr)
{
	const char *value = getenv("ZCOLL_KEY");
	bool good = strlen(value) == 32;

	for (int i = 0; good && i < 16; i++) {
		int high = hex_digit(value[2 * i]), low = hex_digit(value[2 * i + 1]);

		good = high >= 0 && low >= 0;
		attr->key[i] = high << 4 | low;
	}
	if (!good)
		return FAIL(attr, -EINVAL, "ZCOLL_KEY=%.80s: must be 32 hex digits", value);
	return 0;
}

/* ----------------------------------------------------- the names of the jobs */

static int job_zcoll(struct zcoll_attr *attr, char *job)
{
	(void)job;	/* ZCOLL_KEY is the key itself */
	return missing(attr, getenv("ZCOLL_RANK") ? "ZCOLL_RANK" : "ZCOLL_AGGREGATOR", "ZCOLL_KEY");
}

/* A restarted job must not meet what is left of its last start */
static int job_torch(struct zcoll_attr *attr, char *job)
{
	const char *addr = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
	const char *id = getenv("TORCHELASTIC_RUN_ID");
	const char *restart = getenv("TORCHELASTIC_RESTART_COUNT");

	if (!addr || !port)
		return missing(attr, "RANK", addr ? "MASTER_PORT" : "MASTER_ADDR");
	snprintf(job, ZC_JOB_MAX, "torch:%s:%s:%s:%s", addr, port, id ? id : "",
		 restart ? restart : "");
	return 0;
}

static int job_ompi(struct zcoll_attr *attr, char *job)
{
	const char *id = getenv("PMIX_NAMESPACE");

	if (!id)
		id = getenv("OMPI_MCA_ess_base_jobid");
	if (!id)
		return FAIL(attr, -EINVAL, "OMPI_COMM_WORLD_RANK is set, and none of PMIX_NAMESPACE, OMPI_MCA_ess_base_jobid and ZCOLL_KEY");
	snprintf(job, ZC_JOB_MAX, "ompi:%s", id);
	return 0;
}

/* When did process @pid start, in ticks since boot? Field 22 of its stat file */
static int start_time(int pid, char *ticks, size_t len)
{
	char path[40], stat[1024], *at;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	n = fread(stat, 1, sizeof(stat) - 1, file);
	fclose(file);
	stat[n] = '\0';

	at = strrchr(stat, ')');	/* field 2, the name, may hold anything */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return -EINVAL;
	snprintf(ticks, len, "%.*s", (int)strcspn(at + 1, " \n"), at + 1);
	return 0;
}

/*
 * MPICH's mpiexec gives the job no name. But PMI_FD is one end of a socket pair,
 * made by the process that started the ranks of this node: that process, by number
 * and start, names the job here. Nothing is sent on the socket: it is MPI's.
 */
static int job_pmi_fd(struct zcoll_attr *attr, char *job)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	unsigned int fd;
	char ticks[32];
	int ret;

	ret = get_number(attr, "PMI_FD", &fd);
	if (ret)
		return ret;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || peer.pid <= 0)
		return FAIL(attr, -EINVAL, "PMI_FD=%u: not a socket of the launcher on this node; set ZCOLL_KEY",
			    fd);
	ret = start_time(peer.pid, ticks, sizeof(ticks));
	if (ret)
		return FAIL(attr, ret, "PMI_FD=%u: its process %d is not to be seen in /proc; set ZCOLL_KEY",
			    fd, peer.pid);
	snprintf(job, ZC_JOB_MAX, "pmi:%d:%s", peer.pid, ticks);
	return 0;
}

static int job_pmi(struct zcoll_attr *attr, char *job)
{
	const char *id = getenv("PMI_JOBID");

	if (id) {
		snprintf(job, ZC_JOB_MAX, "pmi:%s", id);
		return 0;
	}
	/* Each node has such a process of its own */
	if (attr->exchange)
		return FAIL(attr, -EINVAL, "PMI_RANK is set, and neither PMI_JOBID nor ZCOLL_KEY: on several nodes set ZCOLL_KEY to 32 hex digits, the same for all ranks");
	if (getenv("PMI_FD"))
		return job_pmi_fd(attr, job);
	return FAIL(attr, -EINVAL, "PMI_RANK is set, and none of PMI_JOBID, PMI_FD and ZCOLL_KEY");
}

static int job_slurm(struct zcoll_attr *attr, char *job)
{
	const char *id = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");

	if (!id || !step)
		return FAIL(attr, -EINVAL, "SLURM_PROCID is set and %s is not: start the ranks with srun",
			    id ? "SLURM_STEP_ID" : "SLURM_JOB_ID");
	snprintf(job, ZC_JOB_MAX, "slurm:%s.%s", id, step);
	return 0;
}

static int job_pmix(struct zcoll_attr *attr, char *job)
{
	const char *id = getenv("PMIX_NAMESPACE");

	if (!id)
		return missing(attr, "PMIX_RANK", "PMIX_NAMESPACE");
	snprintf(job, ZC_JOB_MAX, "pmix:%s", id);
	return 0;
}

/* ------------------------------------------------------------- the launchers */

/**
 * struct launcher - how a launcher names things
 * @rank: variable of the rank
 * @size: variable of the number of ranks; NULL: ask PMIx
 * @size_too: another one; size variables do not count without @rank then, as they
 *	are also set where no rank is
 * @local: variable of the number of ranks on this node, or NULL
 * @nodes: variable of the number of nodes, or NULL
 * @pmix: has it a PMIx server, if PMIX_NAMESPACE is set?
 * @master: does it set MASTER_ADDR and MASTER_PORT?
 * @aggregator: @rank is the index of an aggregator
 * @job: write the name of the job, of at most ZC_JOB_MAX bytes
 */
struct launcher {
	const char *rank;
	const char *size;
	const char *size_too;
	const char *local;
	const char *nodes;
	bool pmix;
	bool master;
	bool aggregator;
	int (*job)(struct zcoll_attr *attr, char *job);
};

static const struct launcher launchers[] = {
	{ .rank = "ZCOLL_AGGREGATOR", .size = "ZCOLL_SIZE", .size_too = "ZCOLL_SIZE",
	  .aggregator = true, .job = job_zcoll },
	{ .rank = "ZCOLL_RANK", .size = "ZCOLL_SIZE", .local = "LOCAL_WORLD_SIZE",
	  .job = job_zcoll },
	{ .rank = "RANK", .size = "WORLD_SIZE", .local = "LOCAL_WORLD_SIZE", .master = true,
	  .job = job_torch },
	{ .rank = "OMPI_COMM_WORLD_RANK", .size = "OMPI_COMM_WORLD_SIZE",
	  .local = "OMPI_COMM_WORLD_LOCAL_SIZE", .pmix = true, .job = job_ompi },
	{ .rank = "PMI_RANK", .size = "PMI_SIZE", .local = "MPI_LOCALNRANKS", .job = job_pmi },
	{ .rank = "SLURM_PROCID", .size = "SLURM_STEP_NUM_TASKS", .size_too = "SLURM_NTASKS",
	  .nodes = "SLURM_STEP_NUM_NODES", .pmix = true, .job = job_slurm },
	{ .rank = "PMIX_RANK", .pmix = true, .job = job_pmix },
};

static bool is_there(const struct launcher *l)
{
	return getenv(l->rank) || (l->size && !l->size_too && getenv(l->size));
}

/* The launcher's size variable, NULL if it is not set */
static const char *size_variable(const struct launcher *l)
{
	if (l->size && getenv(l->size))
		return l->size;
	return l->size_too && getenv(l->size_too) ? l->size_too : NULL;
}

/* Rank and size, which the exchange bounds; @local: ranks on this node, if PMIx says it */
static int get_place(struct zcoll_attr *attr, const struct launcher *l, unsigned int *local)
{
	const char *size = size_variable(l);
	int ret;

	if (!getenv(l->rank))
		return missing(attr, size, l->rank);
	if (!size && l->size)
		return missing(attr, l->rank, l->size);
	ret = get_number(attr, l->rank, &attr->rank);
	if (!ret)
		ret = size ? get_number(attr, size, &attr->nranks) : zc_pmix_size(attr, local);
	return ret;
}

static int check_place(struct zcoll_attr *attr, const struct launcher *l)
{
	unsigned int max = attr->exchange ? ZCOLL_MAX_SIZE : ZCOLL_MAX_RANKS;
	unsigned int number = l->aggregator ? attr->aggregators : attr->nranks;
	const char *size = size_variable(l);

	if (!size)
		size = "size of the PMIx job";
	if (!attr->nranks || attr->nranks > max)
		return FAIL(attr, -EINVAL, "%s=%u: must be 1 to %u", size, attr->nranks, max);
	if (attr->rank >= number)
		return FAIL(attr, -EINVAL, "%s=%u: must be less than %s=%u", l->rank, attr->rank,
			    l->aggregator ? "ZCOLL_AGGREGATORS" : size, number);
	return 0;
}

/* -------------------------------------------------------------- several nodes */

enum spread {
	UNKNOWN,	/* the launcher says nothing */
	ONE_NODE,
	SEVERAL_NODES,
};

/*
 * Are all ranks on this node? @local are the ranks here, or 0. @what is how it was said,
 * for a text.
 */
static int get_spread(struct zcoll_attr *attr, const struct launcher *l, unsigned int local,
		      enum spread *spread, char *what, size_t len)
{
	const char *name = l->local ? l->local : l->nodes;
	unsigned int need = l->local ? attr->nranks : 1, n;
	int ret;

	*spread = UNKNOWN;
	if (local) {
		*spread = local == attr->nranks ? ONE_NODE : SEVERAL_NODES;
		snprintf(what, len, "%u of %u ranks of the PMIx job are on this node", local,
			 attr->nranks);
		return 0;
	}
	if (!name || !getenv(name))
		return 0;
	ret = get_number(attr, name, &n);
	if (ret)
		return ret;
	*spread = n == need ? ONE_NODE : SEVERAL_NODES;
	snprintf(what, len, "%s=%u of %u ranks", name, n, attr->nranks);
	return 0;
}

/* How are ranks on other nodes met? See zcoll_attr_from_env() */
static int get_exchange(struct zcoll_attr *attr, const struct launcher *l, unsigned int local)
{
	bool pmix = l->pmix && getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK");
	bool told = zc_env("ZCOLL_NODE_ID") || attr->aggregators;
	enum spread spread;
	char what[120];
	int ret;

	attr->exchange = ZCOLL_EXCHANGE_NONE;
	ret = get_spread(attr, l, local, &spread, what, sizeof(what));
	if (ret || (spread == ONE_NODE && !told))
		return ret;
	if (zc_env("ZCOLL_STORE"))
		attr->exchange = ZCOLL_EXCHANGE_STORE;
	else if (pmix && (told || spread == SEVERAL_NODES))
		attr->exchange = ZCOLL_EXCHANGE_PMIX;
	else if (l->master && getenv("MASTER_ADDR"))
		attr->exchange = ZCOLL_EXCHANGE_STORE;
	else if (spread == SEVERAL_NODES)
		return FAIL(attr, -EOPNOTSUPP, "%s: on several nodes, set ZCOLL_STORE=HOST:PORT, an address of rank 0's node and a free port there",
			    what);
	return 0;
}

/* ----------------------------------------------------------------------- all */

static int get_job(struct zcoll_attr *attr, const struct launcher *l)
{
	char job[ZC_JOB_MAX];
	int ret;

	if (getenv("ZCOLL_KEY"))
		return get_key(attr);
	ret = l->job(attr, job);
	if (!ret)
		zcoll_key_from_string(attr->key, job);
	return ret;
}

static int from_launcher(struct zcoll_attr *attr, const struct launcher *l)
{
	unsigned int local = 0;
	int ret = get_time(attr, "ZCOLL_JOIN_TIMEOUT", ZCOLL_WAIT_FOREVER - 1,
			   &attr->join_timeout_ns);

	if (!ret)
		ret = get_place(attr, l, &local);
	if (!ret && getenv("ZCOLL_AGGREGATORS"))
		ret = get_number(attr, "ZCOLL_AGGREGATORS", &attr->aggregators);
	if (!ret)
		ret = get_exchange(attr, l, local);
	if (!ret)
		ret = check_place(attr, l);
	if (!ret)
		ret = get_job(attr, l);
	if (!ret)
		ret = get_time(attr, "ZCOLL_DEADLINE", ZCOLL_MAX_DEADLINE_NS, &attr->deadline_ns);
	return ret;
}

int zcoll_attr_from_env(struct zcoll_attr *attr)
{
	for (size_t i = 0; i < ARRAY_SIZE(launchers); i++)
		if (is_there(&launchers[i]))
			return from_launcher(attr, &launchers[i]);

	return FAIL(attr, -ENOENT,
		    "no launcher has set a rank: start the program with 'zcoll run', torchrun, mpiexec or srun, or set ZCOLL_RANK, ZCOLL_SIZE and ZCOLL_KEY");
}
