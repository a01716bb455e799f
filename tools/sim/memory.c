// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * What is in the nodes' buffers; see memory.h.
 */
#include <stdlib.h>

#include "memory.h"
#include "random.h"
#include "sim.h"

/* What nothing has been put into holds this */
#define POISON 0xdeadbeefdeadbeefULL

static const struct sim_job *job_of(const struct sim_memory *memory, u64 seq)
{
	return &memory->scene->jobs[seq % memory->scene->njobs];
}

static u32 job_root(const struct sim_job *job, u64 seq)
{
	return job->turn_root ? (job->root + seq) % job->prog.plan->members : job->root;
}

/* ---- layout ---- */

/* Slots of a step, and the elements of each */
static void step_slots(const struct sim_scene *scene, const struct sim_job *job,
		       const struct zcoll_step *step, u64 largest, u64 *count, u64 *stride)
{
	*stride = zc_step_cut(step, &job->geo, largest, job->slice).unit;
	*count = zc_step_receives(step) ? scene->slots : 0;
	if (step->flags & ZCOLL_STEP_OPEN)
		*count = *stride <= job->eager ? step->repeat : 0;
}

static void layout_sizes(const struct sim_scene *scene, const struct sim_job *job,
			 struct sim_layout *layout)
{
	const struct zcoll_plan *plan = job->prog.plan;
	u64 count, stride;
	u32 s;

	layout->largest = zc_geometry_largest(&job->geo, plan->segments);
	for (s = 0; s < plan->nsteps; s++) {
		step_slots(scene, job, &plan->steps[s], layout->largest, &count, &stride);
		if (layout->steps)
			layout->steps[s] = (struct sim_slots){
				layout->nslots, layout->slot_elements, stride };
		layout->nslots += count;
		layout->slot_elements += count * stride;
	}
	/* input, output, which are final */
	layout->room = 3 * job->geo.count + layout->slot_elements + layout->nslots +
		       ((u64)plan->acc + plan->scratch) * layout->largest;
}

/**
 * memory_needs - memory for the elements of all nodes
 * @scene: scene
 *
 * Return: bytes.
 */
u64 memory_needs(const struct sim_scene *scene)
{
	u64 most = 0;
	u32 i;

	for (i = 0; i < scene->njobs; i++) {
		struct sim_layout layout = { 0 };

		layout_sizes(scene, &scene->jobs[i], &layout);
		if (layout.room > most)
			most = layout.room;
	}
	return most * sizeof(u64) * scene->jobs[0].prog.plan->nodes * scene->window;
}

static int layout_init(const struct sim_scene *scene, const struct sim_job *job,
		       struct sim_layout *layout)
{
	const struct zcoll_plan *plan = job->prog.plan;
	u64 e;
	u32 s = 0;

	layout->steps = calloc(plan->nsteps + 1, sizeof(*layout->steps));
	layout->segment = malloc((job->geo.count + 1) * sizeof(*layout->segment));
	if (!layout->steps || !layout->segment)
		return -ENOMEM;
	for (e = 0; e < job->geo.count; e++) {
		while (e >= zc_geometry_at(&job->geo, plan->segments, s + 1))
			s++;
		layout->segment[e] = s;
	}
	layout_sizes(scene, job, layout);
	return 0;
}

int memory_init(struct sim_memory *memory, const struct sim_scene *scene, u32 nodes)
{
	u64 room = 0, i, buffers = (u64)nodes * scene->window;
	int err = 0;

	memory->scene = scene;
	memory->nodes = nodes;
	memory->layouts = calloc(scene->njobs, sizeof(*memory->layouts));
	memory->buffers = calloc(buffers, sizeof(*memory->buffers));
	memory->totals = calloc(scene->ops, sizeof(*memory->totals));
	if (!memory->layouts || !memory->buffers || !memory->totals)
		return -ENOMEM;
	for (i = 0; i < scene->njobs && !err; i++) {
		err = layout_init(scene, &scene->jobs[i], &memory->layouts[i]);
		if (memory->layouts[i].room > room)
			room = memory->layouts[i].room;
	}
	for (i = 0; i < buffers && !err; i++) {
		memory->buffers[i].seq = U64_MAX;
		memory->buffers[i].room = malloc((room + 1) * sizeof(u64));
		if (!memory->buffers[i].room)
			err = -ENOMEM;
	}
	return err;
}

void memory_free(struct sim_memory *memory)
{
	u64 i;

	for (i = 0; memory->buffers && i < (u64)memory->nodes * memory->scene->window; i++)
		free(memory->buffers[i].room);
	for (i = 0; memory->layouts && i < memory->scene->njobs; i++) {
		free(memory->layouts[i].steps);
		free(memory->layouts[i].segment);
	}
	for (i = 0; memory->totals && i < memory->scene->ops; i++)
		free(memory->totals[i]);
	free(memory->buffers);
	free(memory->layouts);
	free(memory->totals);
}

/* ---- buffers ---- */

/* An element of a node's input */
static u64 weight(const struct sim_memory *memory, u32 node, u64 seq, u64 e)
{
	return random_mix(random_mix(memory->scene->seed ^ seq << 20 ^ (u64)node << 44) + e);
}

static u64 *carve(u64 **at, u64 count)
{
	u64 *here = *at;

	*at += count;
	return here;
}

static void buffers_init(struct sim_memory *memory, struct sim_buffers *b, u32 node, u64 seq)
{
	const struct sim_job *job = job_of(memory, seq);
	const struct sim_layout *layout = &memory->layouts[job - memory->scene->jobs];
	const struct zcoll_plan *plan = job->prog.plan;
	u64 *at = b->room, i;

	b->seq = seq;
	b->job = job - memory->scene->jobs;
	b->v = zc_plan_number(plan, job_root(job, seq), node);
	b->ended = false;
	for (i = 0; i < layout->room; i++)
		at[i] = POISON;
	b->output = carve(&at, job->geo.count);
	b->input = carve(&at, job->geo.count);
	b->final = carve(&at, job->geo.count);
	b->acc = carve(&at, plan->acc * layout->largest);
	b->scratch = carve(&at, plan->scratch * layout->largest);
	b->slots = carve(&at, layout->slot_elements);
	b->full = carve(&at, layout->nslots);
	if (zc_plan_has_outputs(plan, b->v)) {
		b->acc = NULL;
		if (memory->scene->in_place && memory->scene->ranks == 1)
			b->input = b->output;
	}
	memset(b->final, 0, job->geo.count * sizeof(*b->final));
	memset(b->full, 0, layout->nslots * sizeof(*b->full));
	for (i = 0; i < job->geo.count; i++)
		if (zc_plan_has_input(plan, b->v, layout->segment[i]))
			b->input[i] = weight(memory, node, seq, i);
}

static struct sim_buffers *buffers_of(struct sim_memory *memory, u32 node, u64 seq)
{
	u32 window = memory->scene->window;
	struct sim_buffers *b = &memory->buffers[(u64)node * window + seq % window];

	if (b->seq != seq)
		buffers_init(memory, b, node, seq);
	return b;
}

/* The operation is about to be submitted; messages of it may have landed */
void memory_begin(struct sim_memory *memory, u32 node, u64 seq)
{
	buffers_of(memory, node, seq);
}

/* ---- places ---- */

/**
 * struct view - the elements of a unit, at one node
 * @memory: all memory
 * @b: the node's buffers
 * @job: the operation's
 * @layout: of @job
 */
struct view {
	const struct sim_memory *memory;
	struct sim_buffers *b;
	const struct sim_job *job;
	const struct sim_layout *layout;
};

static struct view view_of(struct sim_memory *memory, u32 node, u64 seq)
{
	struct sim_buffers *b = buffers_of(memory, node, seq);

	return (struct view){ memory, b, &memory->scene->jobs[b->job],
			      &memory->layouts[b->job] };
}

static u64 unit_elements(const struct zc_action *action)
{
	return (action->npieces > 0 ? action->piece[0].count : 0) +
	       (action->npieces > 1 ? action->piece[1].count : 0);
}

/* Element @j of a unit */
static u64 unit_element(const struct zc_action *action, u64 j)
{
	return j < action->piece[0].count ? action->piece[0].first + j :
					    action->piece[1].first + j - action->piece[0].count;
}

static u64 offset_in_segment(const struct view *view, u64 e)
{
	return e - zc_geometry_at(&view->job->geo, view->job->prog.plan->segments,
				  view->layout->segment[e]);
}

static u64 *acc_at(const struct view *view, u64 e)
{
	const struct zcoll_plan *plan = view->job->prog.plan;
	u32 sigma, segment = view->layout->segment[e];

	if (!view->b->acc)
		return &view->b->output[e];
	sigma = zc_plan_sigma(plan, view->b->v) % plan->segments;
	segment = (segment + plan->segments - sigma) % plan->segments % plan->acc;
	return &view->b->acc[segment * view->layout->largest + offset_in_segment(view, e)];
}

static u64 *scratch_at(const struct view *view, u32 index, u64 e)
{
	return &view->b->scratch[index * view->layout->largest + offset_in_segment(view, e)];
}

/* Where a step puts an element */
static u64 *dst_at(const struct view *view, u32 index, u64 e)
{
	return index == ZC_NONE ? acc_at(view, e) : scratch_at(view, index, e);
}

/* What is at a place; @gathered: DATA is as GATHER left it */
static u64 value_at(const struct view *view, u32 index, u64 e, bool gathered)
{
	if (index != ZC_NONE)
		return *scratch_at(view, index, e);
	if (gathered && view->memory->scene->ranks == 1)
		return view->b->input[e];
	return view->b->final[e] ? view->b->output[e] : *acc_at(view, e);
}

static u64 *slot_at(const struct view *view, u32 step, u32 slot, u64 j)
{
	const struct sim_slots *slots = &view->layout->steps[step];

	return &view->b->slots[slots->at + slot * slots->stride + j];
}

static u64 *slot_full(const struct view *view, u32 step, u32 slot)
{
	return &view->b->full[view->layout->steps[step].first + slot];
}

/* ---- messages ---- */

static u64 sent_value(const struct view *view, const struct zc_action *action, u64 j)
{
	u64 e = unit_element(action, j);

	return action->row->flags & ZCOLL_STEP_FIRST ? view->b->input[e] :
		value_at(view, action->src, e, action->row->flags & ZCOLL_STEP_INPUT);
}

/* What a SEND reads */
void memory_read(struct sim_memory *memory, u32 node, const struct zc_action *action,
		 u64 *payload)
{
	struct view view = view_of(memory, node, action->seq);
	u64 j;

	for (j = 0; j < unit_elements(action); j++)
		payload[j] = sent_value(&view, action, j);
}

/* Is what was sent still there? It must be, as long as it may be sent again. */
bool memory_still(struct sim_memory *memory, u32 node, const struct zc_action *action,
		  const u64 *payload)
{
	struct view view = view_of(memory, node, action->seq);
	u64 j;

	for (j = 0; j < unit_elements(action); j++)
		if (payload[j] != sent_value(&view, action, j))
			return false;
	return true;
}

/* Where a message that lands directly puts its elements: outputs, or scratch */
static u64 *direct_at(const struct view *view, const struct zc_msg *msg, u64 e)
{
	const struct zcoll_plan *plan = view->job->prog.plan;
	const struct zcoll_step *step = &plan->steps[msg->step];
	struct zc_turn turn;

	if (step->kind == ZCOLL_STEP_DELIVER)
		return &view->b->output[e];
	/* it is OPEN: each unit is a turn */
	zc_step_turn(plan, step, view->b->v, msg->unit, &turn);
	return scratch_at(view, turn.dst, e);
}

/**
 * memory_land - a message's elements land
 * @memory: memory
 * @node: the receiver
 * @sent: the sender's action
 * @payload: elements
 * @whole: all, else only the first half, and the rest is lost
 *
 * Return: what is wrong about it, or NULL.
 */
const char *memory_land(struct sim_memory *memory, u32 node, const struct zc_action *sent,
			const u64 *payload, bool whole)
{
	struct view view = view_of(memory, node, sent->msg.seq);
	u64 j, end = unit_elements(sent), *full;

	if (view.b->ended)
		return "elements land after the operation has ended";
	if (sent->slot != ZC_NONE) {
		full = slot_full(&view, sent->msg.step, sent->slot);
		if (*full && *full != sent->msg.unit + 1)
			return "elements land in a slot that others are in";
		if (whole)
			*full = sent->msg.unit + 1;
	}
	for (j = 0; j < (whole ? end : end / 2); j++)
		*(sent->slot == ZC_NONE ? direct_at(&view, &sent->msg, unit_element(sent, j)) :
		  slot_at(&view, sent->msg.step, sent->slot, j)) = payload[j];
	return NULL;
}

/* ---- local work ---- */

static void result(const struct view *view, u64 e, u64 value)
{
	view->b->output[e] = value;
	view->b->final[e] = true;
}

static void gather(const struct view *view, const struct zc_action *action, u64 e)
{
	/* with one local rank, DATA stands for its input */
	if (action->dst != ZC_NONE || view->memory->scene->ranks > 1)
		*dst_at(view, action->dst, e) = view->b->input[e];
}

static void fold_received(const struct view *view, const struct zc_action *action, u64 j, u64 e)
{
	u32 flags = action->row->flags;
	u64 value;

	if (action->slot == ZC_NONE)
		return;		/* it has landed in its destination */
	value = *slot_at(view, action->step, action->slot, j);
	if (flags & ZCOLL_STEP_FIRST)
		value += view->b->input[e];
	else if (!(flags & ZCOLL_STEP_STORE))
		value += value_at(view, action->src, e, flags & ZCOLL_STEP_INPUT);
	if (flags & ZCOLL_STEP_RESULT)
		result(view, e, value);
	else
		*dst_at(view, action->dst, e) = value;
}

static void fold_local(const struct view *view, const struct zc_action *action, u64 e)
{
	u32 flags = action->row->flags;
	u64 value = value_at(view, action->src, e, flags & ZCOLL_STEP_INPUT);

	if (!(flags & ZCOLL_STEP_STORE))
		value += value_at(view, action->dst, e, flags & ZCOLL_STEP_INPUT);
	*dst_at(view, action->dst, e) = value;
}

static void deliver(const struct view *view, const struct zc_action *action, u64 j, u64 e)
{
	result(view, e, action->slot == ZC_NONE ? view->b->output[e] :
			*slot_at(view, action->step, action->slot, j));
}

static void final(const struct view *view, const struct zc_action *action, u64 e)
{
	u32 flags = action->row->flags;

	result(view, e, flags & ZCOLL_STEP_FIRST ? view->b->input[e] :
			value_at(view, action->src, e, flags & ZCOLL_STEP_INPUT));
}

/* Carry out GATHER, FOLD, DELIVER or FINAL */
void memory_apply(struct sim_memory *memory, u32 node, const struct zc_action *action)
{
	struct view view = view_of(memory, node, action->seq);
	u64 j, e;

	for (j = 0; j < unit_elements(action); j++) {
		e = unit_element(action, j);
		if (action->type == ZC_DO_GATHER)
			gather(&view, action, e);
		else if (action->type == ZC_DO_DELIVER)
			deliver(&view, action, j, e);
		else if (action->type == ZC_DO_FINAL)
			final(&view, action, e);
		else if (action->peer == ZC_NONE)
			fold_local(&view, action, e);
		else
			fold_received(&view, action, j, e);
	}
}

/* The work is done: others may land where this landed */
void memory_used(struct sim_memory *memory, u32 node, const struct zc_action *action)
{
	struct view view = view_of(memory, node, action->seq);

	if (action->slot != ZC_NONE)
		*slot_full(&view, action->step, action->slot) = 0;
}

/* ---- results ---- */

/* What all members' inputs add up to */
static const u64 *total_of(struct sim_memory *memory, const struct sim_job *job, u64 seq)
{
	u64 *total = memory->totals[seq], e;
	u32 n;

	if (total)
		return total;
	total = calloc(job->geo.count + 1, sizeof(*total));
	for (n = 0; total && n < job->prog.plan->members; n++)
		for (e = 0; e < job->geo.count; e++)
			total[e] += weight(memory, n, seq, e);
	memory->totals[seq] = total;
	return total;
}

static u64 expected(const struct view *view, const u64 *total, u64 e)
{
	const struct zcoll_plan *plan = view->job->prog.plan;
	u32 root = job_root(view->job, view->b->seq), from;

	switch (plan->collective) {
	case ZCOLL_ALLGATHER:
		from = view->layout->segment[e];
		break;
	case ZCOLL_BROADCAST:
		from = 0;
		break;
	default:
		return total[e];
	}
	return weight(view->memory, zc_plan_node(plan, root, from), view->b->seq, e);
}

static const char *check_results(struct sim_memory *memory, const struct view *view)
{
	const struct zcoll_plan *plan = view->job->prog.plan;
	const u64 *total = total_of(memory, view->job, view->b->seq);
	u64 e;

	if (!total)
		return "no memory to check results";
	for (e = 0; e < view->job->geo.count; e++)
		if (zc_plan_has_output(plan, view->b->v, view->layout->segment[e]) &&
		    view->b->output[e] != expected(view, total, e))
			return view->b->output[e] == POISON ?
				"success, and a result is missing" :
				"success, and a result is wrong";
	return NULL;
}

/**
 * memory_end - an operation has ended at a node
 * @memory: memory
 * @node: node
 * @seq: operation
 * @status: its verdict
 *
 * The buffers are the caller's again, who does what he likes with them.
 * Return: what is wrong, or NULL.
 */
const char *memory_end(struct sim_memory *memory, u32 node, u64 seq, s32 status)
{
	struct view view = view_of(memory, node, seq);
	const char *wrong = status ? NULL : check_results(memory, &view);
	u64 i;

	view.b->ended = true;
	for (i = 0; i < view.layout->room; i++)
		view.b->room[i] = ~POISON;
	return wrong;
}
