// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Calls to PMIx that wait for other ranks. A server may ignore time-outs, so they are
 * made in their non-blocking form. Of one that was given up, the memory stays until the
 * callback.
 */
#include <stdlib.h>
#include <time.h>

#include "pmix.h"

struct calls *zc_calls_new(unsigned int n, unsigned int ranks)
{
	struct calls *calls = calloc(1, sizeof(*calls) + ranks * sizeof(bool));
	pthread_condattr_t attr;

	if (!calls)
		return NULL;
	pthread_mutex_init(&calls->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&calls->changed, &attr);
	pthread_condattr_destroy(&attr);
	calls->users = 1 + n;
	calls->left = n;
	return calls;
}

void zc_calls_drop(struct calls *calls)
{
	bool last;

	pthread_mutex_lock(&calls->lock);
	last = !--calls->users;
	pthread_mutex_unlock(&calls->lock);
	if (!last)
		return;
	pthread_cond_destroy(&calls->changed);
	pthread_mutex_destroy(&calls->lock);
	free(calls);
}

/* A call has come back */
void zc_calls_back(struct calls *calls, pmix_status_t rc)
{
	pthread_mutex_lock(&calls->lock);
	calls->left--;
	calls->rc = rc;
	pthread_cond_signal(&calls->changed);
	pthread_mutex_unlock(&calls->lock);
	zc_calls_drop(calls);
}

/* Wait until all have; false: the time is over */
bool zc_calls_wait(struct calls *calls, uint64_t end)
{
	struct timespec ts = { .tv_sec = end / 1000000000, .tv_nsec = end % 1000000000 };
	int err = 0;
	bool all;

	pthread_mutex_lock(&calls->lock);
	while (calls->left && !err) {
		if (end == ZCOLL_WAIT_FOREVER)
			pthread_cond_wait(&calls->changed, &calls->lock);
		else
			err = pthread_cond_timedwait(&calls->changed, &calls->lock, &ts);
	}
	all = !calls->left;
	pthread_mutex_unlock(&calls->lock);
	return all;
}
