// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A line on the terminal while one call of the library works for long; see patience.h.
 */
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "patience.h"

static const char *text;
static volatile sig_atomic_t shown;

static void say(const char *what)
{
	/* The terminal may be gone: then nobody waits for the line */
	if (write(STDERR_FILENO, what, strlen(what)) < 0)
		return;
}

static void show(int sig)
{
	(void)sig;
	say(text);
	say(" ... (Ctrl-C ends it)");
	shown = 1;
}

void patience_begin(const char *line)
{
	struct sigaction action = { .sa_handler = show, .sa_flags = SA_RESTART };

	if (!isatty(STDERR_FILENO))
		return;
	text = line;
	sigaction(SIGALRM, &action, NULL);
	alarm(1);
}

void patience_end(void)
{
	alarm(0);
	if (shown)
		say("\r\033[K");
	shown = 0;
}
