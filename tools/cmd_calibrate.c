// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll calibrate: measure a fabric, and write what was measured to a file from
 * which algorithms are chosen; see calibrate/calibrate.h.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrate/calibrate.h"
#include "cmd.h"
#include "msg.h"
#include "parse.h"

static const char help[] =
"Usage: zcoll calibrate [OPTION...]\n"
"       zcoll calibrate --listen [HOST:]PORT\n"
"\n"
"Measures what messages cost, in the LogGP model, and how fast this CPU folds, over\n"
"TCP: between two processes of this node, or with a peer on another one, where\n"
"`zcoll calibrate --listen PORT` runs. With ZCOLL_COSTS naming the file,\n"
"zcoll_plan_select() and `zcoll plan select` choose algorithms by it.\n"
"\n"
"  -o, --output FILE       write the fabric to this file\n"
"      --peer HOST:PORT    measure with that peer\n"
"      --listen PORT       answer one peer, then end\n"
"      --name NAME         name of the fabric, up to 63 bytes\n"
"      --time T            measure for about this long (2s)\n"
"      --json              print the file instead of a table\n"
"  -h, --help              show this text\n"
"\n"
"Times are a number and ns, us, ms, s, m or h; without a unit in seconds.\n"
"\n"
"Exit status: 0 success, 1 failure, 2 wrong usage.\n";

#define TIME_MAX 3600000000000ULL
#define LISTEN_NS 600000000000ULL	/* wait so long for the peer */

struct options {
	const char *output;
	const char *peer;
	const char *listen;
	const char *name;
	uint64_t ns;
	bool json;
};

/* ---- report ---- */

static void print_table(const struct zcoll_fabric *fabric, const char *loops)
{
	printf("fabric   %s\n", fabric->name);
	printf("L        %.0f ns from node to node\n", fabric->latency);
	printf("o        %.0f ns of a CPU to send or to receive\n", fabric->overhead);
	printf("g        %.0f ns between two messages\n", fabric->gap);
	printf("G        %.5f ns a byte (%.2f GB/s)\n", fabric->per_byte, 1 / fabric->per_byte);
	printf("gamma    %.5f ns a byte folded (%.2f GB/s, %s loops)\n",
	       fabric->per_byte_folded, 1 / fabric->per_byte_folded, loops);
}

/* Before anything is measured; what is in the file stays until there is something better */
static int open_file(const char *path, FILE **file)
{
	*file = path ? fopen(path, "ae") : NULL;
	return path && !*file ? failed("%s: %s", path, strerror(errno)) : 0;
}

static int write_file(const char *path, FILE *file, const char *text)
{
	/* a pipe or a device has nothing to be cut off */
	bool cut = !ftruncate(fileno(file), 0) || errno == EINVAL;

	if (cut && fprintf(file, "%s\n", text) > 0 && !fflush(file))
		return 0;
	return failed("%s: %s", path, strerror(errno));
}

static int report(const struct options *o, FILE *file, const struct zcoll_fabric *fabric,
		  const char *loops)
{
	char *text = zcoll_fabric_format(fabric);
	int status = 0;

	if (!text)
		return failed("out of memory, or --name is not UTF-8");
	if (o->json)
		printf("%s\n", text);
	else
		print_table(fabric, loops);
	if (file)
		status = write_file(o->output, file, text);
	free(text);
	return status;
}

/* ---- the two sides ---- */

static void end_child(int child)
{
	if (child <= 0)
		return;
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

static int measure(const struct options *o, FILE *file)
{
	struct zcoll_fabric fabric = { 0 };
	const char *loops = "";
	struct wire wire;
	int status, child = -1;

	snprintf(fabric.name, sizeof(fabric.name), "%s",
		 o->name ? o->name : o->peer ? o->peer : "TCP, this node");
	status = o->peer ? wire_connect(&wire, o->peer) : wire_fork(&wire, &child);
	if (!status)
		status = measure_fabric(&wire, o->ns, &fabric);
	wire_close(&wire);
	end_child(child);
	if (!status)
		status = measure_fold(o->ns / 8, &fabric.per_byte_folded, &loops);
	return status ? status : report(o, file, &fabric, loops);
}

static int measure_to_file(const struct options *o)
{
	FILE *file;
	int status = open_file(o->output, &file);

	if (!status)
		status = measure(o, file);
	if (file && fclose(file) && !status)
		status = failed("%s: %s", o->output, strerror(errno));
	return status;
}

static int answer(const struct options *o)
{
	struct wire wire;
	int status = wire_accept(&wire, o->listen, LISTEN_NS);

	if (!status) {
		msg("%s measures", wire.peer);
		status = wire_answer(&wire);
	}
	if (!status)
		msg("%s has measured", wire.peer);
	wire_close(&wire);
	return status;
}

/* ---- options ---- */

enum { OPT_PEER = 256, OPT_LISTEN, OPT_NAME, OPT_TIME, OPT_JSON };

static const struct option options[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "peer", required_argument, NULL, OPT_PEER },
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "time", required_argument, NULL, OPT_TIME },
	{ "json", no_argument, NULL, OPT_JSON },
	{ NULL, 0, NULL, 0 },
};

static int set_option(struct options *o, int opt)
{
	switch (opt) {
	case 'o':
		o->output = optarg;
		return 0;
	case OPT_PEER:
		o->peer = optarg;
		return 0;
	case OPT_LISTEN:
		o->listen = optarg;
		return 0;
	case OPT_NAME:
		o->name = optarg;
		if (strlen(optarg) < sizeof(((struct zcoll_fabric *)NULL)->name))
			return 0;
		return usage("--name: longer than 63 bytes");
	case OPT_TIME:
		if (!parse_duration(optarg, &o->ns) && o->ns && o->ns <= TIME_MAX)
			return 0;
		return usage("--time %s: not a time up to one hour", optarg);
	case OPT_JSON:
		o->json = true;
		return 0;
	default:
		return usage_option();
	}
}

static int calibrate(int argc, char **argv)
{
	struct options o = { .ns = 2000000000ULL };
	int opt, status;

	while ((opt = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
		status = set_option(&o, opt);
		if (status)
			return status;
	}
	if (optind < argc)
		return usage("unexpected argument '%s'", argv[optind]);
	if (o.listen && (o.peer || o.output || o.json || o.name))
		return usage("--listen only answers: the peer measures, and writes the file");
	return o.listen ? answer(&o) : measure_to_file(&o);
}

const struct command cmd_calibrate = {
	.name = "calibrate",
	.summary = "measure what messages cost between nodes",
	.help = help,
	.run = calibrate,
};
