/*
 * Guest memory: where the guest's RAM lies in its physical address space and
 * in ours, and the only door to it.
 *
 * The map is fixed once the VM is built, so any thread reads it without a
 * lock. Guest RAM may change under every access: what is copied in is copied
 * once and the copy is checked; nothing is parsed in place. An address that is
 * not RAM (a hole, a device, past the end, wrapping) is -EFAULT everywhere.
 */
#ifndef LULL_GUEST_MEM_H
#define LULL_GUEST_MEM_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "vmm/base/error.h"
#include "vmm/config.h"
#include "vmm/limits.h"

struct guest_mem_region {
	uint64_t gpa;  /* first guest physical address */
	uint64_t size; /* bytes */
	uint8_t *hva;  /* where it is mapped here */
	int fd;        /* memfd behind it; -EBADF for anonymous memory */
};

struct guest_mem {
	struct guest_mem_region regions[LIMIT_MEM_REGIONS]; /* ascending gpa, disjoint */
	uint32_t count;
};

/* One range of guest physical addresses that shall be RAM. */
struct guest_mem_range {
	uint64_t gpa;
	uint64_t size;
};

/*
 * Maps RAM for `ranges` (page-aligned, ascending, disjoint). HUGE_PAGES_2M takes
 * hugetlbfs pages and reserves them; otherwise memory is anonymous, private
 * and asks for transparent huge pages; the host address is congruent to the
 * guest address modulo 2 MiB. With `shared` the memory is a sealed memfd.
 * Each mapping has an inaccessible guard page on both sides. Main thread.
 */
int guest_mem_init(struct guest_mem *m, const struct guest_mem_range *ranges, uint32_t count,
		   enum huge_pages pages, bool shared, struct error *err);
void guest_mem_fini(struct guest_mem *m);

uint64_t guest_mem_bytes(const struct guest_mem *m);

/*
 * The host address of [gpa, gpa + len), which must lie in one region; NULL if
 * it does not or if len is 0. For bytes that are handed to the kernel (iovec)
 * and for rings that are accessed through the atomics below, never for a
 * structure that is parsed in place.
 */
void *guest_mem_span(const struct guest_mem *m, uint64_t gpa, uint64_t len);

/* Copies between guest RAM and `buf`; the range may cross adjoining regions. */
int guest_mem_copy_in(const struct guest_mem *m, uint64_t gpa, void *buf, size_t len);
int guest_mem_copy_out(const struct guest_mem *m, uint64_t gpa, const void *buf, size_t len);
int guest_mem_fill(const struct guest_mem *m, uint64_t gpa, uint8_t byte, size_t len);

/*
 * Appends the host ranges of [gpa, gpa + len) to iov[*n..max). -EFAULT if a
 * byte is not RAM, -ENOSPC if `max` is too small, -EINVAL for len 0.
 */
int guest_mem_iov(const struct guest_mem *m, uint64_t gpa, uint64_t len, struct iovec *iov,
		  size_t max, size_t *n);

/* Reads `len` bytes of a file at `offset` straight into guest RAM. */
int guest_mem_read_file(const struct guest_mem *m, uint64_t gpa, int fd, uint64_t offset,
			uint64_t len);

/*
 * Single accesses to ring words shared with the guest (little-endian in guest
 * RAM), through a span that was checked. Aligned to their size.
 */
static inline uint16_t guest_load_acquire16(const void *p)
{
	return le16toh(__atomic_load_n((const uint16_t *)p, __ATOMIC_ACQUIRE));
}

static inline uint16_t guest_load16(const void *p)
{
	return le16toh(__atomic_load_n((const uint16_t *)p, __ATOMIC_RELAXED));
}

static inline void guest_store16(void *p, uint16_t v)
{
	__atomic_store_n((uint16_t *)p, htole16(v), __ATOMIC_RELAXED);
}

static inline void guest_store_release16(void *p, uint16_t v)
{
	__atomic_store_n((uint16_t *)p, htole16(v), __ATOMIC_RELEASE);
}

static inline void guest_store32(void *p, uint32_t v)
{
	__atomic_store_n((uint32_t *)p, htole32(v), __ATOMIC_RELAXED);
}

#endif
