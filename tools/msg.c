// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Messages for people; see msg.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "msg.h"

static const char *subcommand;
static char prefix[64] = "zcoll";

void msg_command(const char *name)
{
	subcommand = name;
	snprintf(prefix, sizeof(prefix), "zcoll %s", name);
}

void msg_rank(unsigned int rank)
{
	snprintf(prefix, sizeof(prefix), "zcoll %s: rank %u", subcommand, rank);
}

static void vmsg(const char *fmt, va_list ap)
{
	char line[1024];
	size_t len;

	len = (size_t)snprintf(line, sizeof(line), "%s: ", prefix);
	vsnprintf(line + len, sizeof(line) - len - 1, fmt, ap);
	len = strlen(line);
	line[len++] = '\n';
	/* there is nobody to tell that standard error is closed */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}

void msg(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vmsg(fmt, ap);
	va_end(ap);
}

int failed(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vmsg(fmt, ap);
	va_end(ap);
	return STATUS_FAILED;
}

int usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vmsg(fmt, ap);
	va_end(ap);
	return usage_option();
}

int usage_option(void)
{
	if (subcommand)
		fprintf(stderr, "See 'zcoll help %s'.\n", subcommand);
	else
		fprintf(stderr, "See 'zcoll help'.\n");
	return STATUS_USAGE;
}
