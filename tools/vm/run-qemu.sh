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

# network: where this machine sends its frames and gets them
network() {
	if [ "$node_count" = 2 ]; then
		echo "local.type=unix,local.path=$net/$node_number,remote.type=unix,remote.path=$net/$((1 - node_number))"
	else
		# the port, from the name of the folder, tells groups of machines apart
		echo "remote.type=inet,remote.host=230.0.0.1,remote.port=$((20000 + $(echo "$net" | cksum | cut -d' ' -f1) % 40000)),local.type=inet,local.host=127.0.0.1,local.port=0"
	fi
}

start_machine() {
	# Four-level page tables: an interrupt early in a boot with five makes KASAN report a
	# wild access, since the CPU's feature bits are cleared for a moment
	local accel=(-accel "tcg,thread=multi" -cpu "max,la57=off") port ports=()
	if [ "$accelerator" = kvm ]; then
		accel=(-accel kvm -cpu host)
	else
		# Translated, and on a busy host, the timer may be too late for the kernel's test of it
		args+=" mitigations=off cryptomgr.notests no_timer_check"
	fi
	for port in ctl out err; do
		ports+=(-chardev "file,id=$port,path=$(comma "$run/$port")"
			-device "virtserialport,chardev=$port,name=$port")
	done
	if [ "${node_count:-1}" -gt 1 ]; then
		# host_mtu lets RDMA use its largest packets, 4096 bytes.
		ports+=(-virtfs "local,path=$net,mount_tag=net,security_model=none" -netdev "dgram,id=net,$(network)" -device
			"virtio-net-pci,netdev=net,host_mtu=9000,romfile=,mac=$(printf 52:54:00:12:34:%02x "$node_number")")
	fi
	exec setpriv --pdeathsig KILL qemu-system-x86_64 -nodefaults -no-user-config -display none \
		-machine q35 "${accel[@]}" -smp "$cpus" -m "$mem" -no-reboot \
		-kernel "$k/kernel" -initrd "$k/initramfs" -append "$args" \
		-serial stdio -device virtio-serial-pci "${ports[@]}" \
		-virtfs "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap" \
		-virtfs "local,path=$(comma "$run"),mount_tag=run,security_model=none" \
		-virtfs "local,path=$(comma "$results"),mount_tag=results,security_model=none" \
		"${extra[@]}"
}
