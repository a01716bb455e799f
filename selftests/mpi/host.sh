#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# host.sh - without a device, all calls of MPI programs are passed on; prints TAP
exec "$(dirname "$0")/run" mixes errors refused guard off settings no_device partly
