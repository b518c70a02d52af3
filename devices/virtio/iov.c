/*
 * I/O vectors. Threads: any. Locks: none. Elements of length 0 are harmless.
 */
#include "devices/virtio/iov.h"

#include <string.h>

uint64_t iov_bytes(const struct iovec *iov, uint32_t count)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

/* The piece of element `e` that starts at `*offset`; counts *offset down past others. */
static size_t piece(const struct iovec *e, uint64_t *offset, size_t len, uint8_t **ret_at)
{
	size_t n;

	if (*offset >= e->iov_len) {
		*offset -= e->iov_len;
		return 0;
	}
	n = e->iov_len - (size_t)*offset;
	*ret_at = (uint8_t *)e->iov_base + *offset;
	*offset = 0;
	return n < len ? n : len;
}

size_t iov_read(const struct iovec *iov, uint32_t count, uint64_t offset, void *buf, size_t len)
{
	size_t done = 0;
	uint8_t *at;
	uint32_t i;

	for (i = 0; i < count && done < len; i++) {
		size_t n = piece(&iov[i], &offset, len - done, &at);

		if (n)
			memcpy((uint8_t *)buf + done, at, n);
		done += n;
	}
	/* The guest may change its bytes at any time: nothing reads them again. */
	__asm__ volatile("" : : : "memory");
	return done;
}

size_t iov_write(const struct iovec *iov, uint32_t count, uint64_t offset, const void *buf,
		 size_t len)
{
	size_t done = 0;
	uint8_t *at;
	uint32_t i;

	for (i = 0; i < count && done < len; i++) {
		size_t n = piece(&iov[i], &offset, len - done, &at);

		if (n)
			memcpy(at, (const uint8_t *)buf + done, n);
		done += n;
	}
	return done;
}

void iov_skip(struct iovec **iov, uint32_t *count, uint64_t bytes)
{
	while (*count && bytes >= (*iov)->iov_len) {
		bytes -= (*iov)->iov_len;
		(*iov)++;
		(*count)--;
	}
	if (*count) {
		(*iov)->iov_base = (uint8_t *)(*iov)->iov_base + bytes;
		(*iov)->iov_len -= (size_t)bytes;
	}
}

void iov_cut(struct iovec *iov, uint32_t *count, uint64_t bytes)
{
	uint32_t i;

	for (i = 0; i < *count && bytes; i++) {
		if (iov[i].iov_len > bytes)
			iov[i].iov_len = (size_t)bytes;
		bytes -= iov[i].iov_len;
	}
	*count = i;
}
