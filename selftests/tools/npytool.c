// SPDX-License-Identifier: GPL-2.0
/*
 * npytool - make and check arrays for dev_allreduce.sh
 *
 *	npytool make FILE RANK DTYPE HEADER COUNT	what the rank contributes
 *	npytool check FILE RANKS OP DTYPE COUNT		the result, bit for bit
 *
 * HEADER is the dictionary of a .npy file, or "raw". The data are the pattern that
 * zcoll perf uses, and the result is the reference's; this program reads the headers
 * of NumPy files no further than to their length.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zcoll.h>

#include "../../tools/pattern.h"

static int make(char **argv)
{
	FILE *file = fopen(argv[0], "w");
	int dtype = zcoll_dtype_parse(argv[2]);
	unsigned int rank = (unsigned int)atoi(argv[1]);
	size_t count = strtoul(argv[4], NULL, 10), len;
	struct pattern p;
	char *data;

	/* the number of ranks matters for the result alone, which is not used here */
	if (!file || dtype < 0 || pattern_init(&p, dtype, ZCOLL_SUM, rank, rank + 1, false))
		return 2;
	if (strcmp(argv[3], "raw")) {
		len = strlen(argv[3]) + 1;
		fwrite("\x93NUMPY\x01\x00", 1, 8, file);
		fputc(len & 255, file);
		fputc(len >> 8 & 255, file);
		fprintf(file, "%s\n", argv[3]);
	}
	data = malloc(count * p.size + 1);
	pattern_fill(&p, data, count * p.size, 0);
	fwrite(data, p.size, count, file);
	return fclose(file) ? 2 : 0;
}

static int check(char **argv)
{
	FILE *file = fopen(argv[0], "r");
	int op = zcoll_op_parse(argv[2]), dtype = zcoll_dtype_parse(argv[3]);
	size_t count = strtoul(argv[4], NULL, 10), size = zcoll_dtype_size(dtype), got;
	unsigned char start[10] = { 0 };
	unsigned long long wrong;
	struct pattern p;
	char *data;

	if (!file || op < 0 || dtype < 0 ||
	    pattern_init(&p, dtype, op, 0, (unsigned int)atoi(argv[1]), false))
		return 2;
	if (fread(start, 1, 10, file) == 10 && !memcmp(start, "\x93NUMPY", 6))
		fseek(file, 10 + start[8] + (start[9] << 8), SEEK_SET);
	else
		rewind(file);
	data = malloc((count + 1) * size);
	got = fread(data, size, count + 1, file);
	if (got != count) {
		printf("%s: %zu elements, should be %zu\n", argv[0], got, count);
		return 1;
	}
	wrong = pattern_wrong_result(&p, data, count, 0);
	if (wrong)
		printf("%s: %llu of %zu elements are wrong\n", argv[0], wrong, count);
	return wrong != 0;
}

int main(int argc, char **argv)
{
	if (argc == 7 && !strcmp(argv[1], "make"))
		return make(argv + 2);
	if (argc == 7 && !strcmp(argv[1], "check"))
		return check(argv + 2);
	fprintf(stderr, "npytool: wrong usage\n");
	return 2;
}
