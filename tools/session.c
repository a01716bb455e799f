// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Session: becoming a rank; see session.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cmd.h"
#include "msg.h"
#include "session.h"

static const char *advice(int err)
{
	switch (-err) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		return "load the module: modprobe zcoll (as root)";
	case EACCES:
	case EPERM:
		return "who may use it is in the group zcoll (usermod -aG zcoll USER, then log in again); a container must be given the device";
	case ENOTTY:
		return "this is not the device of zcoll; check $ZCOLL_DEVICE";
	default:
		return "module and library may be of different releases; install both from one";
	}
}

int device_failed(int err)
{
	const char *path = getenv("ZCOLL_DEVICE");

	if (!path || !*path)
		path = "/dev/zcoll";
	if (err == -EPROTONOSUPPORT)
		return failed("%s speaks another ABI version than %d, that of this program: install module and program from one release",
			      path, ZCOLL_ABI_VERSION);
	return failed("%s: %s: %s", path, strerror(-err), advice(err));
}

/* Nobody started us as a rank */
static int attr_alone(struct zcoll_attr *attr)
{
	zcoll_attr_init(attr);
	attr->nranks = 1;
	if (getrandom(attr->key, sizeof(attr->key), 0) != (ssize_t)sizeof(attr->key))
		return -errno;
	return 0;
}

/* One that was asked for is the end of joining too */
static void set_deadline(struct zcoll_attr *attr, uint64_t deadline_ns)
{
	if (deadline_ns != SESSION_DEFAULT) {
		attr->deadline_ns = deadline_ns;
		if (deadline_ns && deadline_ns < attr->join_timeout_ns)
			attr->join_timeout_ns = deadline_ns;
	} else if (!attr->deadline_ns) {
		attr->deadline_ns = SESSION_DEADLINE_NS;
	}
}

int session_open(struct zcoll_comm **comm, uint64_t deadline_ns)
{
	char text[ZCOLL_TEXT_MAX] = "";
	struct zcoll_attr attr;
	struct zcoll_info info;
	int err;

	zcoll_attr_init(&attr);
	attr.error = text;
	attr.error_len = sizeof(text);
	err = zcoll_attr_from_env(&attr);
	if (err == -ENOENT)
		err = attr_alone(&attr);
	if (err)
		return failed("cannot tell rank and size from the environment: %s",
			      text[0] ? text : strerror(-err));

	set_deadline(&attr, deadline_ns);
	err = zcoll_info_get(attr.device, &info);
	if (err)
		return device_failed(err);
	attr.error = text;
	attr.error_len = sizeof(text);
	err = zcoll_comm_create(comm, &attr);
	if (err)
		return failed("%s", text[0] ? text : strerror(-err));
	if (attr.nranks > 1)
		msg_rank(attr.rank);
	return 0;
}

/* The message begins with our rank; the library's texts often do too */
static const char *without_rank(const char *text, unsigned int rank)
{
	char prefix[24];
	size_t len = (size_t)snprintf(prefix, sizeof(prefix), "rank %u: ", rank);

	return strncmp(text, prefix, len) ? text : text + len;
}

int session_failed(struct zcoll_comm *comm, const char *what, int err)
{
	char text[ZCOLL_TEXT_MAX] = "";

	if (zcoll_comm_error(comm, text, sizeof(text)) < 0 || !text[0])
		return failed("%s: %s", what, strerror(-err));
	return failed("%s: %s", what, without_rank(text, zcoll_comm_rank(comm)));
}
