/*
 * The host side of a network device: a TAP interface or a macvtap node, which
 * passes Ethernet frames behind a virtio-net header of 12 bytes.
 */
#ifndef LULL_VIRTIO_TAP_H
#define LULL_VIRTIO_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/base/error.h"

#define TAP_HEADER_BYTES 12 /* struct virtio_net_hdr_v1 */

struct tap {
	int fd;     /* non-blocking */
	bool plain; /* a socket in its place: there are no offloads to set */
};

/* What the other side may leave undone in frames for the guest. */
struct tap_offloads {
	bool csum;
	bool tso4;
	bool tso6;
};

/*
 * Opens the interface called `name`, which must exist and be free, or the
 * macvtap node at the path `name` (it has a '/'). Main thread.
 */
int tap_open(const char *name, struct tap **ret, struct error *err);
/* A TAP over a socket that keeps message boundaries; owns `fd`. NULL without memory. */
struct tap *tap_from_socket(int fd);
/* NULL allowed. */
struct tap *tap_close(struct tap *tap);

int tap_set_offloads(struct tap *tap, const struct tap_offloads *o);

#endif
