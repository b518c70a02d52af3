/*
 * Walking over I/O vectors of guest memory: copying out of them and into them,
 * skipping and cutting. Pure functions; any thread.
 */
#ifndef LULL_VIRTIO_IOV_H
#define LULL_VIRTIO_IOV_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

uint64_t iov_bytes(const struct iovec *iov, uint32_t count);

/* Copies up to `len` bytes at `offset` of the vector; returns how many there were. */
size_t iov_read(const struct iovec *iov, uint32_t count, uint64_t offset, void *buf, size_t len);
size_t iov_write(const struct iovec *iov, uint32_t count, uint64_t offset, const void *buf,
		 size_t len);

/* Takes `bytes` off the front; the first element left is changed in place. */
void iov_skip(struct iovec **iov, uint32_t *count, uint64_t bytes);
/* Cuts the vector so that it holds at most `bytes`. */
void iov_cut(struct iovec *iov, uint32_t *count, uint64_t bytes);

#endif
