# SPDX-License-Identifier: LGPL-2.1-only OR MIT
# shellcheck shell=bash disable=SC2154
# run-uml.sh - how tools/vm/vm starts User-Mode Linux
#
# The kernel is a process of the host, so computation has native speed and a
# system call costs some 20 us.  It reaches the host's files by hostfs; three
# consoles write to the pipes for control lines, output and errors, and console
# 0 is the kernel's own.  seccomp=on is what allows several processors.
no_blanks "$run"
args+=" console=tty0 zvm.run=$run"

start_machine() {
	exec 5>"$run/ctl" 6>"$run/out" 7>"$run/err"
	# shellcheck disable=SC2086 # the arguments are words
	exec setpriv --pdeathsig KILL "$k/kernel" mem="$mem" ncpus="$cpus" seccomp=on \
		initrd="$k/initramfs" uml_dir="$run/" umid=uml con=null con0=null,fd:1 \
		con1=null,fd:5 con2=null,fd:6 con3=null,fd:7 ssl=null $args "${extra[@]}"
}
