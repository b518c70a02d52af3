/* A network device over a socket. */
#include "tests/devices/virtio/net_fixture.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "devices/registry.h"

static uint8_t wire[HDR + 70000];

void net_config(struct net_config *c)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };

	memset(c, 0, sizeof(*c));
	memcpy(c->iface_id, "eth0", 5);
	memcpy(c->guest_mac, mac, sizeof(mac));
	c->has_guest_mac = true;
}

struct net_fixture *net_fixture_new(const struct net_config *c)
{
	struct net_fixture *f = calloc(1, sizeof(*f));
	struct error err;
	int fds[2], bytes = 1 << 20;

	assert_non_null(f);
	signal(SIGPIPE, SIG_IGN); /* a TAP raises none */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	f->r = rig_new();
	f->host = fds[1];
	rig_place(f->r, virtio_net_class.create(&f->r->env, c, tap_from_socket(fds[0]), &err));
	return f;
}

static int set_up(void **state, uint64_t features)
{
	struct net_config c;
	struct net_fixture *f;

	net_config(&c);
	f = net_fixture_new(&c);
	rig_boot(f->r, F_VERSION_1 | features, 16);
	*state = f;
	return 0;
}

int net_setup(void **state)
{
	return set_up(state, F_EVENT_IDX);
}

int net_setup_mergeable(void **state)
{
	return set_up(state, F_INDIRECT | NF(MRG_RXBUF));
}

int net_teardown(void **state)
{
	struct net_fixture *f = *state;

	rig_free(f->r);
	close(f->host);
	free(f);
	return 0;
}

void rx_buffer(struct net_fixture *f, uint16_t head, uint64_t gpa, uint32_t len)
{
	rig_desc(f->r, RX, head, gpa, len, D_WRITE, 0);
	rig_avail(f->r, RX, head);
}

void host_send(struct net_fixture *f, uint8_t fill, size_t len)
{
	memset(wire, 0, HDR);
	memset(wire + HDR, fill, len);
	assert_int_equal(send(f->host, wire, HDR + len, 0), HDR + len);
}

int host_receive(struct net_fixture *f, uint8_t *frame, size_t size)
{
	ssize_t n = recv(f->host, wire, sizeof(wire), 0);

	if (n < 0)
		return -errno;
	assert_true(n >= HDR && (size_t)n - HDR <= size);
	memcpy(frame, wire + HDR, (size_t)n - HDR);
	return (int)n - HDR;
}

void guest_send(struct net_fixture *f, uint8_t fill, uint32_t len)
{
	memset(rig_ram(f->r, DATA), 0, HDR);
	if (len)
		memset(rig_ram(f->r, DATA + HDR), fill, len);
	rig_desc(f->r, TX, 0, DATA, HDR + len, 0, 0);
	rig_submit(f->r, TX, 0);
}
