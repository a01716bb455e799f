// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * What the environment says. Where it makes no sense there is nobody to give an error to: the
 * process says so on standard error, once, and goes on as if nothing was said, or, if it is the
 * library that cannot go by it, as if there was no device.
 */
#include <stdio.h>

#include "../internal.h"
#include "internal.h"

enum { STATS_OFF, STATS_FIRST, STATS_ALL };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool wanted;
static int stats;
static char wrong[ZCOLL_TEXT_MAX];	/* with the library's settings; "": nothing */

static int word(const char *name, const char *const words[], int otherwise)
{
	char text[ZCOLL_TEXT_MAX];
	int found = zc_setting(name, words, otherwise, text, sizeof(text));

	if (found >= 0)
		return found;
	fprintf(stderr, "libzcoll-mpi: %s; it is taken for %s\n", text, words[otherwise]);
	return otherwise;
}

static void look(void)
{
	static const char *const whether[] = { "0", "1", NULL };
	static const char *const which[] = { "0", "1", "all", NULL };
	struct zc_settings settings;
	struct zcoll_attr attr;

	wanted = word("ZCOLL_MPI", whether, 1);
	stats = word("ZCOLL_MPI_STATS", which, STATS_OFF);
	zcoll_attr_init(&attr);
	attr.exchange = ZCOLL_EXCHANGE_GATHER;	/* by the MPI */
	attr.error = wrong;
	attr.error_len = sizeof(wrong);
	if (wanted && zc_settings_get(&settings, &attr))
		fprintf(stderr, "libzcoll-mpi: %s; all calls are passed on\n", wrong);
}

/**
 * zm_wanted - are calls to be taken, says the environment of this rank?
 *
 * A launcher may give it to some ranks only. So calls are not passed on for that at once:
 * the ranks agree on it, see comm.c.
 */
bool zm_wanted(void)
{
	pthread_once(&once, look);
	return wanted;
}

/**
 * zm_wrong_setting - what is wrong with the settings of the library
 *
 * Return: a text, or NULL.
 */
const char *zm_wrong_setting(void)
{
	pthread_once(&once, look);
	return wrong[0] ? wrong : NULL;
}

/**
 * zm_wants_stats - is the line of statistics to be printed by this process?
 * @rank: its rank in the world
 */
bool zm_wants_stats(int rank)
{
	pthread_once(&once, look);
	return stats == STATS_ALL || (stats == STATS_FIRST && !rank);
}
