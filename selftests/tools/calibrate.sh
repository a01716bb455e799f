#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# calibrate.sh - zcoll calibrate over loopback: what it measures is plausible, its file
# can be used, and what goes wrong is told; needs no device
# shellcheck disable=SC2317 # functions called by t
# shellcheck source=selftests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

# calibrate ARG...: what is too noisy on a busy machine is measured again
calibrate() {
	local tries=10 status
	while [ $((tries -= 1)) -ge 0 ]; do
		"$zcoll" calibrate "$@" 2>calibrate.err
		status=$?
		grep -q "too noisy" calibrate.err || break
	done
	cat calibrate.err >&2
	return "$status"
}

# positive FILE: all numbers of a fabric are
positive() {
	python3 - "$1" <<-'EOF'
	import json, sys
	fabric = json.load(open(sys.argv[1]))
	names = ["latency_ns", "overhead_ns", "gap_ns", "ns_per_byte", "ns_per_byte_folded"]
	sys.exit(not all(0 < fabric[name] < 1e9 for name in names))
	EOF
}

# A free port, as far as one can know
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# listening PORT: somebody does
listening() {
	local tries=100
	while [ $((tries -= 1)) -gt 0 ]; do
		grep -qi ":$(printf %04X "$1") 00000000:0000 0A" /proc/net/tcp && return
		sleep 0.05
	done
	echo "nobody listens at $1"
	return 1
}

local_numbers() {
	run calibrate --time 200ms --json
	is 0 "$status" && positive out
}

writes_file() {
	run calibrate --time 200ms -o fabric.json --name "my fabric"
	is 0 "$status" && positive fabric.json && grep -q '"my fabric"' fabric.json &&
		grep -q "^fabric   my fabric" out && grep -qE '^L  +[0-9]+ ns' out
}

# A listener ends with the measurement, so the next try needs another one
two_processes() {
	local port answer tries=10
	while [ $((tries -= 1)) -ge 0 ]; do
		port=$(free_port)
		"$zcoll" calibrate --listen "127.0.0.1:$port" 2>listener &
		answer=$!
		listening "$port" || return 1
		run "$zcoll" calibrate --peer "127.0.0.1:$port" --time 200ms -o peer.json
		grep -q "too noisy" err || break
		wait "$answer"
	done
	is 0 "$status" && positive peer.json && wait "$answer" &&
		grep -q "127.0.0.1:$port" peer.json && grep -q "listening at 127.0.0.1:$port" listener &&
		grep -q "127.0.0.1 measures" listener && grep -q "127.0.0.1 has measured" listener
}

# A file that cannot be written is told before an hour is spent
file_first() {
	local begin=$SECONDS
	fails "no/such: No such file" "$zcoll" calibrate --time 1h -o no/such &&
		[ $((SECONDS - begin)) -le 4 ]
}

# What was in the file goes when there is something better, and not before
file_replaced() {
	seq 10000 >old.json
	fails "Connection refused" "$zcoll" calibrate --peer "127.0.0.1:$(free_port)" -o old.json
	is 10000 "$(wc -l <old.json)" || return 1
	run calibrate --time 50ms -o old.json
	is 0 "$status" && positive old.json
}

# A service that says something else, or nothing that makes sense
stranger() {
	local port status
	port=$(free_port)
	python3 - "$port" <<-'EOF' &
	import socket, sys
	s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
	c, _ = s.accept()
	c.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")
	c.recv(100)
	EOF
	listening "$port" || return 1
	fails "is not a zcoll calibrate of this version" "$zcoll" calibrate --peer "127.0.0.1:$port"
}

peer_goes() {
	local port
	port=$(free_port)
	python3 - "$port" <<-'EOF' &
	import socket, sys
	s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
	c, _ = s.accept()
	c.sendall(c.recv(100))
	EOF
	listening "$port" || return 1
	fails "127.0.0.1:$port: " "$zcoll" calibrate --peer "127.0.0.1:$port"
}

nobody() {
	local port
	port=$(free_port)
	fails "does 'zcoll calibrate --listen $port' run there?" \
		"$zcoll" calibrate --peer "127.0.0.1:$port"
}

port_in_use() {
	local port
	port=$(free_port)
	python3 -c 'import socket, sys, time
s = socket.create_server(("127.0.0.1", int(sys.argv[1]))); time.sleep(5)' "$port" &
	listening "$port" || return 1
	fails "Address already in use" "$zcoll" calibrate --listen "127.0.0.1:$port"
	local good=$?
	kill %% 2>/dev/null
	return "$good"
}

in_time() {
	local begin=$SECONDS
	run calibrate --time 1s
	is 0 "$status" && [ $((SECONDS - begin)) -le 4 ]
}

manual_names_options() {
	sed 's/\\-/-/g' "$top/Documentation/man/zcoll-calibrate.1" >page
	for option in $("$zcoll" help calibrate | sed -nE 's/^ +(-.,)? *(--[a-z_]+).*/\2/p'); do
		[ "$option" = --help ] || grep -qF -e "$option" page || { echo "no $option"; return 1; }
	done
}

t "measures this node: all numbers are positive" local_numbers
t "writes a file, and prints a table" writes_file
t "measures with a peer, which then ends" two_processes
t "ends in time" in_time
t "another service is not taken for a peer" stranger
t "a peer that goes is told" peer_goes
t "nobody there: told, with what to do" nobody
t "a port in use is told" port_in_use
t "a file that cannot be written is told at once" file_first
t "a file is replaced when all is measured" file_replaced
t "a full disk is told" fails "No space left" calibrate --time 50ms -o /dev/full
t "a port above 65535 is refused by a listener" refused "not a number from 1 to 65535" "$zcoll" calibrate --listen 99999
t "and for a peer" refused "not a number from 1 to 65535" "$zcoll" calibrate --peer localhost:99999
t "port 0 is refused" refused "not a number from 1 to 65535" "$zcoll" calibrate --listen 0
t "a peer without a port" refused "not HOST:PORT" "$zcoll" calibrate --peer foo
t "a time that is none" refused "not a time" "$zcoll" calibrate --time 0
t "a listener measures nothing" refused "only answers" "$zcoll" calibrate --listen 1 --json
t "the manual page names all options" manual_names_options
t "an argument too many" refused "unexpected argument" "$zcoll" calibrate x
tap_end
