// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll info: what the loaded module can do, and what it holds now.
 */
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include <zcoll.h>

#include "cmd.h"
#include "msg.h"
#include "session.h"

static const char help[] =
"Usage: zcoll info [--json]\n"
"\n"
"Shows what the loaded module can do, its limits, and what it holds now.\n"
"\n"
"      --json         as one JSON object\n"
"  -h, --help         show this text\n"
"\n"
"$ZCOLL_DEVICE names another device than /dev/zcoll.\n"
"\n"
"Exit status: 0 success, 1 the device cannot be used, 2 wrong usage.\n";

static const struct {
	uint64_t bit;
	const char *name;
	const char *meaning;
} features[] = {
	{ ZCOLL_FEAT_URING, "uring", "io_uring commands" },
	{ ZCOLL_FEAT_MAILBOX, "mailbox", "small operations on one node without calls" },
	{ ZCOLL_FEAT_RING_CANCEL, "ring-cancel", "the kernel reports rings that go away" },
};

#define NFEATURES (sizeof(features) / sizeof(features[0]))

/* ---- for people ---- */

static void print_names(const char *label, uint64_t bits, int end, const char *(*name)(int))
{
	int i;

	printf("%-18s", label);
	for (i = 1; i < end; i++)
		if (bits & (1ULL << i))
			printf(" %s", name(i));
	putchar('\n');
}

static void print_number(const char *label, uint64_t value, const char *unit)
{
	printf("%-18s %" PRIu64 "%s\n", label, value, unit);
}

/* Memory that is not registered stays pinned between calls */
static void print_cache(const struct zcoll_info *info)
{
	uint64_t calls = info->cache_hits + info->cache_misses;

	print_number("  kept pinned", info->cache_pages, " pages, for calls to come");
	printf("%-18s %" PRIu64 " of %" PRIu64, "  found pinned", (uint64_t)info->cache_hits,
	       calls);
	if (calls)
		printf(" (%.1f %%)", 100.0 * info->cache_hits / calls);
	puts(" ranges that were not registered, since the module was loaded");
	print_number("  given up", info->cache_dropped, " ranges whose memory was changed");
	if (info->cache_misses)
		print_number("  to pin one took", info->pin_ns / info->cache_misses,
			     " ns on average");
}

static void print_info(const struct zcoll_info *info)
{
	size_t i;

	print_number("ABI version", info->abi_version, "");
	printf("%-18s %.*s\n", "fold loops", (int)sizeof(info->fold), info->fold);
	for (i = 0; i < NFEATURES; i++)
		printf("%-18s %s (%s)\n", features[i].name,
		       info->features & features[i].bit ? "yes" : "no", features[i].meaning);
	print_names("types", info->types, ZCOLL_NR_TYPES, zcoll_dtype_name);
	print_names("operators", info->ops, ZCOLL_NR_OPS, zcoll_op_name);

	puts("\nlimits");
	print_number("  ranks", info->max_ranks, " in a communicator");
	print_number("  communicators", info->max_comms, " on this node");
	print_number("  operations", info->window, " in flight on a communicator");
	print_number("  buffers", info->max_buffers, " registered by a rank");
	print_number("  inline", info->inline_bytes, " bytes in all are done by the last caller");

	puts("\nnow");
	print_number("  communicators", info->comms, "");
	print_number("  ranks", info->ranks, "");
	print_number("  workers", info->workers, "");
	print_number("  pinned pages", info->pinned_pages, "");
	print_number("  kernel memory", info->kernel_bytes, " bytes");
	print_number("  operations done", info->ops_done, " since the module was loaded");
	print_number("  failed", info->ops_failed, "");
	print_cache(info);
}

/* ---- for programs ---- */

static json_t *json_names(uint64_t bits, int end, const char *(*name)(int))
{
	json_t *list = json_array();
	int i;

	for (i = 1; i < end; i++)
		if (bits & (1ULL << i))
			json_array_append_new(list, json_string(name(i)));
	return list;
}

static json_t *json_features(uint64_t bits)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < NFEATURES; i++)
		if (bits & features[i].bit)
			json_array_append_new(list, json_string(features[i].name));
	return list;
}

/* Memory that is not registered stays pinned between calls */
static json_t *json_cache(const struct zcoll_info *info)
{
	return json_pack("{sI sI sI sI sI}",
			 "hits", (json_int_t)info->cache_hits,
			 "misses", (json_int_t)info->cache_misses,
			 "dropped", (json_int_t)info->cache_dropped,
			 "pages", (json_int_t)info->cache_pages,
			 "pin_ns", (json_int_t)info->pin_ns);
}

static int print_json(const struct zcoll_info *info)
{
	char fold[sizeof(info->fold) + 1] = "";
	json_t *root;
	int err;

	memcpy(fold, info->fold, sizeof(info->fold));
	root = json_pack("{si ss so so so s{sI sI sI sI sI} s{sI sI sI sI sI sI sI} so}",
			 "abi_version", (int)info->abi_version,
			 "fold", fold,
			 "features", json_features(info->features),
			 "types", json_names(info->types, ZCOLL_NR_TYPES, zcoll_dtype_name),
			 "ops", json_names(info->ops, ZCOLL_NR_OPS, zcoll_op_name),
			 "limits",
			 "max_ranks", (json_int_t)info->max_ranks,
			 "max_comms", (json_int_t)info->max_comms,
			 "window", (json_int_t)info->window,
			 "max_buffers", (json_int_t)info->max_buffers,
			 "inline_bytes", (json_int_t)info->inline_bytes,
			 "now",
			 "comms", (json_int_t)info->comms,
			 "ranks", (json_int_t)info->ranks,
			 "workers", (json_int_t)info->workers,
			 "pinned_pages", (json_int_t)info->pinned_pages,
			 "kernel_bytes", (json_int_t)info->kernel_bytes,
			 "ops_done", (json_int_t)info->ops_done,
			 "ops_failed", (json_int_t)info->ops_failed,
			 "cache", json_cache(info));
	if (!root)
		return failed("out of memory");
	err = json_dumpf(root, stdout, JSON_INDENT(2));
	json_decref(root);
	putchar('\n');
	return err ? failed("cannot write standard output") : STATUS_OK;
}

static int info(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ NULL, 0, NULL, 0 },
	};
	struct zcoll_info data;
	int opt, err, json = 0;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt != 'j')
			return usage_option();
		json = 1;
	}
	if (optind < argc)
		return usage("unexpected argument '%s'", argv[optind]);
	err = zcoll_info_get(NULL, &data);
	if (err)
		return device_failed(err);
	if (json)
		return print_json(&data);
	print_info(&data);
	return STATUS_OK;
}

const struct command cmd_info = {
	.name = "info",
	.summary = "show what the module can do, and what it holds",
	.help = help,
	.run = info,
};
