// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The network; see net.h. Links are numbered: the NICs' sending and receiving sides,
 * then the racks' cables up and down, or the six cables that leave each node of a torus.
 */
#include <stdlib.h>

#include "net.h"

enum net_stage {
	STAGE_INJECT,
	STAGE_UP,
	STAGE_DOWN,
	STAGE_TORUS,
	STAGE_FLY,
	STAGE_EJECT,
	STAGE_END,
};

static bool has_nics(const struct sim_model *model)
{
	return model->contention == SIM_CONTENTION_NIC;
}

static bool has_core(const struct sim_model *model)
{
	return model->shape == SIM_TWO_LEVEL && model->contention != SIM_CONTENTION_NONE;
}

static u32 link_inject(u32 node)
{
	return 2 * node;
}

static u32 link_eject(u32 node)
{
	return 2 * node + 1;
}

static u32 link_up(const struct sim_net *net, u32 rack)
{
	return 2 * net->nodes + 2 * rack;
}

static u32 link_torus(const struct sim_net *net, u32 node, u32 dim, bool down)
{
	return 2 * net->nodes + 6 * node + 2 * dim + down;
}

/* Do messages queue anywhere? */
bool net_has_links(const struct sim_net *net)
{
	return net->nlinks;
}

/* Places of a torus, where messages pass also if no node is there */
static u32 net_places(const struct sim_model *model)
{
	return model->shape == SIM_TORUS ? model->dims[0] * model->dims[1] * model->dims[2] : 0;
}

int net_init(struct sim_net *net, const struct sim_model *model, u32 nodes)
{
	u32 racks = model->shape == SIM_TWO_LEVEL ? (nodes - 1) / model->rack + 1 : 0, i;

	*net = (struct sim_net){ .model = model, .nodes = nodes };
	if (!has_nics(model) && !has_core(model))
		return 0;
	net->nlinks = 2 * nodes + 2 * racks + 6 * net_places(model);
	net->links = calloc(net->nlinks, sizeof(*net->links));
	if (!net->links)
		return -ENOMEM;
	for (i = 0; i < net->nlinks; i++) {
		net->links[i].per_byte = model->per_byte;
		net->links[i].gap = i < 2 * nodes ? model->gap : 0;
	}
	/* all NICs of a rack together, less what the core lacks */
	for (i = 0; i < 2 * racks; i++)
		net->links[link_up(net, 0) + i].per_byte =
			(u64)((double)model->per_byte * model->oversub / model->rack + 0.5);
	return 0;
}

void net_free(struct sim_net *net)
{
	free(net->links);
}

void net_depart(const struct sim_net *net, struct sim_route *route, u32 from, u32 to,
		bool control)
{
	*route = (struct sim_route){
		.from = from, .to = to, .at = from, .stage = STAGE_INJECT,
		.slowest = net->model->per_byte, .control = control,
	};
}

/*
 * One step of the shortest way, first along x, then y, then z; at equal length upwards.
 * Return: false: it has arrived.
 */
static bool torus_step(const struct sim_net *net, struct sim_route *route, u32 *link)
{
	u32 dim, weight = 1;

	for (dim = 0; dim < 3; dim++) {
		u32 size = net->model->dims[dim];
		u32 x = route->at / weight % size, y = route->to / weight % size;
		u32 up = (y + size - x) % size;

		if (up) {
			bool down = up > size / 2;
			u32 z = (x + (down ? size - 1 : 1)) % size;

			*link = link_torus(net, route->at, dim, down);
			route->at += (z - x) * weight;
			return true;
		}
		weight *= size;
	}
	return false;
}

static bool next_torus(const struct sim_net *net, struct sim_route *route, u64 *head)
{
	bool first = route->at == route->from;

	if (!torus_step(net, route, &route->link)) {
		route->stage = STAGE_FLY;
		return false;
	}
	if (!first)
		*head += net->model->hop;
	return has_nics(net->model);
}

/* Is there a queue at the message's stage? */
static bool stage_queues(const struct sim_net *net, struct sim_route *route, u64 *head)
{
	const struct sim_model *model = net->model;
	u32 rack_from, rack_to;

	switch (route->stage) {
	case STAGE_INJECT:
		route->stage = model->shape == SIM_TWO_LEVEL ? STAGE_UP :
			       model->shape == SIM_TORUS ? STAGE_TORUS : STAGE_FLY;
		route->link = link_inject(route->from);
		return has_nics(model);
	case STAGE_UP:
		rack_from = route->from / model->rack;
		rack_to = route->to / model->rack;
		route->stage = rack_from == rack_to ? STAGE_FLY : STAGE_DOWN;
		route->link = link_up(net, rack_from);
		return rack_from != rack_to && has_core(model);
	case STAGE_DOWN:
		*head += model->hop;
		route->stage = STAGE_FLY;
		route->link = link_up(net, route->to / model->rack) + 1;
		return has_core(model);
	case STAGE_TORUS:
		return next_torus(net, route, head);
	case STAGE_FLY:
		*head += model->latency;
		route->stage = STAGE_EJECT;
		return false;
	case STAGE_EJECT:
		route->stage = STAGE_END;
		route->link = link_eject(route->to);
		return has_nics(model);
	}
	return false;
}

/**
 * net_next - the next link on a message's way that has a queue
 * @net: network
 * @route: where the message is; @route->link is set
 * @head: when its head was there; when it is at the next link, or has arrived
 *
 * Return: false: there is none; the head arrives at *@head.
 */
bool net_next(const struct sim_net *net, struct sim_route *route, u64 *head)
{
	while (route->stage != STAGE_END)
		if (stage_queues(net, route, head))
			return true;
	return false;
}

/* The head of a message is at its next link. Return: when it is on the link. */
u64 net_pass(struct sim_net *net, struct sim_route *route, u64 bytes, u64 head)
{
	struct sim_link *link = &net->links[route->link];
	u64 busy = net_length(bytes, link->per_byte);
	u64 start = head > link->free ? head : link->free;

	link->free = start + (busy > link->gap ? busy : link->gap);
	if (route->control)
		start = head;
	if (link->per_byte > route->slowest)
		route->slowest = link->per_byte;
	return start;
}
