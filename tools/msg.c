// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Messages for people; see msg.h.
 */
#include <stdarg.h>
#include <stdbool.h>
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

int usage_name(const char *option, const char *text, const char *(*name)(int), int end,
	       const char *last)
{
	char list[256] = "";
	size_t len = 0;
	int i;

	if (!last)
		last = name(--end);
	for (i = 1; i < end && len < sizeof(list); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
					i > 1 ? ", " : "", name(i));
	return usage("%s %s: not %s or %s", option, text, list, last);
}

/* A write that failed earlier, in the middle of the output, has left its mark */
int output_status(int status)
{
	bool bad = fflush(stdout) || ferror(stdout);

	return bad && status == STATUS_OK ? failed("cannot write standard output") : status;
}

int usage_option(void)
{
	if (subcommand && strcmp(subcommand, "help"))
		fprintf(stderr, "See 'zcoll help %s'.\n", subcommand);
	else
		fprintf(stderr, "See 'zcoll help'.\n");
	return STATUS_USAGE;
}
