/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fabric "rdma": half-links of queue pairs, on any verbs device.
 *
 *   rdma.c          devices that come and go, a net's rails, opening and closing
 *   rdma_rail.c     choosing rails: which device, port and address
 *   rdma_conn.c     connections: made, lost, destroyed; the communication manager's events
 *   rdma_connect.c  the sending side
 *   rdma_accept.c   the receiving side, and strangers
 *   rdma_post.c     what is sent and received on them
 *   rdma_mr.c       regions: mapped for the device, exposed to peers
 *   hello.c         what is proved, and how
 *
 * Vocabulary
 *
 *   rail        a device's port with an IP address: struct zc_rail. Nodes of a net have equally
 *               many, and rail r of one connects to rail r of another
 *   connection  a reliable queue pair on a rail, of the sending or of the receiving side
 *               of a half-link: struct zc_conn
 *   half        the connections of a half-link, one for each rail: struct zc_half
 *   stranger    a connection that has come and has not proved yet that it knows the key
 *
 * Locking. zc_net.poll_lock protects the list of connections, and what has been received:
 * completions are taken in under it only. zc_comm.lock protects what is posted for sending. The
 * communication manager calls zc_conn_event() under a lock of its own, in which poll_lock may be
 * taken; so no connection is destroyed under poll_lock. zc_rdma.lock protects the list of regions;
 * zc_devices_lock the list of devices, and which nets use them. It is taken before all of these.
 *
 * Lifetimes. A connection is destroyed by who took it off the list of connections, in process
 * context and without a lock. Its queue pair is destroyed, not drained: no byte moves after
 * that, and all that was posted on it is on lists here, from which it is answered. All that is
 * on a device is gone when its removal has been seen (zc_rdma_remove()).
 */
#ifndef ZCOLL_NET_RDMA_H
#define ZCOLL_NET_RDMA_H

#include <linux/completion.h>
#include <linux/in6.h>
#include <linux/scatterlist.h>
#include <linux/socket.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "net.h"

/* Connections that may be strangers at a time, and for how long */
#define ZC_STRANGERS		16
#define ZC_STRANGER_MS		5000

/* Chunks of regions are so large that all devices can register one */
#define ZC_RDMA_CHUNK_PAGES	256
#define ZC_RDMA_CHUNK_BYTES	((u64)ZC_RDMA_CHUNK_PAGES << PAGE_SHIFT)

/* Registrations under way on a connection; entries of a gather list; completions at once */
#define ZC_RDMA_REGS		16
#define ZC_RDMA_SGE		16
#define ZC_RDMA_WCS		16

/* Inboxes that are posted: as many as there are credits, and for the proof */
#define ZC_RDMA_INBOXES(net)	((net)->config.depth + 1)

struct zc_rdma;
struct zc_rdma_device;

/* ---- on the wire, apart from messages ---- */

/**
 * struct zc_rdma_hello - private data of who connects
 * @hello: see there
 * @tag: HMAC(key, "hello" || @hello), cut off: who does not know the key gets no queue pair
 */
struct zc_rdma_hello {
	struct zw_hello hello;
	u8 tag[ZW_NONCE_BYTES];
};

enum zc_rdma_reason {
	ZC_RDMA_BUSY = 1,	/* too many strangers, or this has been said before: try again */
	ZC_RDMA_VERSION,	/* another version of the protocol */
	ZC_RDMA_KEY,		/* another key */
	ZC_RDMA_NODE,		/* another node than the one wanted, or another rail */
	ZC_RDMA_CLOSED,		/* takes no further part */
};

/**
 * struct zc_rdma_reject - private data of a refusal
 * @magic: ZW_MAGIC
 * @reason: enum zc_rdma_reason
 */
struct zc_rdma_reject {
	__le32 magic;
	__le32 reason;
};

/* One rail in a node's address; there are as many as the address has bytes for */
struct zc_rdma_address {
	__le16 family;		/* 4 or 6 */
	__be16 port;
	__le32 __reserved;
	u8 ip[16];
};

/* ---- rails (rdma_rail.c), devices (rdma.c) ---- */

/**
 * struct zc_rail - a rail of a net
 * @rdma: the net's
 * @index: its number
 * @link: in the device's rails, under zc_devices_lock
 * @device: the device, NULL: it has been removed
 * @dev: the verbs device
 * @name: its name, which is used also when it has gone
 * @port: its port
 * @address: of this node, with the port of the listener
 * @listener: takes connections
 * @said: by node: the time in its last HELLO
 * @pd: of all queue pairs and keys of the rail
 * @max_sge: entries of a gather list
 * @post_wrs: work requests that a post takes at most
 * @sq_wrs: work requests of a sending connection, but for registrations
 */
struct zc_rail {
	struct zc_rdma *rdma;
	u32 index;
	struct list_head link;
	struct zc_rdma_device *device;
	struct ib_device *dev;
	char name[IB_DEVICE_NAME_MAX];
	u32 port;
	struct sockaddr_storage address;
	struct rdma_cm_id *listener;
	atomic64_t *said;
	struct ib_pd *pd;
	u32 max_sge;
	u32 post_wrs;
	u32 sq_wrs;
};

int zc_rails_find(struct zc_rdma *rdma, const char *rails, struct zc_text *why);
void zc_rail_listener_destroy(struct zc_rail *rail);
bool zc_rail_device_enter(struct zc_rail *rail);

/**
 * struct zc_rdma - a net's part of the fabric
 * @net: the net
 * @nrails: number of @rails
 * @rails: see there
 * @name: of the communicator, in the hello
 * @conns: all that are polled, and those that have yet to be reaped; under zc_net.poll_lock
 * @halves: of other nodes, some of whose rails have been proved
 * @users: what devices have to stay for: connections, who makes them, and who maps a region
 * @strangers: of the connections, those that have proved nothing
 * @reap_work: ends strangers that fail, or take too long
 * @waitq: for all that is waited for here: connections' progress, registrations, the end
 * @lock: @regions, @gone, and becoming one of @users
 * @regions: those that are mapped
 * @gone: a device has been removed
 * @wcs: room for completions
 */
struct zc_rdma {
	struct zc_net *net;
	u32 nrails;
	struct zc_rail rails[ZC_MAX_RAILS];
	u8 name[8];
	struct list_head conns;
	struct list_head halves;
	atomic_t users;
	atomic_t strangers;
	struct delayed_work reap_work;
	wait_queue_head_t waitq;
	struct mutex lock;		/* regions against the device's removal */
	struct list_head regions;
	bool gone;
	struct ib_wc wcs[ZC_RDMA_WCS];
};

extern struct workqueue_struct *zc_rdma_wq;
extern struct mutex zc_devices_lock;

bool zc_rdma_enter(struct zc_rdma *rdma);
void zc_rdma_exit(struct zc_rdma *rdma);

/* ---- connections (rdma_conn.c) ---- */

/* How far a connection is */
enum zc_conn_step {
	ZC_CONN_NEW,
	ZC_CONN_ADDRESS,	/* its address is resolved */
	ZC_CONN_ROUTE,		/* its route is resolved */
	ZC_CONN_WELCOME,	/* the other side's answer is there */
	ZC_CONN_PROVED,		/* the other side has the proof, or this one has checked it */
};

/**
 * struct zc_half - the connections of a half-link
 * @link: in zc_rdma.halves
 * @out: of this node's half-link, or NULL
 * @in: of another node's, or NULL
 * @node: the other node
 * @conns: by rail, NULL: none yet
 * @up: the half-link has been said to be up
 * @down: it has been said to be down
 * @closing: it is being disconnected; set under zc_comm.lock
 * @quiet: its queue pairs have been destroyed
 * @exposers: works that expose a region through it; under zc_comm.lock
 * @settled: connecting has ended
 */
struct zc_half {
	struct list_head link;
	struct zc_out *out;
	struct zc_in *in;
	u32 node;
	struct zc_conn *conns[ZC_MAX_RAILS];
	bool up;
	bool down;
	bool closing;
	bool quiet;
	u32 exposers;
	struct completion settled;
};

/**
 * struct zc_conn - a connection
 * @link: in zc_rdma.conns
 * @rail: its rail
 * @half: its half-link, NULL: a stranger
 * @sends: it is of the sending side
 * @armed: the completion queue will tell when something comes
 * @step: enum zc_conn_step
 * @error: why it is lost, or 0
 * @what: why it is lost, as a text
 * @id: of the communication manager
 * @qp: its queue pair
 * @cq: its completion queue
 * @since: when it was made
 * @hello: what the connecting side said
 * @welcome: what the other one answered
 * @proof: the first message
 * @proof_dma: where the device finds it
 * @proof_cqe: it has been sent
 * @posts: what is posted for sending, in order; under zc_comm.lock
 * @wrs_used: work requests posted for sending; under zc_comm.lock
 * @regs_used: registrations posted; under zc_comm.lock
 * @starved: somebody waits for room; under zc_comm.lock
 * @wrs: room for the work requests of a post
 * @sges: room for their gather lists
 * @inboxes: those posted; under zc_net.poll_lock
 */
struct zc_conn {
	struct list_head link;
	struct zc_rail *rail;
	struct zc_half *half;
	bool sends;
	bool armed;
	enum zc_conn_step step;
	int error;
	const char *what;
	struct rdma_cm_id *id;
	struct ib_qp *qp;
	struct ib_cq *cq;
	ktime_t since;
	struct zc_rdma_hello hello;
	struct zw_welcome welcome;
	struct zc_proof_message *proof;
	u64 proof_dma;
	struct ib_cqe proof_cqe;
	struct list_head posts;
	u32 wrs_used;
	u32 regs_used;
	bool starved;
	struct ib_rdma_wr *wrs;
	struct ib_sge *sges;
	struct hlist_head inboxes;
};

/* The first message of a connection */
struct zc_proof_message {
	struct zw_header header;
	struct zw_proof proof;
};

struct zc_conn *zc_conn_alloc(struct zc_rail *rail, bool sends, struct zc_text *why);
void zc_conn_free(struct zc_conn *conn);
void zc_conn_close(struct zc_conn *conn);
void zc_conns_close(struct list_head *conns);
void zc_conns_free(struct list_head *conns);
void zc_conn_publish(struct zc_conn *conn);
void zc_half_unlink(struct zc_half *half, struct list_head *conns);
void zc_conn_lose(struct zc_conn *conn, int error, const char *what);
void zc_conn_param(struct rdma_conn_param *param, const void *data, u8 bytes);
void zc_conn_progress(struct zc_conn *conn, enum zc_conn_step step);
int zc_conn_event(struct rdma_cm_id *id, struct rdma_cm_event *event);

static inline struct zc_net *zc_conn_net(const struct zc_conn *conn)
{
	return conn->rail->rdma->net;
}

/* ---- the sending side (rdma_connect.c) ---- */

void zc_rdma_connect(struct zc_out *out, const void *address);
void zc_rdma_hurry(struct zc_out *out);
void zc_rdma_disconnect(struct zc_out *out);

/* ---- the receiving side (rdma_accept.c) ---- */

int zc_conn_request(struct zc_rail *rail, struct rdma_cm_id *id,
		    const struct rdma_conn_param *theirs);
bool zc_conn_proved(struct zc_conn *conn, const struct zc_proof_message *message, u32 length);
void zc_rdma_drop(struct zc_in *in);
void zc_rdma_reap_fn(struct work_struct *work);
void zc_rdma_drop_strangers(struct zc_rdma *rdma);

/* ---- sending and receiving (rdma_post.c) ---- */

int zc_conn_open_qp(struct zc_conn *conn);
void zc_conn_close_qp(struct zc_conn *conn);
int zc_conn_refill(struct zc_conn *conn, u32 count);
int zc_conn_send_proof(struct zc_conn *conn);
int zc_rdma_post(struct zc_post *post);
int zc_rdma_poll(struct zc_net *net);

/* ---- regions (rdma_mr.c) ---- */

int zc_rdma_map(struct zc_region *region);
void zc_rdma_unmap(struct zc_region *region);
void zc_rdma_expose(struct zc_region *region, struct zc_out *out);
void zc_rdma_key(struct zc_region *region, u32 rail, u32 chunk, u64 *address, u32 *key);
u32 zc_rdma_gather(const struct zc_region *region, const struct zc_rail *rail, u64 *offset,
		   u64 *bytes, struct ib_sge *sges, u32 max);
void zc_rdma_regions_detach(struct zc_rdma *rdma);

/* ---- proofs (hello.c) ---- */

void zc_hello_name(const u8 *key, u8 *name);
void zc_hello_tag(const u8 *key, const struct zw_hello *hello, u8 *tag);
void zc_hello_accept(const u8 *key, const struct zw_hello *hello,
		     const struct zw_welcome *welcome, u8 *proof);
void zc_hello_connect(const u8 *key, const struct zw_hello *hello,
		      const struct zw_welcome *welcome, const struct zw_settings *settings,
		      u8 *proof);
bool zc_hello_equal(const u8 *a, const u8 *b, size_t bytes);

#endif /* ZCOLL_NET_RDMA_H */
