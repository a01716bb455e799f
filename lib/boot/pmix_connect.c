// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Connecting to the PMIx server, with a bound: PMIx_Init() has none, and where CPUs are busy
 * that of OpenPMIx 4.2 has been seen to wait for ever. So a thread calls it. One that does not
 * come back in time is left alone, with what it uses.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "pmix.h"

struct connection {
	struct calls *calls;
	__typeof__(&PMIx_Init) init;
	pmix_proc_t me;
};

static void *connect_thread(void *arg)
{
	struct connection *c = arg;
	pmix_status_t rc = c->init(&c->me, NULL, 0);

	zc_calls_back(c->calls, rc);
	return NULL;
}

/* Signals are for the program's threads */
static int start(struct connection *c)
{
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, connect_thread, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		pthread_detach(thread);
	return -err;
}

/* Make what both threads use */
static struct connection *make(const struct pmix *pmix)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->init = pmix->init;
	c->calls = zc_calls_new(1, 0);
	if (c->calls)
		return c;
	free(c);
	return NULL;
}

/**
 * zc_pmix_connect - call PMIx_Init(), and wait for it as long as ranks may take to join
 * @pmix: loaded; @pmix->me is written
 * @attr: has the time, and gets the error's text
 */
int zc_pmix_connect(struct pmix *pmix, const struct zcoll_attr *attr)
{
	/* Not to wait for other ranks does not mean to do without the server */
	uint64_t most_ns = attr->join_timeout_ns ? attr->join_timeout_ns : ZCOLL_JOIN_TIMEOUT_NS;
	struct connection *c = make(pmix);
	struct calls *calls;
	pmix_status_t rc = PMIX_ERROR;
	bool back;
	int ret;

	if (!c)
		return zc_text(attr->error, attr->error_len, -ENOMEM, "no memory for PMIx");
	calls = c->calls;
	ret = start(c);
	if (ret) {
		zc_calls_back(calls, PMIX_ERROR);
		zc_calls_drop(calls);
		free(c);
		return zc_text(attr->error, attr->error_len, ret, "no thread for PMIx");
	}
	back = zc_calls_wait(calls, zc_after(most_ns));
	if (back)
		rc = calls->rc;
	zc_calls_drop(calls);
	if (!back)
		return zc_text(attr->error, attr->error_len, -ETIMEDOUT,
			       "PMIx server: no answer in %.1f s, the time that ranks have to join",
			       most_ns / 1e9);
	pmix->me = c->me;
	free(c);
	return rc == PMIX_SUCCESS ? 0 : zc_pmix_fail(attr, pmix, "cannot connect", rc);
}
