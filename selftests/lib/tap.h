/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TAP, as far as the tests of the library need it.
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int tap_done, tap_failed;

/* One test: its name says what is protected */
__attribute__((format(printf, 2, 3)))
static inline bool ok(bool good, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", good ? "" : "not ", ++tap_done);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	tap_failed += !good;
	return good;
}

/* A test of a number, which is told if it is wrong */
#define is(got, want, ...) do {							\
	long long got_ = (got), want_ = (want);					\
										\
	if (!ok(got_ == want_, __VA_ARGS__))					\
		printf("# %s:%d: %s is %lld and should be %lld\n", __FILE__, __LINE__,	\
		       #got, got_, want_);					\
} while (0)

/* A test that @text holds @part */
#define has(text, part, ...) do {						\
	const char *text_ = (text);						\
										\
	if (!ok(strstr(text_, part), __VA_ARGS__))				\
		printf("# %s:%d: no \"%s\" in \"%s\"\n", __FILE__, __LINE__, part, text_);	\
} while (0)

static inline int tap_end(void)
{
	printf("1..%d\n", tap_done);
	return tap_failed != 0;
}

#endif /* TAP_H */
