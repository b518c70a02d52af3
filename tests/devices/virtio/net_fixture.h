/* A network device over a socket in a TAP's place, and frames both ways. */
#ifndef LULL_TEST_NET_FIXTURE_H
#define LULL_TEST_NET_FIXTURE_H

#include <errno.h>
#include <linux/virtio_net.h>
#include <string.h>

#include "devices/virtio/tap.h"
#include "tests/devices/virtio/ring_rig.h"
#include "vmm/config.h"

#define RX 0
#define TX 1
#define HDR TAP_HEADER_BYTES
#define NF(bit) (1ull << VIRTIO_NET_F_##bit)

struct net_fixture {
	struct rig *r;
	int host; /* the other end of the "wire" */
};

void net_config(struct net_config *c);
struct net_fixture *net_fixture_new(const struct net_config *c);
/* cmocka set-up: not mergeable; mergeable */
int net_setup(void **state);
int net_setup_mergeable(void **state);
int net_teardown(void **state);

/* Makes a receive buffer of one descriptor available, without a kick. */
void rx_buffer(struct net_fixture *f, uint16_t head, uint64_t gpa, uint32_t len);
/* The host sends a frame of `len` bytes of `fill`, behind a zero header. */
void host_send(struct net_fixture *f, uint8_t fill, size_t len);
/* What the host got: bytes of the frame without header, or -EAGAIN. */
int host_receive(struct net_fixture *f, uint8_t *frame, size_t size);
/* The guest sends one descriptor at DATA of header and `len` bytes of `fill`. */
void guest_send(struct net_fixture *f, uint8_t fill, uint32_t len);

#endif
