// SPDX-License-Identifier: GPL-2.0
/*
 * Print what zcoll_attr_from_env() finds: "RANK SIZE KEY", or an error text.
 */
#include <stdio.h>

#include <zcoll.h>

int main(void)
{
	char text[ZCOLL_TEXT_MAX];
	struct zcoll_attr attr;

	zcoll_attr_init(&attr);
	attr.error = text;
	attr.error_len = sizeof(text);
	if (zcoll_attr_from_env(&attr)) {
		printf("%s\n", text);
		return 1;
	}
	printf("%u %u ", attr.rank, attr.nranks);
	for (int i = 0; i < 16; i++)
		printf("%02x", attr.key[i]);
	putchar('\n');
	return 0;
}
