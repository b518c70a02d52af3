# shellcheck shell=sh
# virtio-net over a TAP.

if ! ip tuntap add dev lulltap0 mode tap 2>/dev/null && ! tunctl -t lulltap0 >/dev/null 2>&1; then
	skip "no TAP can be made here (needs CAP_NET_ADMIN)"
else
	ip address add 172.31.7.1/24 dev lulltap0
	ip link set lulltap0 up
	for vcpus in 1 2; do
		boot "net-$vcpus" cloud.vmlinux "$vcpus" 256 net=172.31.7.2/24,172.31.7.1+facts+poweroff "" \
			', "network-interfaces": [ { "iface_id": "eth0", "host_dev_name": "lulltap0", "guest_mac": "06:00:ac:1f:07:02" } ]'
		check "$vcpus vCPUs: powers off" ended guest-poweroff
		check "$vcpus vCPUs: the guest pings the host" has '^LULL:net .*sent=3 received=3'
		check "$vcpus vCPUs: its interrupts moved" has '^LULL:interrupts +[0-9]+:.*[1-9].*virtio[0-9]'
		check "$vcpus vCPUs: its MAC address is the one asked for" has '^LULL:link eth0 address=06:00:ac:1f:07:02'
	done

	# A TAP that another VM holds.
	start_lulld tap-holder
	check "a TAP is taken when it is configured" api_is 204 PUT /network-interfaces/eth0 \
		'{"iface_id":"eth0","host_dev_name":"lulltap0"}'
	holder=$pid
	start_lulld tap-second
	check "a busy TAP is refused" api_is 400 PUT /network-interfaces/eth0 \
		'{"iface_id":"eth0","host_dev_name":"lulltap0"}'
	case $answer in
	*"Open tap device failed"*lulltap0*) ok "and the answer names it" ;;
	*) bad "the answer does not name it: $answer" ;;
	esac
	check "the second VM is alive" api_is 200 GET /
	kill "$pid" "$holder"
	end_lulld 10
	pid=$holder
	end_lulld 10
	ip link del lulltap0
fi
