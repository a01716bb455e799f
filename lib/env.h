/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * An environment variable: one that is empty is as good as none. Apart from internal.h, as the
 * plans (lib/plan) know nothing of communicators.
 */
#ifndef LIBZCOLL_ENV_H
#define LIBZCOLL_ENV_H

#include <stdlib.h>

static inline const char *zc_env(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

#endif /* LIBZCOLL_ENV_H */
