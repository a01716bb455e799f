// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Which of some names did the user mean? See suggest.h.
 */
#include <stddef.h>
#include <string.h>

#include "suggest.h"

#define NAME_LEN 32

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Levenshtein distance: insertions, deletions and replacements from a to b */
static size_t distance(const char *a, const char *b)
{
	size_t row[NAME_LEN + 1], diagonal, above, i, j, n = strlen(b);

	if (n > NAME_LEN || strlen(a) > NAME_LEN)
		return NAME_LEN;
	for (j = 0; j <= n; j++)
		row[j] = j;
	for (i = 0; a[i]; i++) {
		diagonal = row[0];
		row[0] = i + 1;
		for (j = 0; j < n; j++) {
			above = row[j + 1];
			row[j + 1] = min3(above + 1, row[j] + 1, diagonal + (a[i] != b[j]));
			diagonal = above;
		}
	}
	return row[n];
}

const char *suggest(const char *word, const char *(*name)(unsigned int i))
{
	const char *best = NULL, *candidate;
	size_t d, least = 4;	/* further away is another word */
	unsigned int i;

	for (i = 0; (candidate = name(i)); i++) {
		d = distance(word, candidate);
		if (d < least && d < strlen(candidate)) {
			least = d;
			best = candidate;
		}
	}
	return best;
}
