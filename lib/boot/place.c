// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Where the store is: host and ports, and how rank 0 listens there.
 *
 * A port can be left out when $ZCOLL_PORTS gives a range. Rank 0 takes the first that is
 * free, and the others try all: only the right store can prove that it knows the key, so
 * jobs that share a range find each their own.
 */
#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "store.h"

#define FAIL(attr, err, ...)	zc_text((attr)->error, (attr)->error_len, err, __VA_ARGS__)

/* ------------------------------------------------------------- what users say */

/* A port, ended by @stop; *@end is then what follows */
static bool get_port(const char *text, char stop, unsigned int *port, const char **end)
{
	unsigned long n;
	char *at;

	if (!isdigit((unsigned char)*text))
		return false;
	n = strtoul(text, &at, 10);
	if (*at != stop || n < 1 || n > 65535)
		return false;
	*port = n;
	*end = at + !!stop;
	return true;
}

/* What $ZCOLL_PORTS says: LOW-HIGH */
static int get_range(struct store_place *place, const char *range, const struct zcoll_attr *attr)
{
	const char *end;

	if (!get_port(range, '-', &place->low, &end) || !get_port(end, '\0', &place->high, &end) ||
	    place->low > place->high || place->high - place->low >= PORTS_MAX)
		return FAIL(attr, -EINVAL, "ZCOLL_PORTS=%.80s: must be LOW-HIGH, at most %u ports of 1 to 65535",
			    range, PORTS_MAX);
	return 0;
}

/* HOST:PORT, HOST, [IPV6]:PORT or [IPV6] */
static int parse(struct store_place *place, const char *store, const struct zcoll_attr *attr)
{
	const char *host = store, *port, *end, *range = zc_env("ZCOLL_PORTS");
	size_t len;

	if (*store == '[') {
		host = store + 1;
		len = strcspn(host, "]");
		port = host + len + !!host[len];
	} else {
		len = strcspn(store, ":");
		port = store + len;
	}
	if (!len || len >= sizeof(place->host) || (*store == '[' && host[len] != ']'))
		return FAIL(attr, -EINVAL, "%s=%.150s: must be HOST:PORT or [IPV6]:PORT",
			    place->from, store);
	snprintf(place->host, sizeof(place->host), "%.*s", (int)len, host);
	if (!*port && range)
		return get_range(place, range, attr);
	if (!*port)
		return FAIL(attr, -EINVAL, "%s=%.150s: no port: say HOST:PORT, or set ZCOLL_PORTS=LOW-HIGH",
			    place->from, store);
	if (*port != ':' || !get_port(port + 1, '\0', &place->low, &end))
		return FAIL(attr, -EINVAL, "%s=%.150s: after the host must follow a port, :1 to :65535; an IPv6 address is put in [ ]",
			    place->from, store);
	place->high = place->low;
	return 0;
}

/* torchrun's: its own store has MASTER_PORT, ours takes the next */
static int from_master(struct store_place *place, const struct zcoll_attr *attr)
{
	const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT"), *end;

	if (!host || !port)
		return FAIL(attr, -EINVAL, "no store: set ZCOLL_STORE=HOST:PORT, an address of rank 0's node and a free port there");
	if (!get_port(port, '\0', &place->low, &end) || place->low == 65535)
		return FAIL(attr, -EINVAL, "MASTER_PORT=%.80s: must be 1 to 65534, as the store takes the next port",
			    port);
	if (strlen(host) >= sizeof(place->host))
		return FAIL(attr, -EINVAL, "MASTER_ADDR=%.80s...: longer than a host name", host);
	strcpy(place->host, host);
	place->high = ++place->low;
	return 0;
}

/* What the caller or else the environment says; NULL: nothing */
static const char *said(struct store_place *place, const struct zcoll_attr *attr)
{
	const char *store = attr->store ? attr->store : zc_env("ZCOLL_STORE");

	place->from = attr->store ? "zcoll_attr.store" : store ? "ZCOLL_STORE" : "MASTER_ADDR";
	return store;
}

/**
 * zc_store_place - where is the store?
 * @place: output
 * @attr: @attr->store, or NULL: $ZCOLL_STORE, or else what torchrun says
 */
int zc_store_place(struct store_place *place, const struct zcoll_attr *attr)
{
	const char *store = said(place, attr);

	return store ? parse(place, store, attr) : from_master(place, attr);
}

/**
 * zc_store_check - does what is said of the store make sense, should one be needed or not?
 * @attr: as for zc_store_place()
 */
int zc_store_check(const struct zcoll_attr *attr)
{
	const char *range = zc_env("ZCOLL_PORTS"), *store;
	struct store_place place;
	int ret = range ? get_range(&place, range, attr) : 0;

	store = said(&place, attr);
	return ret || !store ? ret : parse(&place, store, attr);
}

/**
 * zc_store_place_name - a place for texts: "host:29600 (ZCOLL_STORE)"
 * @name: output
 * @len: its size, PLACE_NAME suffices
 * @place: the place
 */
void zc_store_place_name(char *name, size_t len, const struct store_place *place)
{
	bool ipv6 = strchr(place->host, ':');
	char range[16] = "";

	if (place->low != place->high)
		snprintf(range, sizeof(range), "-%u", place->high);
	snprintf(name, len, "%s%.100s%s:%u%s (%s)", ipv6 ? "[" : "", place->host, ipv6 ? "]" : "",
		 place->low, range, place->from);
}

/**
 * zc_store_resolve - addresses of the store's host, for freeaddrinfo()
 * @place: where it is
 * @err: output: EAI_*
 */
struct addrinfo *zc_store_resolve(const struct store_place *place, int *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;

	*err = getaddrinfo(place->host, NULL, &hints, &list);
	return *err ? NULL : list;
}

void zc_set_port(struct sockaddr *sa, unsigned int port)
{
	if (sa->sa_family == AF_INET6)
		((struct sockaddr_in6 *)sa)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)sa)->sin_port = htons(port);
}

/* ------------------------------------------------------------------ listening */

static socklen_t length(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* The address of $ZCOLL_IFACE; of IPv6 only if it has no other */
static int of_interface(struct sockaddr_storage *sa, const char *name,
			const struct zcoll_attr *attr)
{
	struct ifaddrs *list, *best = NULL;

	if (getifaddrs(&list))
		return FAIL(attr, -errno, "ZCOLL_IFACE=%.80s: %s", name, strerror(errno));
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;

		if (strcmp(i->ifa_name, name) || (family != AF_INET && family != AF_INET6))
			continue;
		if (!best || (family == AF_INET && best->ifa_addr->sa_family != AF_INET))
			best = i;
	}
	if (best)
		memcpy(sa, best->ifa_addr, length(best->ifa_addr));
	freeifaddrs(list);
	if (!best)
		return FAIL(attr, -ENODEV, "ZCOLL_IFACE=%.80s: no such interface on rank 0's node, or it has no address",
			    name);
	return 0;
}

/* The host as a number; a name may mean another address here than to others */
static bool of_number(struct sockaddr_storage *sa, const char *host)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST }, *info;

	if (getaddrinfo(host, NULL, &hints, &info))
		return false;
	memcpy(sa, info->ai_addr, info->ai_addrlen);
	freeaddrinfo(info);
	return true;
}

/* Listen at the first port that is free; a file descriptor or a negative errno */
static int listen_at(struct sockaddr *sa, const struct store_place *place)
{
	int fd, err = -EADDRINUSE, on = 1, off = 0;

	for (unsigned int port = place->low; port <= place->high; port++) {
		fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			return -errno;
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (sa->sa_family == AF_INET6)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		zc_set_port(sa, port);
		if (!bind(fd, sa, length(sa)) && !listen(fd, SOMAXCONN))
			return fd;
		err = -errno;
		close(fd);
		if (err != -EADDRINUSE)
			break;
	}
	return err;
}

static int listen_anywhere(const struct store_place *place)
{
	struct sockaddr_in6 all6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in all4 = { .sin_family = AF_INET };
	int fd = listen_at((struct sockaddr *)&all6, place);

	if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
		fd = listen_at((struct sockaddr *)&all4, place);
	return fd;
}

/**
 * zc_store_listen - listen for callers
 * @place: where
 * @attr: for the error text
 *
 * On the interface of $ZCOLL_IFACE, or on the host's address if it is written as a
 * number and is this machine's, or else on all.
 *
 * Return: a file descriptor or a negative errno.
 */
int zc_store_listen(const struct store_place *place, const struct zcoll_attr *attr)
{
	const char *iface = zc_env("ZCOLL_IFACE");
	struct sockaddr_storage sa = { 0 };
	int fd = -EADDRNOTAVAIL;

	if (iface) {
		fd = of_interface(&sa, iface, attr);
		if (fd)
			return fd;
		fd = listen_at((struct sockaddr *)&sa, place);
	} else {
		if (of_number(&sa, place->host))
			fd = listen_at((struct sockaddr *)&sa, place);
		if (fd == -EADDRNOTAVAIL)
			fd = listen_anywhere(place);
	}
	if (fd >= 0)
		return fd;
	if (place->low != place->high)
		return FAIL(attr, fd, "rank 0: the store cannot listen at any port of ZCOLL_PORTS=%u-%u: %s",
			    place->low, place->high, strerror(-fd));
	return FAIL(attr, fd, "rank 0: the store cannot listen at port %u: %s; ZCOLL_STORE=HOST:PORT says where",
		    place->low, strerror(-fd));
}
