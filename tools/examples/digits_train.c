// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * digits: training by stochastic gradient descent, data-parallel; see digits.h.
 *
 * All ranks hold the same weights. Of each mini-batch a rank takes its share, computes the
 * gradient there, and zcoll averages the gradients over the ranks; all then make the same
 * step. The shares may differ by one picture, so each rank weighs its sum by ranks / pictures
 * of the batch: then the average over the ranks is the mean over the batch, whatever the
 * number of ranks.
 *
 * Each layer's gradient is averaged by an operation of its own. With overlap it is started as
 * soon as the rank has its part, and goes on in the kernel while the rank computes the
 * layer before; all are waited for before the step. The operations and their order are the
 * same without overlap, so the weights are the same to the last bit.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "digits.h"

int training_init(struct training *t, struct zcoll_comm *comm, struct net *net)
{
	size_t bytes;
	int l;

	memset(t, 0, sizeof(*t));
	t->comm = comm;
	t->net = net;
	for (l = 0; l < net->layers; l++) {
		bytes = (net->layer[l].weights + 1) * sizeof(float);
		t->buckets[l] = zcoll_alloc(comm, bytes);
		if (!t->buckets[l])
			return fail("memory for the gradient", strerror(errno));
	}
	return 0;
}

void training_free(struct training *t)
{
	int l;

	for (l = 0; l < t->net->layers; l++)
		zcoll_free(t->comm, t->buckets[l]);
}

static int averaging_failed(struct zcoll_comm *comm)
{
	char text[ZCOLL_TEXT_MAX];

	zcoll_comm_error(comm, text, sizeof(text));
	return fail("averaging gradients", text);
}

/* Average bucket @l over the ranks: now, or until *@req is waited for */
static int average(struct training *t, int l, struct zcoll_req **req)
{
	float *g = t->buckets[l];
	size_t count = t->net->layer[l].weights + (l == t->net->layers - 1);

	*req = NULL;
	if (!t->comm)
		return 0;
	if (t->overlap)
		return zcoll_iallreduce(t->comm, g, g, count, ZCOLL_FP32, ZCOLL_AVG, req);
	return zcoll_allreduce(t->comm, g, g, count, ZCOLL_FP32, ZCOLL_AVG);
}

/* This rank's part of a batch, and the average of all ranks' */
static int gradient(struct training *t, const struct picture *batch, size_t n)
{
	unsigned int ranks = t->comm ? zcoll_comm_size(t->comm) : 1;
	unsigned int me = t->comm ? zcoll_comm_rank(t->comm) : 0;
	size_t first = n * me / ranks, count = n * (me + 1) / ranks - first;
	struct zcoll_req *reqs[MAX_LAYERS];
	struct net *net = t->net;
	int l, last = net->layers - 1, err = 0;

	t->buckets[last][net->layer[last].weights] =
		net_forward(net, &batch[first], count, (float)ranks / (float)n);
	for (l = last; l >= 0 && !err; l--) {
		net_backward(net, l, &batch[first], count, t->buckets[l]);
		err = average(t, l, &reqs[l]);
	}
	/* requests that are not waited for after a failure end with the communicator */
	for (l = last; l >= 0 && !err; l--)
		if (reqs[l])
			err = zcoll_wait(reqs[l], ZCOLL_WAIT_FOREVER);
	return err ? averaging_failed(t->comm) : 0;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* @epoch: from 0. The loss is the mean over all pictures */
int train_epoch(struct training *t, const struct pictures *p, int epoch)
{
	struct net *net = t->net;
	int l, last = net->layers - 1;
	double start = now(), loss = 0;
	size_t at, n;

	for (at = 0; at < p->count; at += n) {
		n = p->count - at < BATCH ? p->count - at : BATCH;
		if (gradient(t, &p->all[at], n))
			return -1;
		loss += (double)t->buckets[last][net->layer[last].weights] * (double)n /
			(double)p->count;
		for (l = 0; l <= last; l++)
			net_step(net, l, t->buckets[l]);
	}
	t->losses[epoch] = loss;
	t->seconds[epoch] = now() - start;
	return 0;
}
