// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers, sizes, times and %r on the command line: good ones give their value, bad
 * ones are refused and change nothing.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/launch.h"
#include "../../tools/parse.h"
#include "../lib/tap.h"

#define UNCHANGED 12345
#define REFUSED	UNCHANGED

static void size(const char *text, uint64_t want)
{
	uint64_t got = UNCHANGED;
	int err = parse_size(text, &got);

	ok(got == want && !err == (want != REFUSED), "size '%s'", text);
}

static void duration(const char *text, uint64_t want)
{
	uint64_t got = UNCHANGED;
	int err = parse_duration(text, &got);

	ok(got == want && !err == (want != REFUSED), "time '%s'", text);
}

static void number(const char *text, uint64_t want)
{
	uint64_t got = UNCHANGED;
	int err = parse_uint(text, 2, 1000, &got);

	ok(got == want && !err == (want != REFUSED), "number '%s' from 2 to 1000", text);
}

static void expands(const char *text, const char *want)
{
	char *got = launch_expand(text, 1023, 1024);

	ok(!strcmp(got, want), "'%s' becomes '%s'", text, want);
	free(got);
}

int main(void)
{
	printf("TAP version 13\n");
	size("0", 0);
	size("8", 8);
	size("64K", 65536);
	size("64k", 65536);
	size("3MiB", 3 << 20);
	size("2GB", 2ULL << 30);
	size("1T", 1ULL << 40);
	size("16777216T", REFUSED);
	size("18446744073709551616", REFUSED);
	size("", REFUSED);
	size("-1", REFUSED);
	size(" 1", REFUSED);
	size("1X", REFUSED);
	size("1KK", REFUSED);
	size("K", REFUSED);

	duration("0", 0);
	duration("2", 2000000000);
	duration("1.5s", 1500000000);
	duration("250ms", 250000000);
	duration("10us", 10000);
	duration("7ns", 7);
	duration("3m", 180000000000);
	duration("1h", 3600000000000);
	duration("3min", REFUSED);
	duration("", REFUSED);
	duration("soon", REFUSED);
	duration("-1", REFUSED);
	duration("inf", REFUSED);
	duration("nan", REFUSED);
	duration("0x10", REFUSED);
	duration("1e30", REFUSED);
	duration("5 s", REFUSED);

	number("2", 2);
	number("1000", 1000);
	number("1", REFUSED);
	number("1001", REFUSED);
	number("+5", REFUSED);
	number("5.0", REFUSED);

	expands("plain", "plain");
	expands("in.%r.npy", "in.1023.npy");
	expands("%r%r%n", "102310231024");
	expands("100%%", "100%");
	expands("%%r", "%r");
	expands("%x%", "%x%");
	return tap_end();
}
