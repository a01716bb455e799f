// SPDX-License-Identifier: GPL-2.0
/*
 * Bootstrap from the environment: each launcher's variables, as they are and with
 * each mistake that users make.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zcoll.h>

#include "tap.h"

static char text[ZCOLL_TEXT_MAX];

/* The result of an environment of just @vars ("A=1 B=2 ...") */
static int from_env(const char *vars, struct zcoll_attr *attr)
{
	static char copy[1024];
	char *save, *var;

	clearenv();
	snprintf(copy, sizeof(copy), "%s", vars);
	for (var = strtok_r(copy, " ", &save); var; var = strtok_r(NULL, " ", &save))
		putenv(var);

	zcoll_attr_init(attr);
	attr->error = text;
	attr->error_len = sizeof(text);
	text[0] = '\0';
	return zcoll_attr_from_env(attr);
}

#define HERE ZCOLL_EXCHANGE_NONE
#define STORE ZCOLL_EXCHANGE_STORE
#define PMIX ZCOLL_EXCHANGE_PMIX
#define KEY "ZCOLL_KEY=000102030405060708090a0b0c0d0eFF"
#define TORCH "MASTER_ADDR=host MASTER_PORT=29500 "
#define JOB "SLURM_JOB_ID=7 SLURM_STEP_ID=0 "

static const struct {
	const char *vars;
	unsigned int rank, nranks;
	unsigned int exchange;
} good[] = {
	{ "ZCOLL_RANK=2 ZCOLL_SIZE=4 " KEY, 2, 4, HERE },
	{ TORCH "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1", 1, 2, STORE },
	{ TORCH "RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2", 1, 2, HERE },
	{ TORCH "RANK=3 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2", 3, 4, STORE },
	{ TORCH "RANK=3 WORLD_SIZE=4096 LOCAL_WORLD_SIZE=8", 3, 4096, STORE },
	{ "RANK=0 WORLD_SIZE=1 " KEY, 0, 1, HERE },
	{ "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 PMIX_NAMESPACE=12 PMIX_RANK=3", 3, 4, HERE },
	{ "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_MCA_ess_base_jobid=9", 0, 2, HERE },
	{ "PMI_RANK=1 PMI_SIZE=3 PMI_JOBID=5", 1, 3, HERE },
	{ "PMI_RANK=1 PMI_SIZE=3 MPI_LOCALNRANKS=3 PMI_JOBID=5", 1, 3, HERE },
	{ JOB "SLURM_PROCID=1 SLURM_NTASKS=2", 1, 2, HERE },
	{ JOB "SLURM_PROCID=1 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=1", 1, 2, HERE },
	/* Several nodes */
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=2 ZCOLL_STORE=h:1 " KEY, 0, 2, STORE },
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=2 LOCAL_WORLD_SIZE=2 ZCOLL_STORE=h:1 " KEY, 0, 2, HERE },
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=2 LOCAL_WORLD_SIZE=2 ZCOLL_STORE=h:1 ZCOLL_NODE_ID=a " KEY, 0, 2,
	  STORE },
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=2 LOCAL_WORLD_SIZE=2 ZCOLL_STORE=h:1 ZCOLL_AGGREGATORS=1 " KEY,
	  0, 2, STORE },
	{ "ZCOLL_AGGREGATOR=1 ZCOLL_AGGREGATORS=2 ZCOLL_SIZE=8 ZCOLL_STORE=h:1 " KEY, 1, 8, STORE },
	{ "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=1 PMIX_RANK=0",
	  0, 4, PMIX },
	{ "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_NAMESPACE=1 PMIX_RANK=0",
	  0, 4, HERE },
	{ "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=1 PMIX_RANK=0 ZCOLL_STORE=h:1",
	  0, 4, STORE },
	{ "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=1 ZCOLL_STORE=h:1 " KEY, 0, 2, STORE },
	{ JOB "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_NODES=2 ZCOLL_STORE=h:1", 0, 2, STORE },
	{ JOB "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_NODES=2 PMIX_NAMESPACE=1 PMIX_RANK=0",
	  0, 2, PMIX },
	/* The first launcher of the list counts */
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=2 RANK=7 WORLD_SIZE=9 PMI_RANK=3 PMI_SIZE=5 " KEY, 0, 2, HERE },
	{ TORCH "RANK=1 WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=6", 1, 2, STORE },
	{ JOB "PMI_RANK=1 PMI_SIZE=3 PMI_JOBID=5 SLURM_PROCID=0 SLURM_NTASKS=1", 1, 3, HERE },
};

static const struct {
	const char *vars;
	int err;
	const char *part;	/* of the text */
} bad[] = {
	{ "", -ENOENT, "no launcher" },
	{ "SLURM_NTASKS=4", -ENOENT, "no launcher" },
	{ "ZCOLL_RANK=0", -EINVAL, "ZCOLL_RANK is set and ZCOLL_SIZE is not" },
	{ "ZCOLL_SIZE=2", -EINVAL, "ZCOLL_SIZE is set and ZCOLL_RANK is not" },
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=2", -EINVAL, "ZCOLL_KEY is not" },
	{ "ZCOLL_RANK=2 ZCOLL_SIZE=2 " KEY, -EINVAL, "ZCOLL_RANK=2" },
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=0 " KEY, -EINVAL, "ZCOLL_SIZE=0" },
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=1025 " KEY, -EINVAL, "ZCOLL_SIZE=1025" },
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=99999999999999999999 " KEY, -EINVAL, "ZCOLL_SIZE=9999" },
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=4294967298 " KEY, -EINVAL, "ZCOLL_SIZE=4294967298" },
	{ "ZCOLL_RANK=-1 ZCOLL_SIZE=2 " KEY, -EINVAL, "ZCOLL_RANK=-1: not a number" },
	{ "ZCOLL_RANK=1x ZCOLL_SIZE=2 " KEY, -EINVAL, "ZCOLL_RANK=1x: not a number" },
	{ "ZCOLL_RANK= ZCOLL_SIZE=2 " KEY, -EINVAL, "ZCOLL_RANK=: not a number" },
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=2 ZCOLL_KEY=00", -EINVAL, "ZCOLL_KEY=00: must be 32 hex" },
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=2 ZCOLL_KEY=", -EINVAL, "ZCOLL_KEY=" },
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=2 ZCOLL_KEY=0001020304050607080g0a0b0c0d0e0f", -EINVAL,
	  "080g0a" },
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=2 " KEY "00", -EINVAL, "must be 32 hex" },
	{ "RANK=0 WORLD_SIZE=2 MASTER_ADDR=h", -EINVAL, "MASTER_PORT is not" },
	{ "RANK=0 WORLD_SIZE=2 MASTER_PORT=1", -EINVAL, "MASTER_ADDR is not" },
	{ TORCH "WORLD_SIZE=2", -EINVAL, "WORLD_SIZE is set and RANK is not" },
	{ TORCH "RANK=3 WORLD_SIZE=4 LOCAL_WORLD_SIZE=x", -EINVAL, "LOCAL_WORLD_SIZE=x" },
	{ "RANK=3 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 " KEY, -EOPNOTSUPP, "LOCAL_WORLD_SIZE=2 of 4" },
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=2 ZCOLL_AGGREGATORS=x " KEY, -EINVAL, "ZCOLL_AGGREGATORS=x" },
	{ "ZCOLL_AGGREGATOR=1 ZCOLL_SIZE=8 ZCOLL_STORE=h:1 " KEY, -EINVAL, "ZCOLL_AGGREGATORS=0" },
	{ "ZCOLL_AGGREGATOR=0 ZCOLL_SIZE=8 ZCOLL_AGGREGATORS=1", -EINVAL, "ZCOLL_KEY is not" },
	{ "ZCOLL_RANK=0 ZCOLL_SIZE=262145 ZCOLL_STORE=h:1 " KEY, -EINVAL, "ZCOLL_SIZE=262145" },
	{ "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2", -EINVAL, "OMPI_MCA_ess_base_jobid" },
	{ "OMPI_COMM_WORLD_RANK=0 PMIX_NAMESPACE=1", -EINVAL, "OMPI_COMM_WORLD_SIZE is not" },
	{ "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2",
	  -EOPNOTSUPP, "set ZCOLL_STORE=HOST:PORT" },
	{ "PMI_RANK=0 PMI_SIZE=2", -EINVAL, "PMI_JOBID" },
	{ "PMI_RANK=0 PMI_SIZE=2 PMI_FD=x", -EINVAL, "PMI_FD=x" },
	{ "PMI_RANK=0 PMI_SIZE=2 PMI_FD=999", -EINVAL, "PMI_FD=999" },
	{ "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=1 PMI_JOBID=1", -EOPNOTSUPP, "MPI_LOCALNRANKS=1" },
	{ "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=1 PMI_FD=9 ZCOLL_STORE=h:1", -EINVAL,
	  "set ZCOLL_KEY" },
	{ "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=3", -EINVAL, "srun" },
	{ "SLURM_PROCID=0 SLURM_JOB_ID=3 SLURM_STEP_ID=0", -EINVAL, "SLURM_STEP_NUM_TASKS is not" },
	{ JOB "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_NODES=2", -EOPNOTSUPP,
	  "SLURM_STEP_NUM_NODES=2" },
};

static void test_launchers(void)
{
	struct zcoll_attr attr;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		int ret = from_env(good[i].vars, &attr);

		if (!ok(!ret && attr.rank == good[i].rank && attr.nranks == good[i].nranks &&
			attr.exchange == good[i].exchange, "taken: %s", good[i].vars))
			printf("# %d, rank %u of %u, exchange %u: %s\n", ret, attr.rank,
			       attr.nranks, attr.exchange, text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int ret = from_env(bad[i].vars, &attr);

		if (!ok(ret == bad[i].err && strstr(text, bad[i].part), "refused and named: %s",
			bad[i].vars))
			printf("# %d: %s\n", ret, text);
	}
}

static bool same_key(const char *a, const char *b)
{
	struct zcoll_attr x, y;

	return !from_env(a, &x) && !from_env(b, &y) && !memcmp(x.key, y.key, 16);
}

static void test_keys(void)
{
	static const uint8_t key[16] = {
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255
	};
	struct zcoll_attr attr;

	ok(!from_env("ZCOLL_RANK=0 ZCOLL_SIZE=1 " KEY, &attr) && !memcmp(attr.key, key, 16),
	   "ZCOLL_KEY is read as hex, in order");
	ok(!from_env("PMI_RANK=0 PMI_SIZE=1 " KEY, &attr) && !memcmp(attr.key, key, 16),
	   "ZCOLL_KEY takes the place of a launcher's key");
	ok(same_key(TORCH "RANK=0 WORLD_SIZE=2", TORCH "RANK=1 WORLD_SIZE=2"),
	   "ranks of a torch job have one key");
	ok(!same_key(TORCH "RANK=0 WORLD_SIZE=2",
		     "MASTER_ADDR=host MASTER_PORT=29501 RANK=0 WORLD_SIZE=2"),
	   "torch jobs on two ports have two keys");
	ok(!same_key(TORCH "RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=a",
		     TORCH "RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=b"),
	   "torch jobs of two run ids have two keys");
	ok(!same_key(TORCH "RANK=0 WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=0",
		     TORCH "RANK=0 WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=1"),
	   "a restarted torch job has a new key");
	ok(same_key("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=1",
		    "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=1"),
	   "ranks of an Open MPI job have one key");
	ok(!same_key(JOB "SLURM_PROCID=0 SLURM_NTASKS=2",
		     "SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_PROCID=0 SLURM_NTASKS=2"),
	   "steps of a Slurm job have two keys");
}

/* As Hydra does: the launcher makes a socket pair for each rank */
static void test_pmi_fd(void)
{
	struct zcoll_attr one, two;
	char vars[2][64];
	int a[2], b[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, a) || socketpair(AF_UNIX, SOCK_STREAM, 0, b)) {
		ok(false, "socketpair()");
		return;
	}
	snprintf(vars[0], sizeof(vars[0]), "PMI_RANK=0 PMI_SIZE=2 PMI_FD=%d", a[0]);
	snprintf(vars[1], sizeof(vars[1]), "PMI_RANK=1 PMI_SIZE=2 PMI_FD=%d", b[0]);
	if (!ok(!from_env(vars[0], &one) && !from_env(vars[1], &two) &&
		!memcmp(one.key, two.key, 16), "ranks started by one Hydra proxy have one key"))
		printf("# %s\n", text);
	close(a[0]);
	close(a[1]);
	close(b[0]);
	close(b[1]);
}

static const struct {
	const char *value;
	uint64_t ns;
} times[] = {
	{ "30", 30000000000 }, { "2s", 2000000000 }, { "500ms", 500000000 }, { "7us", 7000 },
	{ "9ns", 9 }, { "0", 0 }, { "86400", 86400000000000 },
};

static const char *const bad_times[] = {
	"1.5", "-1", "", "s", "1 s", "1m", "1S", "86401", "99999999999999999999", "86400001ms",
};

static void test_times(void)
{
	struct zcoll_attr attr;
	char vars[200];

	from_env("ZCOLL_RANK=0 ZCOLL_SIZE=1 " KEY, &attr);
	ok(attr.deadline_ns == 0 && attr.join_timeout_ns == ZCOLL_JOIN_TIMEOUT_NS,
	   "without ZCOLL_DEADLINE and ZCOLL_JOIN_TIMEOUT the defaults stay");
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		snprintf(vars, sizeof(vars), "ZCOLL_RANK=0 ZCOLL_SIZE=1 ZCOLL_DEADLINE=%s ZCOLL_JOIN_TIMEOUT=%s " KEY,
			 times[i].value, times[i].value);
		ok(!from_env(vars, &attr) && attr.deadline_ns == times[i].ns &&
		   attr.join_timeout_ns == times[i].ns, "time taken: %s", times[i].value);
	}
	for (size_t i = 0; i < sizeof(bad_times) / sizeof(bad_times[0]); i++) {
		clearenv();
		setenv("ZCOLL_RANK", "0", 1);
		setenv("ZCOLL_SIZE", "1", 1);
		putenv((char *)KEY);
		setenv("ZCOLL_DEADLINE", bad_times[i], 1);
		ok(zcoll_attr_from_env(&attr) == -EINVAL && strstr(text, "ZCOLL_DEADLINE="),
		   "time refused: '%s'", bad_times[i]);
	}
}

/* The answer depends on whether the library was built with PMIx; none may hang */
static void test_pmix(void)
{
	struct zcoll_attr attr;
	int ret = from_env("PMIX_NAMESPACE=nobody PMIX_RANK=0", &attr);

	ok((ret == -EPROTO || ret == -EOPNOTSUPP || ret == -ENOENT) && strstr(text, "PMIx"),
	   "PMIx without a server is refused and named");
	is(from_env("PMIX_RANK=x PMIX_NAMESPACE=n", &attr), -EINVAL, "PMIX_RANK is checked");
}

int main(void)
{
	test_launchers();
	test_keys();
	test_pmi_fd();
	test_times();
	test_pmix();
	return tap_end();
}
