/*
 * The kinds of device that clients configure, in one table for main.c.
 */
#ifndef LULL_REGISTRY_H
#define LULL_REGISTRY_H

#include "vmm/device.h"

extern const struct device_class virtio_blk_class; /* struct drive_config */
extern const struct device_class virtio_net_class; /* struct net_config */
extern const struct device_class virtio_rng_class; /* struct entropy_config */

extern const struct device_classes device_registry;

#endif
