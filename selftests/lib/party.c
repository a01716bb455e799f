// SPDX-License-Identifier: GPL-2.0
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "party.h"

uint64_t party_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* "HOST:PORT" with a port of this host that is free now */
const char *party_store(const char *host, unsigned int *port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	socklen_t len = sizeof(sa);
	static char store[100];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, len) ||
	    getsockname(fd, (struct sockaddr *)&sa, &len)) {
		printf("Bail out! no free port\n");
		exit(1);
	}
	close(fd);
	snprintf(store, sizeof(store), "%s:%u", host, ntohs(sa.sin_port));
	if (port)
		*port = ntohs(sa.sin_port);
	return store;
}

/* @nranks + @aggregators processes, at a free port, with 10 s to join */
void party_init(struct party *party, unsigned int nranks, unsigned int aggregators,
		int (*play)(struct party *, unsigned int, struct zcoll_attr *))
{
	memset(party, 0, sizeof(*party));
	zcoll_attr_init(&party->attr);
	zcoll_key_from_string(party->attr.key, "party");
	party->attr.nranks = nranks;
	party->attr.aggregators = aggregators;
	party->attr.exchange = ZCOLL_EXCHANGE_STORE;
	party->attr.store = party_store("127.0.0.1", NULL);
	party->attr.join_timeout_ns = 10000 * PARTY_MS;
	party->processes = nranks + aggregators;
	party->play = play;
	party->results = mmap(NULL, PARTY_MAX * sizeof(*party->results), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (party->results == MAP_FAILED) {
		printf("Bail out! no memory\n");
		exit(1);
	}
}

static void play(struct party *party, unsigned int process)
{
	struct guest_result *result = &party->results[process];
	struct zcoll_attr attr = party->attr;
	uint64_t begin = party_now();

	alarm(60);
	attr.error = result->text;
	attr.error_len = sizeof(result->text);
	result->ret = party->play(party, process, &attr);
	result->ns = party_now() - begin;
	exit(0);
}

void party_start(struct party *party)
{
	fflush(stdout);
	for (unsigned int i = 0; i < party->processes; i++) {
		party->results[i].ret = 1;	/* was killed */
		party->pids[i] = fork();
		if (!party->pids[i])
			play(party, i);
	}
}

void party_end(struct party *party)
{
	for (unsigned int i = 0; i < party->processes; i++)
		waitpid(party->pids[i], NULL, 0);
}

void party_run(struct party *party)
{
	party_start(party);
	party_end(party);
}

/* Did all processes get this result, with a text that holds @part? */
bool party_all(const struct party *party, int ret, const char *part)
{
	bool all = true;

	for (unsigned int i = 0; i < party->processes; i++) {
		const struct guest_result *result = &party->results[i];

		if (result->ret == ret && strstr(result->text, part))
			continue;
		printf("# process %u: %d (%s)\n", i, result->ret, result->text);
		all = false;
	}
	return all;
}
