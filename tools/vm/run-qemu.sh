# SPDX-License-Identifier: LGPL-2.1-only OR MIT
# shellcheck shell=bash disable=SC2154
# run-qemu.sh - how tools/vm/vm starts a kernel in QEMU
#
# KVM where it works, else TCG (QEMU's translator), where AVX2 is there too.
# Three virtio-serial ports carry control lines, output and errors; the serial
# console is the kernel's own.

args+=" console=ttyS0"
accelerator=$("$VM_TOOLS/accel")

# comma TEXT: QEMU wants commas in values doubled
comma() { echo "${1//,/,,}"; }

# wire SOCKET: how QEMU reaches a network, by a stream that is never short of a frame: as a client
# of tools/vm/switch. Of two machines that are joined directly the first one listens; QEMU waits
# there for room in the stream, and so stands still when the other does.
wire() {
	local i
	printf 'addr.type=unix,addr.path=%s' "$(comma "$1")"
	if [ "$direct/$node_count/$node_number" = 1/2/0 ]; then
		printf ',server=on'
		return
	fi
	for ((i = 0; i < 100; i++)); do
		[ ! -S "$1" ] || return
		sleep 0.1
	done
}

# numa SIZE: arguments for NUMA nodes of as much memory and as many processors each. A node is a
# socket: processors that share caches are not apart.
numa() {
	local mib=${1%[MG]} each=$((cpus / numa)) n
	[ "$1" = "${1%G}" ] || mib=$((mib * 1024))
	echo -smp "$cpus,sockets=$numa"
	[ "$numa" -gt 1 ] || return 0
	for ((n = 0; n < numa; n++)); do
		echo -object "memory-backend-ram,id=numa$n,size=$((mib / numa))M"
		echo -numa "node,memdev=numa$n,cpus=$((n * each))-$((n * each + each - 1))"
	done
}

start_machine() {
	# Four-level page tables: an interrupt early in a boot with five makes KASAN report a
	# wild access, since the CPU's feature bits are cleared for a moment
	local accel=(-accel "tcg,thread=multi" -cpu "max,la57=off") port rail ports=()
	if [ "$accelerator" = kvm ]; then
		accel=(-accel kvm -cpu host)
	else
		# Translated, and on a busy host, the timer may be too late for the kernel's test of it,
		# and a processor may get no time for so long that the kernel believes it stuck
		args+=" mitigations=off cryptomgr.notests no_timer_check"
		args+=" rcupdate.rcu_cpu_stall_timeout=60 watchdog_thresh=30"
	fi
	for port in ctl out err; do
		ports+=(-chardev "file,id=$port,path=$(comma "$run/$port")"
			-device "virtserialport,chardev=$port,name=$port")
	done
	if [ -n "$node" ]; then
		ports+=(-virtfs "local,path=$(comma "$net"),mount_tag=net,security_model=none")
		for ((rail = 0; rail < rails; rail++)); do
			# host_mtu lets RDMA use its largest packets, 4096 bytes.
			ports+=(-netdev "stream,id=rail$rail,$(wire "$net/rail$rail")" -device
				"virtio-net-pci,netdev=rail$rail,host_mtu=9000,romfile=,mac=$(printf 52:54:00:12:%02x:%02x "$rail" "$node_number")")
		done
	fi
	# shellcheck disable=SC2046 # numa prints arguments
	exec setpriv --pdeathsig KILL qemu-system-x86_64 -nodefaults -no-user-config -display none \
		-machine q35 "${accel[@]}" $(numa "$mem") -m "$mem" -no-reboot \
		-kernel "$k/kernel" -initrd "$k/initramfs" -append "$args" \
		-serial stdio -device virtio-serial-pci "${ports[@]}" \
		-virtfs "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap" \
		-virtfs "local,path=$(comma "$run"),mount_tag=run,security_model=none" \
		-virtfs "local,path=$(comma "$results"),mount_tag=results,security_model=none" \
		"${extra[@]}"
}
