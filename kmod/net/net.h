/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The network: how the nodes of a communicator reach each other.
 *
 *   net.c      a communicator's network: open, addresses, ticks, closing
 *   peer.c     half-links: connecting, the queue of what is to be sent, credits
 *   message.c  messages: putting together, and what comes of those that have come (wire.h)
 *   parse.c    messages: checking and taking apart
 *   waits.c    for whom an operation waits
 *   key.c      regions: memory of this node that others write to, and their keys
 *   user.c     what all networks of a user may take together
 *   loop.c     fabric "loop": nodes that are communicators of the same kernel
 *   rdma*.c    fabric "rdma": queue pairs of any verbs device
 *
 * Vocabulary
 *
 *   fabric     what carries messages and writes: struct zc_fabric
 *   half-link  a connection to another node on which only this node sends (struct
 *              zc_out), or only the other one (struct zc_in). Each direction has its own,
 *              made by who sends, when it first has something to send
 *   post       something to be sent: writes into the peer's memory, or none, and then a
 *              message: struct zc_post
 *   inbox      a message that has come, and the memory it is in. Payload of small units
 *              stays there until it is folded: nothing is copied
 *   region     memory that the fabric reads or writes: a user's buffer, or memory of the
 *              kernel for an operation. Once it is *exposed*, peers that are told its *keys*
 *              can write into it. It is cut into *chunks*, with keys of their own
 *   rail       a device, or port, that nodes are connected by; each half-link has a queue
 *              pair on each rail. Messages go on rail 0, writes with their message on any
 *   landing    where a unit is to be written, as its receiver's GRANT said
 *   credit     leave to send one message: the receiver has an inbox posted for it
 *
 * Locking. zc_comm.lock (a spinlock, process context) protects all of net, peers, half-links
 * and regions, but for what a fabric keeps for itself. A fabric's functions say how they are
 * called; what it calls back it calls from process context without that lock. zc_net.poll_lock
 * (a mutex) is held while completions are taken in, so that messages of a half-link are seen in
 * order; it is taken before zc_comm.lock. zc_net.region_lock (a mutex) is held while a region is
 * mapped or unmapped; it may be taken under poll_lock.
 *
 * What a fabric calls back only tells the engine. Who has polled (zc_net_poll(), poll_work)
 * lets the engine run after that; other callbacks have poll_work do it.
 *
 * Lifetimes. A net lives from zc_net_open() to zc_net_close(), which is the communicator's.
 * Peers are made when first needed, and freed with the net. A region of a user's buffer lives as
 * long as that (struct zc_buf holds it); one of the kernel's until zc_net_close().
 * Nothing of this node is written to by a peer after CLOSE of the engine has been carried out:
 * all regions are unmapped by then. Half-links stay up for control messages, by which survivors
 * settle their verdicts, until the net is closed, unless their device goes.
 */
#ifndef ZCOLL_NET_H
#define ZCOLL_NET_H

#include <linux/rbtree.h>

#include "../zcoll.h"
#include "parse.h"
#include "wire.h"

/* An inbox with its message, in all: a page, so that it goes in one packet */
#define ZC_INBOX_BYTES	4096
#define ZC_MESSAGE_MAX	ZW_MESSAGE_MAX
#define ZC_MAX_RAILS	4

/* Writes of a post, at most */
#define ZC_POST_WRITES	16

/* Nodes that a net connects to at the same time, at most */
#define ZC_CONNECTS	16

/* Inboxes that a sender keeps back for an ABORT and a CREDIT (peer.c) */
#define ZC_RESERVE	2

struct zc_fabric;
struct zc_in;
struct zc_out;
struct zc_peer;
struct zc_post;
struct zc_user;
struct zc_write;

/* Settings, from module parameters when a net is opened */
struct zc_net_config {
	u32 slots;		/* slots of a receiving step: 8 */
	u32 slice_bytes;	/* 64 KiB, a multiple of 64 */
	u32 eager_bytes;	/* units up to here go in messages; at most what an inbox holds */
	u32 depth;		/* inboxes posted for each half-link: 32 */
	u64 silence_ns;		/* heartbeat interval: a fifth of the time-out */
	u64 timeout_ns;		/* heartbeat time-out: 2 s; 0: none */
	u64 tick_ns;		/* interval of ticks: that of heartbeats, if there are any */
};

/**
 * struct zc_net - a communicator's network
 * @comm: the communicator
 * @fabric: what carries it
 * @fab: the fabric's own
 * @user: whose it is
 * @memcg: what kernel threads allocate for the net is charged to it
 * @unlimited: that user has CAP_SYS_RESOURCE
 * @bytes: kernel memory taken, counted by zc_net_charge()
 * @config: settings
 * @rails: their number
 * @next_rail: for the next post with writes
 * @peers: by node, NULL: nothing has been heard of it nor said to it; @comm->layout.nodes of them
 * @addresses: of all nodes, ZCOLL_ADDRESS_MAX bytes each; NULL: not known yet
 * @poll_lock: see the head of this file
 * @region_lock: likewise
 * @poll_work: takes completions in; on a workqueue of high priority
 * @tick_work: heartbeats
 * @close_work: carries out the engine's CLOSE
 * @waitq: who waits until all is sent, or a region exposed
 * @clock: time that the engine sees: without what this node slept through
 * @ticked: CLOCK_MONOTONIC of the last tick
 * @shut: CLOSE is asked for: data is not sent any more
 * @closed: CLOSE has been carried out: peers cannot write here any more
 * @closing: zc_net_close() has begun: nothing is connected or accepted any more
 * @deaf: there are no half-links any more: nothing is polled
 * @device_gone: half-links end with CLOSE
 * @left: BYE has been sent
 * @broken: a half-link has gone down, which nobody has looked at yet
 * @connecting: half-links that are being connected
 * @to_connect: half-links that wait until there are less of them
 * @next_region: number for the next region
 * @regions: all regions
 * @free_regions: of the kernel, ready to be used again
 * @region_bytes: memory of the kernel's regions
 * @nlandings: landings that are kept
 * @inbox_bytes: memory of inboxes with payload that waits
 * @inbox_room: so much of it has been charged, under zc_comm.lock
 * @keys_bytes: memory of keys that peers have told
 * @bytes_written: counters, as in struct zcoll_stats
 * @bytes_inline: likewise
 * @messages: likewise
 */
struct zc_net {
	struct zc_comm *comm;
	const struct zc_fabric *fabric;
	void *fab;
	struct zc_user *user;
	struct mem_cgroup *memcg;
	bool unlimited;
	atomic64_t bytes;
	struct zc_net_config config;
	u32 rails;
	u32 next_rail;
	struct zc_peer **peers;
	u8 *addresses;
	struct mutex poll_lock;		/* taking completions in */
	struct mutex region_lock;	/* mapping and unmapping */
	struct work_struct poll_work;
	struct delayed_work tick_work;
	struct work_struct close_work;
	wait_queue_head_t waitq;
	u64 clock;
	ktime_t ticked;
	bool shut;
	bool closed;
	bool closing;
	bool deaf;
	bool device_gone;
	bool left;
	bool broken;
	u32 connecting;
	struct list_head to_connect;
	u64 next_region;
	struct list_head regions;
	struct list_head free_regions;
	u64 region_bytes;
	u32 nlandings;
	atomic64_t inbox_bytes;
	u64 inbox_room;
	u64 keys_bytes;
	u64 bytes_written;
	u64 bytes_inline;
	u64 messages;
};

/* ---- net.c, for the module ---- */

int zc_net_init(void);
void zc_net_uninit(void);
int zc_net_open(struct zc_comm *comm, const char *fabric, struct zc_text *why);
void zc_net_close(struct zc_comm *comm);
u32 zc_net_address(struct zc_net *net, void *buf);
int zc_net_peers(struct zc_net *net, u8 *addresses, struct zc_text *why);
void zc_net_event(struct zc_net *net);
void zc_net_close_again(struct zc_net *net);
void zc_net_deafen(struct zc_net *net);
void zc_net_connect(struct zc_out *out);
void zc_net_connect_ended(struct zc_net *net);
void zc_net_take_in(struct zc_net *net);
void zc_net_bye(struct zc_net *net, struct zc_peer *peer);
int zc_net_poll(struct zc_net *net);
void zc_net_leave(struct zc_net *net);
u32 zc_net_connected(const struct zc_net *net);
struct zc_engine_config zc_net_engine_config(const struct zc_comm *comm);
void zc_net_settings(const struct zc_net *net, struct zw_settings *settings);
int zc_net_settings_check(const struct zc_net *net, const struct zw_settings *theirs,
			  struct zc_text *why);

/*
 * Bytes of the writes of a post, at most. A unit may be an eighth longer than a slice (engine.h);
 * one that is not cut into slices goes in several posts.
 */
static inline u32 zc_net_post_bytes(const struct zc_net *net)
{
	return max_t(u32, net->config.slice_bytes + net->config.slice_bytes / 8, SZ_1M);
}

/* Data is sent only while nothing has failed */
static inline bool zc_net_sends(const struct zc_net *net)
{
	return !net->shut && !net->closing && !net->comm->error;
}

/* ---- message.c: actions of the engine that concern others; under zc_comm.lock ---- */

void zc_net_send(struct zc_net *net, struct zc_op *op, const struct zc_action *action);
void zc_net_tell(struct zc_net *net, const struct zc_action *action);
void zc_net_shut(struct zc_net *net);
void zc_net_call(struct zc_net *net, struct zc_op *op);
struct zc_post *zc_message_new(struct zc_net *net, u32 node, u8 type, u32 length);

/* ---- user.c ---- */

int zc_user_enter(struct zc_net *net);
void zc_user_exit(struct zc_net *net);
void zc_user_connect(struct zc_user *user, struct work_struct *work);
int zc_net_charge(struct zc_net *net, u64 bytes, struct zc_text *why);
void zc_net_uncharge(struct zc_net *net, u64 bytes);

/* ---- waits.c ---- */

void zc_net_add_waits(struct zc_text *text, const struct zc_comm *comm, const struct zc_op *op);

/* ---- regions (key.c) ---- */

enum zc_region_state {
	ZC_REGION_PRIVATE,	/* peers cannot touch it */
	ZC_REGION_EXPOSING,
	ZC_REGION_EXPOSED,
};

/**
 * struct zc_region - memory that the fabric reads or writes
 * @net: its net
 * @id: its number for peers, never used again
 * @base: kernel address of the first byte, on a page boundary
 * @npages: pages
 * @kernel: pages of our own, vmalloc'ed; else a user's, kept by a struct zc_buf
 * @mapped: the fabric has it; under zc_net.region_lock
 * @state: enum zc_region_state
 * @via: half-link by which it is being exposed
 * @waiting: posts that wait until it is exposed
 * @told: bit for each node that knows its keys
 * @nposts: posts that name it, in queues or in @waiting
 * @link: in zc_net.regions
 * @free_link: in zc_net.free_regions, or empty
 * @fab: the fabric's own: mappings and keys
 */
struct zc_region {
	struct zc_net *net;
	u64 id;
	void *base;
	unsigned long npages;
	bool kernel;
	bool mapped;
	enum zc_region_state state;
	struct zc_out *via;
	struct list_head waiting;
	unsigned long *told;
	u32 nposts;
	struct list_head link;
	struct list_head free_link;
	void *fab;
};

struct zc_region *zc_region_make(struct zc_net *net, void *base, unsigned long npages);
void zc_region_destroy(struct zc_region *region);
struct zc_region *zc_region_get(struct zc_net *net, size_t bytes, struct zc_text *why);
void zc_region_put(struct zc_region *region);
bool zc_region_ready(struct zc_region *region, struct zc_post *post);
void zc_post_name(struct zc_post *post, struct zc_region *region);
void zc_regions_drop_posts(struct zc_net *net);
bool zc_regions_settled(const struct zc_net *net);
void zc_regions_unmap(struct zc_net *net);
void zc_regions_destroy(struct zc_net *net);
int zc_keys_heard(struct zc_peer *peer, const void *payload, u32 length);
void zc_keys_forget(struct zc_peer *peer, u64 region);
void zc_keys_free(struct zc_peer *peer);
u32 zc_keys_find(struct zc_peer *peer, u64 region, u64 offset, u64 bytes, u32 rail,
		 struct zc_write *write);

/* A row of bytes in a region, as place.c finds it */
struct zc_span {
	struct zc_region *region;
	u64 offset;		/* in the region */
	u64 bytes;
	u64 at;			/* bytes from the unit's first one */
	u64 user;		/* bytes from the begin of the users' buffers */
};

/* The landing of a GRANT, kept in its operation's landings until units are sent there */
struct zc_grant {
	struct hlist_node link;
	struct zc_landing landing;
};

void zc_grant_free(struct zc_net *net, struct zc_grant *grant);

/* Where in zc_op.inboxes and .landings what is kept */
static inline u32 zc_op_hash(u32 step, u64 unit)
{
	return (step + (u32)unit) % ZC_OP_HASH;
}

/**
 * struct zc_inbox - a message that has come
 * @link: in its operation's inboxes, if it has payload that waits
 * @net: counts its memory while its payload waits; else NULL
 * @seq: operation
 * @unit: unit
 * @step: step of this node
 * @from: the node that sent it
 * @offset: of the payload in @message
 * @length: bytes of the payload
 * @in: the half-link it came by, while the fabric has it
 * @dma: for the fabric
 * @priv: for the fabric
 * @message: at most ZC_MESSAGE_MAX bytes
 */
struct zc_inbox {
	struct hlist_node link;
	struct zc_net *net;
	u64 seq;
	u64 unit;
	u32 step;
	u32 from;
	u16 offset;
	u16 length;
	struct zc_in *in;
	u64 dma;
	u64 priv[2];
	u8 message[] __aligned(8);
};

static_assert(sizeof(struct zc_inbox) + ZW_MESSAGE_MAX <= ZC_INBOX_BYTES);

int zc_message_init(void);
void zc_message_uninit(void);
struct zc_inbox *zc_inbox_alloc(gfp_t gfp);
void zc_inbox_free(struct zc_inbox *box);

/* ---- half-links (peer.c) ---- */

enum zc_out_state {
	ZC_OUT_IDLE,
	ZC_OUT_CONNECTING,
	ZC_OUT_UP,
	ZC_OUT_DOWN,		/* never comes up again */
};

/**
 * struct zc_write - bytes to be written into a peer's memory, of one key
 * @region: from there
 * @offset: in @region
 * @bytes: so many
 * @address: to there: the address that the peer told for the chunk, and the offset in it
 * @key: the chunk's key, on the post's rail
 */
struct zc_write {
	struct zc_region *region;
	u64 offset;
	u32 bytes;
	u32 key;
	u64 address;
};

/* Which posts may use the inboxes that are kept back */
enum zc_urgency {
	ZC_ORDINARY,
	ZC_CREDIT,
	ZC_ABORT,
};

/**
 * struct zc_post - writes, and a message after them
 * @link: in zc_out.queue, in zc_region.waiting, or the fabric's
 * @out: half-link
 * @rail: on which all of it goes
 * @length: bytes of @message; 0: there is none, only writes. In that case more writes, and the
 *	message after them, follow as posts of their own
 * @nwrites: number of @writes, at most ZC_POST_WRITES; 0 only if there is a message
 * @writes: or NULL
 * @region: must be exposed, and its keys told, before; or NULL, also when the fabric has it
 * @urgency: enum zc_urgency
 * @wait_length: bytes of @message, which goes after the last writes
 * @at: bytes of the unit that writes have been made for
 * @unit_bytes: bytes of the unit
 * @written: bytes of @writes
 * @landing: where the unit goes
 * @action: the SEND to be answered, if @data
 * @data: see @action
 * @priv: for the fabric
 * @message: kmalloc'ed with the rest, so that it can be mapped
 */
struct zc_post {
	struct list_head link;
	struct zc_out *out;
	u32 rail;
	u32 length;
	u32 nwrites;
	struct zc_write *writes;
	struct zc_region *region;
	enum zc_urgency urgency;
	u32 wait_length;
	u64 at;
	u64 unit_bytes;
	u64 written;
	struct zc_landing landing;
	struct zc_action action;
	bool data;
	u64 priv[6];
	u8 message[] __aligned(8);
};

/**
 * struct zc_out - this node's half-link to another node
 * @peer: the other node
 * @state: enum zc_out_state
 * @queue: posts that wait for the connection, a credit, or room
 * @posted: posts the fabric has
 * @owed: posts with units that the fabric has, and regions that are being exposed: CLOSE waits
 *	for these
 * @sent: messages sent, in all
 * @taken: of these, how many the peer has said it has taken in
 * @crediting: a CREDIT is in @queue
 * @aborting: an ABORT has been queued
 * @was_up: it has been UP
 * @ended: disconnected
 * @connect_work: the part of connecting that sleeps
 * @connect_link: in zc_net.to_connect, or empty
 * @fab: the fabric's own
 */
struct zc_out {
	struct zc_peer *peer;
	enum zc_out_state state;
	struct list_head queue;
	u32 posted;
	u32 owed;
	u32 sent;
	u32 taken;
	bool crediting;
	bool aborting;
	bool was_up;
	bool ended;
	struct work_struct connect_work;
	struct list_head connect_link;
	void *fab;
};

/**
 * struct zc_in - another node's half-link to this node
 * @peer: the other node
 * @accepted: the fabric has one; there is never a second one
 * @up: its messages count: it has proved to know the key
 * @ended: dropped
 * @received: messages taken in, in all
 * @credited: of these, how many the peer has been told
 * @fab: the fabric's own
 */
struct zc_in {
	struct zc_peer *peer;
	bool accepted;
	bool up;
	bool ended;
	u32 received;
	u32 credited;
	void *fab;
};

/* Some of the operations in the window: bit i: operation @from + i */
struct zc_seqs {
	u64 from;
	u64 bits;
};

static_assert(ZC_WINDOW <= 64);

/**
 * struct zc_peer - another node
 * @net: its net
 * @node: its number
 * @left: it has said BYE, and all that it had sent before has come
 * @bye: it has said BYE
 * @bye_missing: messages that it had sent before, and have not come
 * @bye_retired: operations it had ended then
 * @broken: a half-link is down, which has not been judged yet
 * @heard_out: what had come before that has been taken in
 * @broke_at: when @broken was set
 * @lost: it is taken for dead, or cannot be reached: nothing that it says counts
 * @shunned: so it is because of what it has sent
 * @error: why @broken
 * @why: likewise; kmalloc'ed, or NULL
 * @retired: operations it has ended, as far as it has said
 * @described: operations it has been sent the description of
 * @heard: operations of which it has sent something
 * @uncalled: operations it is still to be called to, for it had no room for them
 * @out: half-link to it
 * @in: half-link from it
 * @keys: what it has told of its regions, by number (key.c)
 */
struct zc_peer {
	struct zc_net *net;
	u32 node;
	bool left;
	bool bye;
	u32 bye_missing;
	u64 bye_retired;
	bool broken;
	bool heard_out;
	ktime_t broke_at;
	bool lost;
	bool shunned;
	int error;
	char *why;
	u64 retired;
	struct zc_seqs described;
	struct zc_seqs heard;
	struct zc_seqs uncalled;
	struct zc_out out;
	struct zc_in in;
	struct rb_root keys;
};

struct zc_peer *zc_peer(struct zc_net *net, u32 node);
__printf(2, 3) void zc_peer_misbehaved(struct zc_peer *peer, const char *fmt, ...);
bool zc_seqs_has(const struct zc_seqs *seqs, u64 seq);
bool zc_seqs_add(const struct zc_comm *comm, struct zc_seqs *seqs, u64 seq);
void zc_peers_judge(struct zc_net *net);
void zc_peers_pump(struct zc_net *net);
void zc_peers_drop_posts(struct zc_region *region);
void zc_peers_disconnect(struct zc_net *net, bool all);
void zc_peers_free(struct zc_net *net);
bool zc_peers_quiet(const struct zc_net *net);
struct zc_post *zc_post_alloc(struct zc_net *net, u32 node, u32 length, u32 nwrites);
void zc_post_drop(struct zc_post *post);
void zc_peer_credit(struct zc_peer *peer);
bool zc_peer_in_credit(struct zc_peer *peer);
void zc_out_queue(struct zc_post *post);
void zc_out_queue_first(struct zc_post *post);
void zc_out_pump(struct zc_out *out);
void zc_peers_drop_data(struct zc_net *net);
void zc_out_drop(struct zc_out *out);
bool zc_out_credited(struct zc_out *out, u32 taken);
bool zc_post_fill(struct zc_post *post);

/* ---- what a fabric is ---- */

/**
 * struct zc_fabric - a fabric
 * @name: how users call it
 * @open: make what a net needs, and listen. @rails: what follows the name and a colon in the
 *	option, or "". Sets zc_net.rails. May sleep. Return: 0, or a negative errno and @why, and
 *	the net is not polled any more.
 * @close: undo it; all half-links are disconnected, all regions unmapped. May sleep.
 * @address: write this node's address, at most ZCOLL_ADDRESS_MAX bytes. Return: its bytes.
 * @connect: begin to connect @out->peer, whose address is given; from connect_work, may
 *	sleep. Ends with zc_out_up() or zc_out_down(), maybe before it returns.
 * @hurry: @connect is to return soon, for a disconnect is to come; may be NULL.
 * @disconnect: end a half-link, in whatever state it is, once; may sleep. When it returns,
 *	all its posts have been answered by zc_post_done(), and nothing of it is called back any
 *	more. Called without poll_lock.
 * @drop: likewise for a half-link from a peer: nothing comes from there any more, neither
 *	message nor write, and its inboxes are freed. Called without poll_lock.
 * @map: make a region ready to be read by @post; may sleep. Return: 0 or a negative errno.
 * @unmap: undo @map, and @expose, which is not under way. Peers cannot touch it when this
 *	returns, though half-links may be up, and no post reads it any more. May sleep.
 * @expose: let peers write into it, by what is sent on @out, which is UP. Under
 *	zc_comm.lock. Ends with zc_region_exposed(), at the latest by @disconnect of @out.
 *	If it fails the region is as it was before.
 * @key: the address and key of a chunk of an exposed region, on a rail. Chunks have
 *	@chunk_pages pages.
 * @chunk_pages: see @key
 * @post: send. Under zc_comm.lock. Return: 0, then zc_post_done() will come, never from in here;
 *	-EAGAIN: no room, zc_out_kick() when there is.
 * @poll: take in what has come and what is done, a bounded number, and ask for an event
 *	(zc_net_event()) when there is nothing left. Under zc_net.poll_lock. Return: the number.
 *
 * A half-link that breaks is told by zc_out_down(), or zc_in_down(); what had come on it
 * before must still be given by @poll, so that a BYE is seen before the loss. Its posts are
 * answered, at the latest by @disconnect. When @close has returned nothing is called back any
 * more, zc_net_event() neither; what is asked for while it runs is not polled.
 */
struct zc_fabric {
	const char *name;
	u32 chunk_pages;
	int (*open)(struct zc_net *net, const char *rails, struct zc_text *why);
	void (*close)(struct zc_net *net);
	u32 (*address)(struct zc_net *net, void *buf);
	void (*connect)(struct zc_out *out, const void *address);
	void (*hurry)(struct zc_out *out);
	void (*disconnect)(struct zc_out *out);
	void (*drop)(struct zc_in *in);
	int (*map)(struct zc_region *region);
	void (*unmap)(struct zc_region *region);
	void (*expose)(struct zc_region *region, struct zc_out *out);
	void (*key)(struct zc_region *region, u32 rail, u32 chunk, u64 *address, u32 *key);
	int (*post)(struct zc_post *post);
	int (*poll)(struct zc_net *net);
};

extern const struct zc_fabric zc_fabric_loop;
extern const struct zc_fabric zc_fabric_rdma;

/* The fabric's own set-up, with the module's */
int zc_rdma_init(void);
void zc_rdma_uninit(void);

/* ---- what a fabric calls back: process context, without zc_comm.lock ---- */

void zc_out_kick(struct zc_out *out);
void zc_out_up(struct zc_out *out);
void zc_out_down(struct zc_out *out, int error, const struct zc_text *why);
struct zc_in *zc_in_accept(struct zc_net *net, u32 node);
void zc_in_up(struct zc_in *in);
void zc_in_down(struct zc_in *in, int error);
void zc_in_message(struct zc_in *in, struct zc_inbox *box, u32 length);
void zc_post_done(struct zc_post *post, int error);
void zc_region_exposed(struct zc_region *region, int error);
void zc_net_device_gone(struct zc_net *net, const char *device);

#endif /* ZCOLL_NET_H */
