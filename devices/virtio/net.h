/*
 * Virtio network device over a TAP, with checksum and segmentation offload and
 * mergeable receive buffers.
 */
#ifndef LULL_VIRTIO_NET_H
#define LULL_VIRTIO_NET_H

#include "vmm/device.h"

/*
 * Its configuration is a struct net_config; its backend, made by open() and
 * taken over by create(), is a struct tap.
 */
extern const struct device_class virtio_net_class;

#endif
