// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The device: opening it, and what it says of itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "internal.h"

/* ioctl() with its errno as the return value */
int zc_ioctl(int fd, unsigned long cmd, void *arg)
{
	int ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

static const char *what_helps(int err)
{
	switch (err) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		return "; is the module loaded (modprobe zcoll)?";
	case EACCES:
	case EPERM:
		return "; who may use it is in the group zcoll (usermod -aG zcoll USER, then log in again); a container must be given the device";
	default:
		return "";
	}
}

static const char *device_path(const char *device)
{
	const char *env = secure_getenv("ZCOLL_DEVICE");

	if (device)
		return device;
	return env && *env ? env : ZC_DEFAULT_DEVICE;
}

/**
 * zc_device_open - open the device and ask what it can do
 * @device: path or NULL
 * @info: output
 * @text: buffer for an error text, or NULL
 * @len: its size
 *
 * Return: a file descriptor or a negative errno.
 */
int zc_device_open(const char *device, struct zcoll_info *info, char *text, size_t len)
{
	const char *path = device_path(device);
	int fd, ret;

	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		ret = -errno;
		return zc_text(text, len, ret, "cannot open %s: %s%s", path,
			       strerror(-ret), what_helps(-ret));
	}

	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	ret = zc_ioctl(fd, ZCOLL_IOC_INFO, info);
	if (ret) {
		close(fd);
		return zc_text(text, len, ret, "%s is not a zcoll device, or another version's: %s",
			       path, strerror(-ret));
	}
	if (info->abi_version != ZCOLL_ABI_VERSION) {
		close(fd);
		return zc_text(text, len, -EPROTONOSUPPORT,
			       "%s speaks ABI version %u, this library %u", path,
			       info->abi_version, ZCOLL_ABI_VERSION);
	}
	return fd;
}

int zcoll_info_get(const char *device, struct zcoll_info *info)
{
	int fd = zc_device_open(device, info, NULL, 0);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}
