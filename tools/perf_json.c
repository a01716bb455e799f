// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll perf: results as JSON, an object with the version, a config and an array of
 * results; see perf.h.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "cmd.h"
#include "msg.h"
#include "perf.h"

/* The file is opened first, so that a long run does not end without one. Takes @config */
int perf_json_open(struct perf_json *pj, const char *path, json_t *config)
{
	memset(pj, 0, sizeof(*pj));
	pj->path = path;
	pj->file = fopen(path, "we");
	if (!pj->file) {
		json_decref(config);
		return failed("%s: %s", path, strerror(errno));
	}
	pj->rows = json_array();
	pj->root = json_pack("{ss so so}", "version", zcoll_version(), "config", config,
			     "results", pj->rows);
	return pj->root ? 0 : failed("out of memory");
}

int perf_json_close(struct perf_json *pj)
{
	int err = 0;

	if (json_dumpf(pj->root, pj->file, JSON_INDENT(2)) || fputc('\n', pj->file) == EOF)
		err = errno;
	if (fclose(pj->file) && !err)
		err = errno;
	json_decref(pj->root);
	return err ? failed("%s: %s", pj->path, strerror(err)) : 0;
}
