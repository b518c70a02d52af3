/*
 * The io_uring engine of a drive: one ring each, its completions announced on
 * an eventfd of the device's loop.
 */
#ifndef LULL_VIRTIO_BLK_URING_H
#define LULL_VIRTIO_BLK_URING_H

#include "devices/virtio/blk_backend.h"
#include "devices/virtio/blk_file.h"

/*
 * Makes the ring, restricted to what a drive needs of it. -errno if the host
 * has no io_uring for us; then `f` is still the caller's. Main thread.
 */
int blk_uring_backend_new(struct blk_file *f, struct blk_backend **ret);

#endif
