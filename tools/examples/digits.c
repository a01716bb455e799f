// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * digits: data-parallel training of a classifier of handwritten digits.
 *
 * Softmax regression on 8x8 pixels, by stochastic gradient descent. All ranks hold
 * the same weights. Of each mini-batch a rank takes its share, computes the gradient
 * there, and zcoll averages the gradients over the ranks; all then make the same
 * step. The shares may differ by one picture, so each rank weighs its sum by
 * ranks / pictures of the batch: then the average over the ranks is the mean over
 * the batch, whatever the number of ranks.
 *
 * The first picture of every ten is held out, to measure the accuracy. At the end the ranks
 * compare their weights bit for bit, and rank 0 trains once more alone, to compare
 * the loss curves. The exit status is 1 if any of the three is not as it must be.
 *
 * With --reproducible the gradients are averaged in the fixed order over all ranks: as many
 * ranks give the same weights, to the last bit, on one node and on several. The hash of the
 * weights that rank 0 prints shows it.
 *
 * Usage: zcoll run -n N -- digits [--epochs E] [--reproducible] FILE.csv
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zcoll.h>

#define PIXELS		64
#define INPUTS		(PIXELS + 1)	/* and the constant 1 */
#define CLASSES		10
#define WEIGHTS		(CLASSES * INPUTS)
#define BATCH		32
#define STEP		1.0f
#define MAX_EPOCHS	1000

#define MIN_ACCURACY	0.93
#define MAX_DIFFERENCE	1e-4

struct picture {
	float x[INPUTS];
	int digit;
};

struct pictures {
	struct picture *all;
	size_t count, room;
};

/* What the ranks average: the loss rides along with the gradient */
struct gradient {
	float w[WEIGHTS];
	float loss;
};

static unsigned int rank;

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "digits: rank %u: %s: %s\n", rank, what, why);
	return -1;
}

/* ---- data ---- */

static struct picture *add(struct pictures *p)
{
	struct picture *grown;

	if (p->count == p->room) {
		p->room = p->room ? 2 * p->room : 256;
		grown = realloc(p->all, p->room * sizeof(*grown));
		if (!grown)
			return NULL;
		p->all = grown;
	}
	return &p->all[p->count++];
}

static int read_picture(struct picture *p, char *line)
{
	long value;
	char *end;
	int i;

	for (i = 0; i <= PIXELS; i++) {
		value = strtol(line, &end, 10);
		if (end == line || *end != (i < PIXELS ? ',' : '\n'))
			return -1;
		if (value < 0 || value > (i < PIXELS ? 16 : CLASSES - 1))
			return -1;
		if (i < PIXELS)
			p->x[i] = (float)value / 16;
		else
			p->digit = (int)value;
		line = end + 1;
	}
	p->x[PIXELS] = 1;
	return 0;
}

static int read_pictures(const char *path, struct pictures *train, struct pictures *held_out)
{
	FILE *file = fopen(path, "re");
	struct picture *p;
	char line[512];
	size_t n;
	int err = 0;

	if (!file)
		return fail(path, strerror(errno));
	for (n = 0; !err && fgets(line, sizeof(line), file); n++) {
		p = add(n % 10 == 0 ? held_out : train);
		if (!p)
			err = fail(path, "out of memory");
		else if (read_picture(p, line))
			err = fail(path, "not lines of 64 pixels and a digit");
	}
	if (!err && (ferror(file) || !train->count))
		err = fail(path, "cannot be read, or has less than two lines");
	fclose(file);
	return err;
}

/* The same order for all ranks, and in each run */
static void shuffle(struct pictures *p)
{
	uint32_t random = 1;
	struct picture swap;
	size_t i, j;

	for (i = p->count - 1; i > 0; i--) {
		random = random * 1664525 + 1013904223;
		j = (random >> 8) % (i + 1);
		swap = p->all[i];
		p->all[i] = p->all[j];
		p->all[j] = swap;
	}
}

/* ---- model ---- */

/* Probability of each digit */
static void classify(const float *w, const float *x, float *prob)
{
	float most = -INFINITY, sum = 0;
	int c, i;

	for (c = 0; c < CLASSES; c++) {
		prob[c] = 0;
		for (i = 0; i < INPUTS; i++)
			prob[c] += w[c * INPUTS + i] * x[i];
		most = fmaxf(most, prob[c]);
	}
	for (c = 0; c < CLASSES; c++) {
		prob[c] = expf(prob[c] - most);
		sum += prob[c];
	}
	for (c = 0; c < CLASSES; c++)
		prob[c] /= sum;
}

static void add_gradient(const float *w, const struct picture *p, float weight,
			 struct gradient *g)
{
	float prob[CLASSES], error;
	int c, i;

	classify(w, p->x, prob);
	g->loss -= weight * logf(fmaxf(prob[p->digit], 1e-30f));
	for (c = 0; c < CLASSES; c++) {
		error = weight * (prob[c] - (c == p->digit ? 1 : 0));
		for (i = 0; i < INPUTS; i++)
			g->w[c * INPUTS + i] += error * p->x[i];
	}
}

static double accuracy(const float *w, const struct pictures *p)
{
	float prob[CLASSES];
	size_t i, right = 0;
	int c, best;

	for (i = 0; i < p->count; i++) {
		classify(w, p->all[i].x, prob);
		for (c = 1, best = 0; c < CLASSES; c++)
			if (prob[c] > prob[best])
				best = c;
		right += best == p->all[i].digit;
	}
	return (double)right / (double)p->count;
}

/* ---- training ---- */

/* This rank's part of a step. comm is NULL: there is no other rank */
static int batch_gradient(struct zcoll_comm *comm, const float *w, const struct picture *batch,
			  size_t n, struct gradient *g)
{
	unsigned int ranks = comm ? zcoll_comm_size(comm) : 1;
	unsigned int me = comm ? zcoll_comm_rank(comm) : 0;
	char text[ZCOLL_TEXT_MAX];
	size_t i;

	memset(g, 0, sizeof(*g));
	for (i = n * me / ranks; i < n * (me + 1) / ranks; i++)
		add_gradient(w, &batch[i], (float)ranks / (float)n, g);
	if (!comm || !zcoll_allreduce(comm, g, g, sizeof(*g) / sizeof(float), ZCOLL_FP32,
				      ZCOLL_AVG))
		return 0;
	zcoll_comm_error(comm, text, sizeof(text));
	return fail("averaging gradients", text);
}

/* From weights 0; writes the mean loss of each epoch. @g: memory to work in */
static int train(struct zcoll_comm *comm, const struct pictures *p, int epochs, float *w,
		 struct gradient *g, double *losses)
{
	size_t at, n;
	int epoch, i;

	memset(w, 0, WEIGHTS * sizeof(*w));
	for (epoch = 0; epoch < epochs; epoch++) {
		losses[epoch] = 0;
		for (at = 0; at < p->count; at += n) {
			n = p->count - at < BATCH ? p->count - at : BATCH;
			if (batch_gradient(comm, w, &p->all[at], n, g))
				return -1;
			losses[epoch] += (double)g->loss * (double)n / (double)p->count;
			for (i = 0; i < WEIGHTS; i++)
				w[i] -= STEP * g->w[i];
		}
		if (comm && !rank) {
			printf("epoch %3d  loss %.6f\n", epoch + 1, losses[epoch]);
			fflush(stdout);
		}
	}
	return 0;
}

/* ---- the three checks ---- */

static const char *yes(bool is)
{
	return is ? "yes" : "NO";
}

/* The least and the greatest of all ranks, as bits, are this rank's own */
static bool same_weights(struct zcoll_comm *comm, const float *w)
{
	uint32_t bits[WEIGHTS], low[WEIGHTS], high[WEIGHTS];

	memcpy(bits, w, sizeof(bits));
	if (zcoll_allreduce(comm, bits, low, WEIGHTS, ZCOLL_UINT32, ZCOLL_MIN) ||
	    zcoll_allreduce(comm, bits, high, WEIGHTS, ZCOLL_UINT32, ZCOLL_MAX))
		return false;
	return !memcmp(low, bits, sizeof(bits)) && !memcmp(high, bits, sizeof(bits));
}

static bool check_accuracy(const float *w, const struct pictures *held_out)
{
	double share = accuracy(w, held_out);

	printf("accuracy on the held-out tenth (%zu pictures): %.2f %% (must be above %.0f %%)\n",
	       held_out->count, 100 * share, 100 * MIN_ACCURACY);
	return share > MIN_ACCURACY;
}

static bool check_losses(const struct pictures *p, int epochs, const double *losses)
{
	static double alone[MAX_EPOCHS];
	static struct gradient g;
	static float w[WEIGHTS];
	double difference = 0;
	int i;

	train(NULL, p, epochs, w, &g, alone);
	for (i = 0; i < epochs; i++)
		difference = fmax(difference, fabs(losses[i] - alone[i]));
	printf("same loss curve as 1 rank within %g: %s (max difference %.1e)\n", MAX_DIFFERENCE,
	       yes(difference <= MAX_DIFFERENCE), difference);
	return difference <= MAX_DIFFERENCE;
}

/* FNV-1a over the bits, a name for these weights */
static uint64_t fingerprint(const float *w)
{
	const unsigned char *at = (const unsigned char *)w;
	uint64_t hash = 0xcbf29ce484222325;
	size_t i;

	for (i = 0; i < WEIGHTS * sizeof(*w); i++)
		hash = (hash ^ at[i]) * 0x100000001b3;
	return hash;
}

static int train_and_check(struct zcoll_comm *comm, struct pictures *data,
			   struct pictures *held_out, int epochs)
{
	static double losses[MAX_EPOCHS];
	static float w[WEIGHTS];
	struct gradient *g;
	bool good;

	g = zcoll_alloc(comm, sizeof(*g));
	if (!g)
		return fail("memory for the gradient", strerror(errno));
	shuffle(data);
	if (!rank)
		printf("training on %zu pictures, %u ranks, batches of %d\n", data->count,
		       zcoll_comm_size(comm), BATCH);
	if (train(comm, data, epochs, w, g, losses))
		return -1;
	good = same_weights(comm, w);
	if (!rank) {
		printf("all ranks hold the same weights bit for bit: %s\n", yes(good));
		printf("weights: %016llx\n", (unsigned long long)fingerprint(w));
		good &= check_accuracy(w, held_out);
		good &= check_losses(data, epochs, losses);
	}
	zcoll_free(comm, g);
	fflush(stdout);
	/* a launcher ends all ranks when one fails: not before rank 0 has told why */
	if (zcoll_barrier(comm))
		good = false;
	return good ? 0 : -1;
}

/* ---- */

static int usage(void)
{
	fprintf(stderr, "Usage: zcoll run -n N -- digits [--epochs E] [--reproducible] FILE.csv\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "epochs", required_argument, NULL, 'e' },
		{ "reproducible", no_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	struct pictures data = { 0 }, held_out = { 0 };
	char text[ZCOLL_TEXT_MAX] = "";
	struct zcoll_comm *comm;
	unsigned int flags = 0;
	int opt, epochs = 12, err;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'r')
			flags = ZCOLL_CMD_REPRODUCIBLE;
		else
			epochs = opt == 'e' ? atoi(optarg) : 0;
		if (epochs < 1 || epochs > MAX_EPOCHS)
			return usage();
	}
	if (argc - optind != 1)
		return usage();
	if (zcoll_comm_create_from_env(&comm, text, sizeof(text))) {
		fail("joining", text);
		return 1;
	}
	rank = zcoll_comm_rank(comm);
	zcoll_comm_set_flags(comm, flags);
	err = read_pictures(argv[optind], &data, &held_out);
	if (!err)
		err = train_and_check(comm, &data, &held_out, epochs);
	if (err)
		zcoll_comm_abort(comm);
	zcoll_comm_free(comm);
	free(data.all);
	free(held_out.all);
	return err ? 1 : 0;
}
