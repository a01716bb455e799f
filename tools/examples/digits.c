// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * digits: data-parallel training of a classifier of handwritten digits, 8x8 pixels each; see
 * digits.h. This file has the options and the checks.
 *
 * At the end the ranks compare their weights bit for bit, and rank 0 measures the accuracy,
 * and trains once more alone, to compare the loss curves. The exit status is 1 if any of the
 * three is not as it must be.
 *
 * With --overlap 1, which is of use with several layers, gradients are averaged while the
 * next are computed. Another network is trained without that, epoch by epoch in turn: its
 * weights must be the same, bit for bit, and how much less time an epoch takes is printed.
 *
 * With --reproducible the gradients are averaged in the fixed order over all ranks: as many
 * ranks give the same weights, to the last bit, on one node and on several. The hash of the
 * weights that rank 0 prints shows it.
 *
 * Usage: zcoll run -n N -- digits [OPTION...] FILE.csv, see usage().
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"

#define MIN_ACCURACY	0.93
#define MAX_DIFFERENCE	1e-4

struct options {
	int epochs;
	int layers;
	int hidden;
	int overlap;
	int reproducible;
	const char *path;
};

unsigned int rank;

int fail(const char *what, const char *why)
{
	fprintf(stderr, "digits: rank %u: %s: %s\n", rank, what, why);
	return -1;
}

/* ---- the checks ---- */

static const char *yes(bool is)
{
	return is ? "yes" : "NO";
}

/* Is the least, or the greatest, of all ranks' weights, as bits, this rank's own? */
static bool own_is(struct zcoll_comm *comm, const struct net *net, int op)
{
	size_t bytes = net->weights * sizeof(*net->w);
	void *of_all = malloc(bytes);
	bool same;

	same = of_all && !zcoll_allreduce(comm, net->w, of_all, net->weights, ZCOLL_UINT32, op) &&
	       !memcmp(of_all, net->w, bytes);
	free(of_all);
	return same;
}

static bool same_weights(struct zcoll_comm *comm, const struct net *net)
{
	bool low = own_is(comm, net, ZCOLL_MIN), high = own_is(comm, net, ZCOLL_MAX);

	return low && high;
}

static bool check_accuracy(struct net *net, const struct pictures *held_out)
{
	double share = net_accuracy(net, held_out);

	printf("accuracy on the held-out tenth (%zu pictures): %.2f %% (must be above %.0f %%)\n",
	       held_out->count, 100 * share, 100 * MIN_ACCURACY);
	return share > MIN_ACCURACY;
}

static bool check_losses(const struct training *t, const struct pictures *p, int epochs)
{
	static struct training alone;
	double difference = 0;
	int i;

	alone = *t;
	alone.comm = NULL;
	net_reset(alone.net);
	for (i = 0; i < epochs; i++) {
		train_epoch(&alone, p, i);
		difference = fmax(difference, fabs(t->losses[i] - alone.losses[i]));
	}
	printf("same loss curve as 1 rank within %g: %s (max difference %.1e)\n", MAX_DIFFERENCE,
	       yes(difference <= MAX_DIFFERENCE), difference);
	return difference <= MAX_DIFFERENCE;
}

/* FNV-1a over the bits, a name for these weights */
static uint64_t fingerprint(const struct net *net)
{
	const unsigned char *at = (const unsigned char *)net->w;
	uint64_t hash = 0xcbf29ce484222325;
	size_t i;

	for (i = 0; i < net->weights * sizeof(*net->w); i++)
		hash = (hash ^ at[i]) * 0x100000001b3;
	return hash;
}

/* ---- with and without overlap ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_ms(const struct training *t, int epochs)
{
	double sorted[MAX_EPOCHS];

	memcpy(sorted, t->seconds, (size_t)epochs * sizeof(*sorted));
	qsort(sorted, (size_t)epochs, sizeof(*sorted), compare);
	return 1e3 * sorted[epochs / 2];
}

/* Rank 0 prints each epoch's loss. @plain: trained as well, in turn; NULL: none */
static int train(struct training *t, struct training *plain, const struct pictures *p, int epochs)
{
	int i;

	for (i = 0; i < epochs; i++) {
		if ((plain && train_epoch(plain, p, i)) || train_epoch(t, p, i))
			return -1;
		if (rank)
			continue;
		printf("epoch %3d  loss %.6f\n", i + 1, t->losses[i]);
		fflush(stdout);
	}
	return 0;
}

static void report_both(double with, double without, bool same)
{
	if (rank)
		return;
	printf("same weights with and without overlap: %s\n", yes(same));
	printf("an epoch (median): %.2f ms with overlap, %.2f ms without, %.1f %% saved\n", with,
	       without, 100 * (1 - with / without));
}

/* Train both ways. *@same: they came to the same weights, at this rank */
static int train_both(struct training *t, const struct pictures *p, const struct options *o,
		      bool *same)
{
	static struct training plain;
	struct net net;
	int err;

	err = net_init(&net, o->layers, o->hidden);
	if (!err)
		err = training_init(&plain, t->comm, &net);
	t->overlap = true;
	if (!err)
		err = train(t, &plain, p, o->epochs);
	if (!err) {
		*same = fingerprint(&net) == fingerprint(t->net);
		report_both(median_ms(t, o->epochs), median_ms(&plain, o->epochs), *same);
		training_free(&plain);
	}
	net_free(&net);
	return err;
}

/* ---- */

static int train_and_check(struct training *t, const struct pictures *data,
			   const struct pictures *held_out, const struct options *o)
{
	bool good = true, same;

	if (!rank)
		printf("training on %zu pictures, %u ranks, batches of %d\n", data->count,
		       zcoll_comm_size(t->comm), BATCH);
	if (o->overlap ? train_both(t, data, o, &good) : train(t, NULL, data, o->epochs))
		return -1;
	same = same_weights(t->comm, t->net);
	good &= same;
	if (!rank) {
		printf("all ranks hold the same weights bit for bit: %s\n", yes(same));
		printf("weights: %016llx\n", (unsigned long long)fingerprint(t->net));
		good &= check_accuracy(t->net, held_out);
		good &= check_losses(t, data, o->epochs);
	}
	fflush(stdout);
	/* a launcher ends all ranks when one fails: not before rank 0 has told why */
	if (zcoll_barrier(t->comm))
		good = false;
	return good ? 0 : -1;
}

static int run(struct zcoll_comm *comm, const struct options *o)
{
	struct pictures data = { 0 }, held_out = { 0 };
	static struct training training;
	struct net net = { 0 };
	int err;

	err = read_pictures(o->path, &data, &held_out);
	if (!err)
		err = net_init(&net, o->layers, o->hidden);
	if (!err)
		err = training_init(&training, comm, &net);
	if (!err) {
		shuffle(&data);
		err = train_and_check(&training, &data, &held_out, o);
	}
	if (err)
		zcoll_comm_abort(comm);
	else
		training_free(&training);
	net_free(&net);
	free(data.all);
	free(held_out.all);
	return err ? 1 : 0;
}

/* ---- options ---- */

static int usage(void)
{
	fprintf(stderr,
		"Usage: zcoll run -n N -- digits [OPTION...] FILE.csv\n"
		"  --epochs E       times that all pictures are learnt, 1 to %d (12)\n"
		"  --layers L       layers of the network, 1 to %d (1: softmax regression)\n"
		"  --hidden H       outputs of each layer but the last, 1 to %d (128)\n"
		"  --overlap 0|1    average gradients while the next are computed, and compare\n"
		"                   with training without (0)\n"
		"  --reproducible   the same weights however the ranks lie on nodes\n",
		MAX_EPOCHS, MAX_LAYERS, MAX_HIDDEN);
	return 2;
}

static int set_number(const char *text, int min, int max, int *to)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < min || value > max)
		return -1;
	*to = (int)value;
	return 0;
}

static int set_option(struct options *o, int opt)
{
	switch (opt) {
	case 'e':
		return set_number(optarg, 1, MAX_EPOCHS, &o->epochs);
	case 'l':
		return set_number(optarg, 1, MAX_LAYERS, &o->layers);
	case 'h':
		return set_number(optarg, 1, MAX_HIDDEN, &o->hidden);
	case 'o':
		return set_number(optarg, 0, 1, &o->overlap);
	case 'r':
		o->reproducible = 1;
		return 0;
	default:
		return -1;
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "epochs", required_argument, NULL, 'e' },
		{ "layers", required_argument, NULL, 'l' },
		{ "hidden", required_argument, NULL, 'h' },
		{ "overlap", required_argument, NULL, 'o' },
		{ "reproducible", no_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { .epochs = 12, .layers = 1, .hidden = 128 };
	char text[ZCOLL_TEXT_MAX] = "";
	struct zcoll_comm *comm;
	int opt, status;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (set_option(&o, opt))
			return usage();
	if (argc - optind != 1)
		return usage();
	o.path = argv[optind];
	if (zcoll_comm_create_from_env(&comm, text, sizeof(text))) {
		fail("joining", text);
		return 1;
	}
	rank = zcoll_comm_rank(comm);
	zcoll_comm_set_flags(comm, o.reproducible ? ZCOLL_CMD_REPRODUCIBLE : 0);
	status = run(comm, &o);
	zcoll_comm_free(comm);
	return status;
}
