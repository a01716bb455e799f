/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault injection: the n-th step of this thread that can fail fails.
 */
#ifndef ZCOLL_TEST_NTH_H
#define ZCOLL_TEST_NTH_H

#include <sys/mount.h>
#include "kselftest.h"

#include "zcoll_test.h"

static inline int write_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -errno : 0;
}

/* Faults also where the caller could wait, in single pages, without a console log */
static inline int configure(void)
{
	static const char * const what[] = { "failslab", "fail_page_alloc", "fail_usercopy" };
	static const char * const set[][2] = {
		{ "ignore-gfp-wait", "N" }, { "min-order", "0" }, { "verbose", "0" },
	};
	char name[128];

	if (access("/sys/kernel/debug/failslab", F_OK))
		mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	if (access("/sys/kernel/debug/failslab", F_OK))
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(what); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(set); j++) {
			snprintf(name, sizeof(name), "/sys/kernel/debug/%s/%s",
				 what[i], set[j][0]);
			write_file(name, set[j][1]);
		}
	}
	return 0;
}

static int fail_nth_fd = -1;

/* The @n-th step of this thread from now on fails */
static inline void arm(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (pwrite(fail_nth_fd, text, len, 0) != len)
		abort();
}

/*
 * True if the fault has happened. Looking and disarming copy from and to user
 * space, so a fault that is still armed may hit these.
 */
static inline bool disarm(void)
{
	char text[16] = "";
	bool fired;

	fired = pread(fail_nth_fd, text, sizeof(text), 0) > 0 && text[0] == '0' &&
		text[1] == '\n';
	while (pwrite(fail_nth_fd, "0", 1, 0) != 1)
		;
	return fired;
}

static inline int nth_init(void)
{
	int ret = configure();

	if (ret)
		return ret;
	fail_nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	return fail_nth_fd < 0 ? -errno : 0;
}

#define NTH_MAIN								\
int main(int argc, char **argv)							\
{										\
	if (access("/proc/thread-self/fail-nth", W_OK))				\
		ksft_exit_skip("this kernel injects no faults\n");		\
	return zt_main(argc, argv);						\
}

#endif /* ZCOLL_TEST_NTH_H */
