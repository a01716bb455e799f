/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Meeting: how the test programs of several machines keep in step.
 *
 * A test that spans machines is the same program on each of them. It must tell results
 * also when the network between them is the very thing that is broken, so they
 * meet in a folder that all see: each puts a file there, and waits for those of the
 * others. A machine that was killed on purpose has left a file "killed.N" in that folder,
 * and is waited for no more.
 *
 * On one machine a meeting is nothing. Which there are says the environment:
 * ZCOLL_NODE (of this machine), ZCOLL_NODES, and ZCOLL_MEET, the folder (/run/net).
 */
#ifndef NODES_MEET_H
#define NODES_MEET_H

#include <stdbool.h>
#include <stddef.h>

#define MEET_MACHINES	16

/**
 * struct meet - a meeting place
 * @folder: that all machines see
 * @program: whose meetings these are, as one program runs after the other
 * @machine: number of this machine
 * @machines: how many there are
 * @count: meetings so far
 */
struct meet {
	const char *folder;
	const char *program;
	unsigned int machine;
	unsigned int machines;
	unsigned int count;
};

void meet_open(struct meet *meet, const char *program);

/**
 * meet_all - give @len bytes to the others, and get theirs
 * @meet: the meeting place
 * @mine: the bytes of this machine
 * @len: how many
 * @all: output, @len bytes for each machine; zeroes for one that is gone
 * @limit_ms: how long to wait
 *
 * Return: all are there that have not been killed.
 */
bool meet_all(struct meet *meet, const void *mine, size_t len, void *all,
	      unsigned int limit_ms);

bool meet_killed(const struct meet *meet, unsigned int machine);

#endif /* NODES_MEET_H */
