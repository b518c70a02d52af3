/*
 * The table of device classes. Constant; any thread.
 */
#include "devices/registry.h"

const struct device_classes device_registry = {
	.block = &virtio_blk_class,
	.net = &virtio_net_class,
	.entropy = &virtio_rng_class,
};
