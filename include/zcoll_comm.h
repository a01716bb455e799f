/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * libzcoll, communicators: how they are made, what can be asked of them, and their end. What
 * holds for all of the library is told in <zcoll.h>, which includes this.
 *
 * Several nodes. Ranks are on one node if they run under one kernel: its boot id tells,
 * and $ZCOLL_NODE_ID beside it, if set. Nodes are numbered by their lowest ranks, those
 * without ranks (aggregators) follow. To make a communicator, ranks on several nodes
 * meet in an *exchange*: the *store*, a TCP port of rank 0 that is open until all are
 * there, the PMIx server of the launcher, or what the caller has. At the store both sides
 * prove that they know the communicator's key; a key made of a name can be guessed, so
 * where strangers reach the port, set $ZCOLL_KEY to a random one. If any rank fails to
 * join, all fail, with its text. With PMIx, a program that uses MPI too must call
 * MPI_Init() first.
 */
#ifndef ZCOLL_COMM_H
#define ZCOLL_COMM_H

#include <stddef.h>
#include <stdint.h>
#include <linux/zcoll.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)	/* the library hides all else */

struct zcoll_comm;

/* zcoll_attr_init() has the other ranks waited for this long */
#define ZCOLL_JOIN_TIMEOUT_NS	(60ULL * 1000000000ULL)

/* zcoll_attr.exchange */
#define ZCOLL_EXCHANGE_NONE	0	/* all ranks are on this node */
#define ZCOLL_EXCHANGE_STORE	1	/* by TCP, at a port that rank 0 listens at */
#define ZCOLL_EXCHANGE_PMIX	2	/* by the launcher's PMIx server */
#define ZCOLL_EXCHANGE_GATHER	3	/* by the caller, who can talk to the others already */

/**
 * struct zcoll_attr - what a communicator is made of
 * @size: sizeof(struct zcoll_attr); zcoll_attr_init() sets it
 * @device: path of the device; NULL: $ZCOLL_DEVICE, or else /dev/zcoll
 * @key: 16 bytes, the same on all ranks, and no other communicator's
 * @rank: this process' rank, 0 .. @nranks - 1
 * @nranks: number of ranks
 * @deadline_ns: deadline of each operation, in ns from its submission; 0: none.
 *	At most ZCOLL_MAX_DEADLINE_NS
 * @join_timeout_ns: longest time that zcoll_comm_create() waits for the other
 *	ranks to join, in ns; 0: not at all (operations wait for them instead), with
 *	ZCOLL_EXCHANGE_NONE only; ZCOLL_WAIT_FOREVER: no limit
 * @error: buffer for an error text, or NULL. Written on failure only. Owned by
 *	the caller
 * @error_len: its size in bytes; ZCOLL_TEXT_MAX always suffices
 * @exchange: how ranks on several nodes tell each other what they need to, see
 *	"Several nodes" at the top: ZCOLL_EXCHANGE_*
 * @store: with ZCOLL_EXCHANGE_STORE where, "HOST:PORT" or "[IPV6]:PORT", the same on
 *	all ranks; NULL: $ZCOLL_STORE, or else host MASTER_ADDR and port MASTER_PORT + 1
 * @fabric: what connects the nodes, see zcoll_join.fabric in <linux/zcoll.h>; NULL:
 *	$ZCOLL_FABRIC, or else "rdma"
 * @aggregators: number of nodes without ranks, of zcoll_aggregator_create(); with
 *	ZCOLL_EXCHANGE_STORE
 * @gather: with ZCOLL_EXCHANGE_GATHER a function that gives all ranks what each has, for
 *	instance by MPI_Allgather(): @bytes bytes at @mine, into @all in the order of ranks.
 *	Returns 0 or a negative errno, the same on all ranks. zcoll_comm_create() calls it
 *	equally often on all ranks, and no time-out ends it
 * @gather_arg: its first argument
 */
struct zcoll_attr {
	size_t size;
	const char *device;
	uint8_t key[16];
	unsigned int rank;
	unsigned int nranks;
	uint64_t deadline_ns;
	uint64_t join_timeout_ns;
	char *error;
	size_t error_len;
	unsigned int exchange;
	const char *store;
	const char *fabric;
	unsigned int aggregators;
	int (*gather)(void *arg, const void *mine, void *all, size_t bytes);
	void *gather_arg;
};

/* ----------------------------------------------------- making communicators */

/**
 * zcoll_attr_init() - set an attr to its defaults
 * @attr: written whole: rank 0 of 1, key of zeroes, no deadline,
 *	ZCOLL_JOIN_TIMEOUT_NS, no error buffer
 */
void zcoll_attr_init(struct zcoll_attr *attr);

/**
 * zcoll_key_from_string() - make a key of a name
 * @key: output
 * @name: NUL-terminated; the same name gives the same key on all ranks, on all
 *	machines and in all versions: the 128-bit FNV-1a hash of its bytes,
 *	most significant byte first
 *
 * Any process of the same user that knows the key can join, so a name keeps jobs
 * apart and is no secret.
 */
void zcoll_key_from_string(uint8_t key[16], const char *name);

/**
 * zcoll_key_derive() - make a key of a key and a name
 * @key: input and output
 * @name: NUL-terminated; for instance what the communicator is for, or a count
 *
 * For a job that needs more than one communicator, side by side or one after the
 * other: all ranks derive the same new key from the job's own.
 */
void zcoll_key_derive(uint8_t key[16], const char *name);

/**
 * zcoll_attr_from_env() - fill rank, number of ranks, key, exchange and times
 * @attr: from zcoll_attr_init(); @rank, @nranks, @key and @exchange are written, and
 *	@aggregators, @deadline_ns and @join_timeout_ns if the environment gives them
 *
 * The first of these launchers that is there counts:
 *
 * - ``ZCOLL_RANK``, ``ZCOLL_SIZE``, ``ZCOLL_KEY``: ``zcoll run``
 * - ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR``, ``MASTER_PORT``: torchrun; the key
 *   also covers ``TORCHELASTIC_RUN_ID`` and ``TORCHELASTIC_RESTART_COUNT``
 * - ``OMPI_COMM_WORLD_RANK``, ``OMPI_COMM_WORLD_SIZE``, and ``PMIX_NAMESPACE`` or
 *   ``OMPI_MCA_ess_base_jobid``: Open MPI
 * - ``PMI_RANK``, ``PMI_SIZE``, and ``PMI_JOBID`` or the process that holds the
 *   other end of ``PMI_FD``: MPICH and others with Hydra
 * - ``SLURM_PROCID``, ``SLURM_STEP_NUM_TASKS`` or ``SLURM_NTASKS``,
 *   ``SLURM_JOB_ID``, ``SLURM_STEP_ID``: srun
 * - ``PMIX_NAMESPACE``, ``PMIX_RANK``: any PMIx server, if the library was built
 *   with PMIx
 * - ``ZCOLL_AGGREGATOR``, ``ZCOLL_SIZE``, ``ZCOLL_KEY``: an aggregator, of
 *   ``ZCOLL_AGGREGATORS``; @rank is its index
 *
 * @exchange is NONE if the launcher says that all ranks are on this node
 * (``LOCAL_WORLD_SIZE``, ``OMPI_COMM_WORLD_LOCAL_SIZE``, ``MPI_LOCALNRANKS``,
 * ``SLURM_STEP_NUM_NODES``, or the PMIx server) and ``ZCOLL_NODE_ID`` and
 * ``ZCOLL_AGGREGATORS`` are not set. Else it is STORE if ``ZCOLL_STORE`` is set; PMIX if
 * the launcher has set ``PMIX_NAMESPACE``, and says that there are other nodes; STORE if
 * torchrun has; and NONE if the launcher says nothing of nodes.
 *
 * ``ZCOLL_KEY`` (32 hex digits) takes the place of any launcher's own key.
 * ``ZCOLL_DEADLINE`` and ``ZCOLL_JOIN_TIMEOUT`` are times: a whole number and ns,
 * us, ms or s (seconds if nothing follows); a deadline of 0 is none, a join
 * time-out of 0 does not wait.
 *
 * Return: 0. -ENOENT: no launcher there. -EINVAL: one of its variables is missing
 * or has no sense, @attr->error names it and its value. -EOPNOTSUPP: the job
 * spans several nodes, and there is no exchange. -EPROTO: the PMIx server does not
 * answer as it should. -ETIMEDOUT: it does not answer at all, for @join_timeout_ns.
 */
int zcoll_attr_from_env(struct zcoll_attr *attr);

/**
 * zcoll_comm_create() - become a rank of a communicator
 * @comm: output, freed by zcoll_comm_free()
 * @attr: copied
 *
 * Waits for the other ranks, as @attr->join_timeout_ns says.
 *
 * With @attr->exchange other than NONE: of all ranks, and then all or none succeed. On a
 * store one communicator can be made at a time, but another one after it. Rank 0 listens
 * on the address of interface $ZCOLL_IFACE, or on the host's if it is written as a
 * number, or else on all. If the store is a host without a port, rank 0 takes the first
 * free one of $ZCOLL_PORTS (LOW-HIGH, at most 64 ports, the same on all ranks), and the
 * others try them all.
 *
 * Return: 0, or, with a text in @attr->error and nothing in @comm: what opening
 * the device gave (-ENOENT: is the module loaded?), what ZCOLL_IOC_JOIN gave,
 * -EPROTONOSUPPORT: the module speaks another ABI version. -ETIMEDOUT: ranks are
 * missing, the text names them; this rank has left again. And with an exchange:
 * -EKEYREJECTED: who answers at the store has another key. -EHOSTUNREACH: its host has
 * no address. -EOWNERDEAD: a rank has gone meanwhile. -EADDRINUSE and others of
 * bind(): rank 0 cannot listen. -EPROTO: ranks do not agree on how many they are, or on
 * the fabric. What ZCOLL_IOC_ADDRESS and ZCOLL_IOC_PEERS gave, on any rank.
 */
int zcoll_comm_create(struct zcoll_comm **comm, const struct zcoll_attr *attr);

/**
 * zcoll_comm_create_from_env() - zcoll_attr_from_env() and zcoll_comm_create()
 * @comm: output, freed by zcoll_comm_free()
 * @error: buffer for an error text, or NULL
 * @error_len: its size in bytes
 *
 * Return: as these two. Once per process: the second communicator of a job needs
 * a key of its own, see zcoll_key_derive().
 */
int zcoll_comm_create_from_env(struct zcoll_comm **comm, char *error, size_t error_len);

/**
 * zcoll_comm_free() - leave the communicator and free it
 * @comm: gone when 0 is returned, with the registrations and the memory of
 *	zcoll_alloc() that remain; NULL is allowed
 *
 * Other ranks' operations that still need this one fail with -ESHUTDOWN. In the
 * child of a fork() the copy is freed and the rank does not leave.
 *
 * Return: 0. -EBUSY: there are requests that were not waited for; nothing is
 * freed. Of a revoked communicator they are freed with it, and must not be waited
 * for afterwards: abort it first if their results do not matter.
 *
 * A child of fork() that lives on keeps the endpoint open, and the key in use: a
 * new communicator needs another one then, see zcoll_key_derive().
 */
int zcoll_comm_free(struct zcoll_comm *comm);

/**
 * zcoll_comm_abort() - revoke the communicator with -ECANCELED, on all ranks
 * @comm: the communicator; must still be freed
 *
 * Return: 0 or a negative errno.
 */
int zcoll_comm_abort(struct zcoll_comm *comm);

/**
 * zcoll_comm_rank() - the caller's rank
 * @comm: the communicator
 *
 * Return: 0 .. zcoll_comm_size() - 1.
 */
unsigned int zcoll_comm_rank(const struct zcoll_comm *comm);

/**
 * zcoll_comm_size() - number of ranks
 * @comm: the communicator
 *
 * Return: 1 or more.
 */
unsigned int zcoll_comm_size(const struct zcoll_comm *comm);

/**
 * zcoll_comm_nodes() - number of nodes
 * @comm: the communicator
 *
 * Return: 1 or more, those without ranks included.
 */
unsigned int zcoll_comm_nodes(const struct zcoll_comm *comm);

/**
 * zcoll_comm_node() - the caller's node
 * @comm: the communicator
 *
 * Return: 0 .. zcoll_comm_nodes() - 1.
 */
unsigned int zcoll_comm_node(const struct zcoll_comm *comm);

/**
 * zcoll_comm_node_of() - the node of a rank
 * @comm: the communicator
 * @rank: 0 .. zcoll_comm_size() - 1
 *
 * Return: its number, or -EINVAL.
 */
int zcoll_comm_node_of(const struct zcoll_comm *comm, unsigned int rank);

/**
 * zcoll_comm_fd() - the endpoint, a file descriptor
 * @comm: the owner of the descriptor: do not close it
 *
 * For poll() (POLLIN: all ranks have joined; POLLERR: revoked), and as the file
 * of SQEs: register it in a ring and set IOSQE_FIXED_FILE, if you like.
 *
 * Return: the descriptor.
 */
int zcoll_comm_fd(const struct zcoll_comm *comm);

/**
 * zcoll_comm_error() - text of the last failed call on the communicator
 * @comm: the communicator
 * @buf: output, NUL-terminated, empty if nothing has failed; or NULL
 * @len: size of @buf in bytes; ZCOLL_TEXT_MAX always suffices
 *
 * The last of any thread: where several threads use a communicator, the text can
 * be another's.
 *
 * Return: length of the text in bytes without its NUL, which is @len or more if
 * @buf got only its beginning.
 */
int zcoll_comm_error(struct zcoll_comm *comm, char *buf, size_t len);

/**
 * zcoll_comm_stats() - counters of this rank and the communicator
 * @comm: the communicator
 * @stats: output, see <linux/zcoll.h>
 *
 * Return: 0 or a negative errno.
 */
int zcoll_comm_stats(struct zcoll_comm *comm, struct zcoll_stats *stats);

/**
 * zcoll_comm_pending() - how an operation stands, and whom it waits for
 * @comm: the communicator
 * @seq: sequence number of the operation
 * @status: @missing, @missing_len, @text and @text_len are inputs (buffers of
 *	the caller, or 0), the rest is output, see struct zcoll_status in
 *	<linux/zcoll.h>
 *
 * Return: 0 or a negative errno.
 */
int zcoll_comm_pending(struct zcoll_comm *comm, uint64_t seq, struct zcoll_status *status);

/* -------------------------------------------------------------- aggregators */

/**
 * zcoll_aggregator_create() - become a node without ranks, which only aggregates
 * @comm: output, freed by zcoll_comm_free()
 * @attr: as the ranks have it, with ZCOLL_EXCHANGE_STORE, but for @attr->rank: the index
 *	of this aggregator, 0 .. @attr->aggregators - 1. It is node
 *	zcoll_comm_nodes() - @attr->aggregators + index
 *
 * An aggregator calls no operations: it loads the plans that its node is to follow, by
 * zcoll_plan_load(), and then calls zcoll_aggregator_serve(). The ranks wait for that in
 * zcoll_comm_create(), so it must be within @attr->join_timeout_ns of this call.
 *
 * Return: as zcoll_comm_create().
 */
int zcoll_aggregator_create(struct zcoll_comm **comm, const struct zcoll_attr *attr);

/**
 * zcoll_aggregator_serve() - wait until the communicator ends
 * @comm: of zcoll_aggregator_create()
 *
 * The work is done in the kernel. It ends when it is revoked, or when rank 0 leaves and
 * what other nodes have in flight through this one has ended.
 *
 * Return: 0: the ranks have left. Else the error that revoked the communicator, or for
 * which it could not be made, with a text at zcoll_comm_error().
 */
int zcoll_aggregator_serve(struct zcoll_comm *comm);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* ZCOLL_COMM_H */
