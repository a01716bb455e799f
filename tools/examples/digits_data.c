// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * digits: the pictures, lines of 64 pixels and a digit; see digits.h. The first of every ten
 * is held out, to measure the accuracy.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"

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
	return 0;
}

int read_pictures(const char *path, struct pictures *train, struct pictures *held_out)
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
void shuffle(struct pictures *p)
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
