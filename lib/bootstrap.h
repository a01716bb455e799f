/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Bootstrap: who am I, of how many, and of which job? Each launcher says so in its
 * own environment variables. What processes on several nodes then tell each other is
 * boot/exchange.h.
 */
#ifndef LIBZCOLL_BOOTSTRAP_H
#define LIBZCOLL_BOOTSTRAP_H

#include "internal.h"

#define ZC_JOB_MAX	512	/* bytes of a job's name */

/* boot/pmix.c, or boot/nopmix.c where there is no PMIx */
int zc_pmix_size(struct zcoll_attr *attr, unsigned int *local);

#endif /* LIBZCOLL_BOOTSTRAP_H */
