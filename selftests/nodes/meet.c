// SPDX-License-Identifier: GPL-2.0
/*
 * Meetings of meet.h. A file appears under its name when it is whole; the one before the
 * last is taken away, as all have read that when they come to the next.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "meet.h"
#include "when.h"

static unsigned int number(const char *name, unsigned int otherwise)
{
	const char *value = getenv(name);

	return value && *value ? strtoul(value, NULL, 10) : otherwise;
}

void meet_open(struct meet *meet, const char *program)
{
	const char *folder = getenv("ZCOLL_MEET");

	meet->folder = folder ? folder : "/run/net";
	meet->program = program;
	meet->machine = number("ZCOLL_NODE", 0);
	meet->machines = number("ZCOLL_NODES", 1);
	meet->count = 0;
	if (meet->machines > MEET_MACHINES) {
		fprintf(stderr, "at most %u machines\n", MEET_MACHINES);
		exit(2);
	}
}

bool meet_killed(const struct meet *meet, unsigned int machine)
{
	char path[256];

	if (meet->machines == 1)
		return false;
	snprintf(path, sizeof(path), "%s/killed.%u", meet->folder, machine);
	return !access(path, F_OK);
}

static void path_of(const struct meet *meet, char path[256], unsigned int count,
		    unsigned int machine, const char *state)
{
	snprintf(path, 256, "%s/%s%s.%u.%u", meet->folder, state, meet->program, count, machine);
}

static bool put(const struct meet *meet, const void *mine, size_t len)
{
	char half[256], whole[256];
	bool good;
	int fd;

	path_of(meet, half, meet->count, meet->machine, ".");
	path_of(meet, whole, meet->count, meet->machine, "");
	fd = open(half, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	good = fd >= 0 && write(fd, mine, len) == (ssize_t)len;
	if (fd >= 0)
		close(fd);
	return good && !rename(half, whole);
}

static bool get(const struct meet *meet, unsigned int machine, void *theirs, size_t len)
{
	char path[256];
	bool good;
	int fd;

	path_of(meet, path, meet->count, machine, "");
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	good = read(fd, theirs, len) == (ssize_t)len;
	close(fd);
	return good;
}

bool meet_all(struct meet *meet, const void *mine, size_t len, void *all,
	      unsigned int limit_ms)
{
	unsigned long long end = now_ms() + limit_ms;
	bool good = true, there;
	unsigned int machine;
	char path[256];

	if (meet->machines == 1) {
		memcpy(all, mine, len);
		return true;
	}
	if (!put(meet, mine, len)) {
		fprintf(stderr, "cannot write to %s\n", meet->folder);
		exit(2);
	}
	memset(all, 0, meet->machines * len);
	for (machine = 0; machine < meet->machines; machine++) {
		while (!(there = get(meet, machine, (char *)all + machine * len, len)) &&
		       !meet_killed(meet, machine) && now_ms() < end)
			usleep(10000);
		good &= there || meet_killed(meet, machine);
	}
	if (meet->count) {
		path_of(meet, path, meet->count - 1, meet->machine, "");
		unlink(path);
	}
	meet->count++;
	return good;
}
