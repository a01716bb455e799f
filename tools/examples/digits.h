/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What the parts of the example digits share: digits.c (options and checks),
 * digits_data.c (pictures), digits_net.c (the classifier and its gradient), digits_train.c
 * (training, where zcoll comes in).
 *
 * The classifier is a *network* of layers of weights; with one layer it is softmax
 * regression. A layer has an output for each *row* of its weights, and each row a weight for
 * each input and one for the constant 1. Between layers stands tanh.
 *
 * The gradient of a layer is a *bucket*: what is averaged over the ranks in one operation. As
 * the last layer's gradient is known first, its bucket can be on its way while the layers
 * before it are still computed. The loss rides along with it.
 */
#ifndef DIGITS_H
#define DIGITS_H

#include <stdbool.h>
#include <stddef.h>

#include <zcoll.h>

#define PIXELS		64
#define CLASSES		10
#define BATCH		32
#define MAX_LAYERS	8
#define MAX_HIDDEN	4096
#define MAX_EPOCHS	1000

extern unsigned int rank;

/* Says what has failed, and why; returns -1 */
int fail(const char *what, const char *why);

/* ---- digits_data.c ---- */

struct picture {
	float x[PIXELS];
	int digit;
};

struct pictures {
	struct picture *all;
	size_t count, room;
};

int read_pictures(const char *path, struct pictures *train, struct pictures *held_out);
void shuffle(struct pictures *p);

/* ---- digits_net.c ---- */

struct layer {
	int inputs, rows;
	size_t weights;		/* rows * (inputs + 1) */
	float *w;
	float *out;		/* of each picture of a batch */
	float *error;		/* likewise: what the loss gains by a change before tanh */
};

struct net {
	int layers;
	struct layer layer[MAX_LAYERS];
	size_t weights;		/* of all layers */
	float *w;		/* one after the other */
};

/* @hidden: outputs of the layers but the last. Returns 0, or -1 after a message */
int net_init(struct net *net, int layers, int hidden);
void net_free(struct net *net);

/* The same first weights for all ranks, and in each run */
void net_reset(struct net *net);

/* Returns the loss of @n pictures, each with weight @weight; backward goes on from there */
float net_forward(struct net *net, const struct picture *batch, size_t n, float weight);

/* The gradient of layer @l to @g, when those of the layers behind it have been computed */
void net_backward(struct net *net, int l, const struct picture *batch, size_t n, float *g);
void net_step(struct net *net, int l, const float *g);
double net_accuracy(struct net *net, const struct pictures *p);

/* ---- digits_train.c ---- */

struct training {
	struct zcoll_comm *comm;	/* NULL: there is no other rank */
	struct net *net;
	float *buckets[MAX_LAYERS];	/* weights of the layer, and of the last the loss */
	bool overlap;			/* average buckets while the next are computed */
	double losses[MAX_EPOCHS];	/* mean of each epoch */
	double seconds[MAX_EPOCHS];	/* and the time it took */
};

int training_init(struct training *t, struct zcoll_comm *comm, struct net *net);
void training_free(struct training *t);

int train_epoch(struct training *t, const struct pictures *p, int epoch);

#endif /* DIGITS_H */
