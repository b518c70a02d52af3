/*
 * Virtio block device: requests of the guest, turned into transfers of an
 * engine (blk_backend.h).
 */
#ifndef LULL_VIRTIO_BLK_H
#define LULL_VIRTIO_BLK_H

#include "devices/virtio/blk_backend.h"
#include "vmm/device.h"

/*
 * Its configuration is a struct drive_config; its backend, made by open() and
 * taken over by create() or by the device's exchange, is a struct blk_backend.
 */
extern const struct device_class virtio_blk_class;

#endif
