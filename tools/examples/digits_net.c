// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * digits: the classifier and its gradient, by back-propagation (Rumelhart, Hinton and
 * Williams, "Learning representations by back-propagating errors", Nature 323, 1986); see
 * digits.h.
 *
 * All sums go over pictures, rows and inputs in their order, so the same batch gives the same
 * bits.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"

/* How far a step goes along the gradient: softmax alone bears more than layers before it do */
#define STEP_SOFTMAX	1.0f
#define STEP_LAYERS	0.2f

/* ---- memory ---- */

static int layer_init(struct layer *l, int inputs, int rows)
{
	l->inputs = inputs;
	l->rows = rows;
	l->weights = (size_t)rows * ((size_t)inputs + 1);
	l->out = calloc((size_t)BATCH * (size_t)rows, sizeof(float));
	l->error = calloc((size_t)BATCH * (size_t)rows, sizeof(float));
	return l->out && l->error ? 0 : fail("layers", "out of memory");
}

int net_init(struct net *net, int layers, int hidden)
{
	float *w;
	int l;

	memset(net, 0, sizeof(*net));
	net->layers = layers;
	for (l = 0; l < layers; l++) {
		if (layer_init(&net->layer[l], l ? hidden : PIXELS,
			       l < layers - 1 ? hidden : CLASSES))
			return -1;
		net->weights += net->layer[l].weights;
	}
	w = calloc(net->weights, sizeof(*w));
	if (!w)
		return fail("weights", "out of memory");
	net->w = w;
	for (l = 0; l < layers; w += net->layer[l++].weights)
		net->layer[l].w = w;
	net_reset(net);
	return 0;
}

void net_free(struct net *net)
{
	int l;

	for (l = 0; l < net->layers; l++) {
		free(net->layer[l].out);
		free(net->layer[l].error);
	}
	free(net->w);
}

/* Zeroes will do for one layer; in several they would all learn the same */
void net_reset(struct net *net)
{
	uint32_t random = 1;
	struct layer *l;
	size_t i;

	memset(net->w, 0, net->weights * sizeof(*net->w));
	for (l = net->layer; l < &net->layer[net->layers - 1]; l++)
		for (i = 0; i < l->weights; i++) {
			random = random * 1664525 + 1013904223;
			l->w[i] = ((float)(random >> 8) / 0x800000 - 1) / sqrtf((float)l->inputs);
		}
}

/* ---- forward ---- */

static void apply(const struct layer *l, const float *x, float *out)
{
	const float *w = l->w;
	float sum;
	int r, i;

	for (r = 0; r < l->rows; r++, w += l->inputs + 1) {
		sum = 0;
		for (i = 0; i < l->inputs; i++)
			sum += w[i] * x[i];
		out[r] = sum + w[l->inputs];
	}
}

/* To the probability of each digit */
static void softmax(float *out)
{
	float most = -INFINITY, sum = 0;
	int c;

	for (c = 0; c < CLASSES; c++)
		most = fmaxf(most, out[c]);
	for (c = 0; c < CLASSES; c++) {
		out[c] = expf(out[c] - most);
		sum += out[c];
	}
	for (c = 0; c < CLASSES; c++)
		out[c] /= sum;
}

/* What layer @l has got of picture @k */
static const float *input(const struct net *net, int l, const struct picture *batch, size_t k)
{
	const struct layer *before = &net->layer[l - 1];

	return l ? before->out + k * (size_t)before->rows : batch[k].x;
}

/* All layers, on picture @k. Returns the probabilities */
static float *classify(struct net *net, const struct picture *batch, size_t k)
{
	float *out = NULL;
	int l, r;

	for (l = 0; l < net->layers; l++) {
		out = net->layer[l].out + k * (size_t)net->layer[l].rows;
		apply(&net->layer[l], input(net, l, batch, k), out);
		for (r = 0; r < net->layer[l].rows && l < net->layers - 1; r++)
			out[r] = tanhf(out[r]);
	}
	softmax(out);
	return out;
}

float net_forward(struct net *net, const struct picture *batch, size_t n, float weight)
{
	float *error = net->layer[net->layers - 1].error, *prob, loss = 0;
	size_t k;
	int c;

	for (k = 0; k < n; k++, error += CLASSES) {
		prob = classify(net, batch, k);
		loss -= weight * logf(fmaxf(prob[batch[k].digit], 1e-30f));
		for (c = 0; c < CLASSES; c++)
			error[c] = weight * (prob[c] - (c == batch[k].digit ? 1 : 0));
	}
	return loss;
}

/* ---- backward ---- */

static void add_gradient(const struct layer *l, const float *x, const float *error, float *g)
{
	int r, i;

	for (r = 0; r < l->rows; r++, g += l->inputs + 1) {
		for (i = 0; i < l->inputs; i++)
			g[i] += error[r] * x[i];
		g[l->inputs] += error[r];
	}
}

/* From the errors of a layer to those of the one before it, whose outputs are @x */
static void pass_back(const struct layer *l, const float *x, const float *error, float *before)
{
	const float *w = l->w;
	int r, i;

	memset(before, 0, (size_t)l->inputs * sizeof(*before));
	for (r = 0; r < l->rows; r++, w += l->inputs + 1)
		for (i = 0; i < l->inputs; i++)
			before[i] += w[i] * error[r];
	for (i = 0; i < l->inputs; i++)
		before[i] *= 1 - x[i] * x[i];
}

void net_backward(struct net *net, int l, const struct picture *batch, size_t n, float *g)
{
	const struct layer *layer = &net->layer[l], *next = layer + 1;
	float *error = layer->error;
	size_t k;

	memset(g, 0, layer->weights * sizeof(*g));
	for (k = 0; k < n; k++, error += layer->rows) {
		if (l < net->layers - 1)
			pass_back(next, layer->out + k * (size_t)layer->rows,
				  next->error + k * (size_t)next->rows, error);
		add_gradient(layer, input(net, l, batch, k), error, g);
	}
}

void net_step(struct net *net, int l, const float *g)
{
	const float step = net->layers > 1 ? STEP_LAYERS : STEP_SOFTMAX;
	struct layer *layer = &net->layer[l];
	size_t i;

	for (i = 0; i < layer->weights; i++)
		layer->w[i] -= step * g[i];
}

/* ---- what it can do ---- */

double net_accuracy(struct net *net, const struct pictures *p)
{
	const float *prob;
	size_t i, right = 0;
	int c, best;

	for (i = 0; i < p->count; i++) {
		prob = classify(net, &p->all[i], 0);
		for (c = 1, best = 0; c < CLASSES; c++)
			if (prob[c] > prob[best])
				best = c;
		right += best == p->all[i].digit;
	}
	return (double)right / (double)p->count;
}
