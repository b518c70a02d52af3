/*
 * Virtio entropy device: fills the guest's buffers from the host's generator.
 */
#ifndef LULL_VIRTIO_RNG_H
#define LULL_VIRTIO_RNG_H

#include "vmm/device.h"

/* Its configuration is a struct entropy_config; it has no host side to open. */
extern const struct device_class virtio_rng_class;

#endif
