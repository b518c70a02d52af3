/*
 * Guest memory. Threads: built and freed on the main thread, read by all.
 * Locks: none, the map does not change while the VM lives.
 * Not here: KVM's slots (vm.c), the guest's memory map (arch layout).
 */
#include "vmm/guest_mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm/base/bits.h"
#include "vmm/base/cleanup.h"

#define PAGE_BYTES 4096ull
#define HUGE_BYTES (2 * MIB)

#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21u << 26)
#endif

static int memfd_new(uint64_t size, bool huge, struct error *err)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	_cleanup_close_ int fd = -EBADF;

	if (huge)
		flags |= MFD_HUGETLB | MFD_HUGE_2MB;
	fd = memfd_create("lull-guest-ram", flags);
	if (fd < 0)
		return error_set_errno(err, -errno, "guest memory: cannot create a memfd%s",
				       huge ? " of 2 MiB huge pages" : "");
	if (ftruncate(fd, (off_t)size) < 0)
		return error_set_errno(err, -errno, "guest memory: cannot size a memfd");
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return error_set_errno(err, -errno, "guest memory: cannot seal a memfd");
	return fd_take(&fd);
}

/*
 * An inaccessible reservation around the region, so that its guards are ours:
 * the RAM starts where the host address equals the guest address modulo 2 MiB.
 */
static uint8_t *reserve(uint64_t gpa, uint64_t size)
{
	uint64_t total = size + 2 * HUGE_BYTES;
	uint8_t *base = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			     -1, 0);
	uint64_t start;

	if (base == MAP_FAILED)
		return NULL;
	start = align_up((uint64_t)(uintptr_t)base + PAGE_BYTES, HUGE_BYTES) +
		(gpa & (HUGE_BYTES - 1));
	if (start - HUGE_BYTES >= (uint64_t)(uintptr_t)base + PAGE_BYTES)
		start -= HUGE_BYTES;
	/* Give back all but one guard page on each side. */
	if (start - PAGE_BYTES > (uint64_t)(uintptr_t)base)
		munmap(base, start - PAGE_BYTES - (uint64_t)(uintptr_t)base);
	munmap((void *)(uintptr_t)(start + size + PAGE_BYTES),
	       (uint64_t)(uintptr_t)base + total - (start + size + PAGE_BYTES));
	return (uint8_t *)(uintptr_t)start;
}

static void region_unmap(struct guest_mem_region *r)
{
	if (r->hva)
		munmap(r->hva - PAGE_BYTES, r->size + 2 * PAGE_BYTES);
	if (r->fd >= 0)
		close(r->fd);
	r->hva = NULL;
	r->fd = -EBADF;
}

static int region_map(struct guest_mem_region *r, enum huge_pages pages, bool shared,
		      struct error *err)
{
	bool huge = pages == HUGE_PAGES_2M;
	int flags = MAP_FIXED | (shared || huge ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);

	if (shared || huge) {
		r->fd = memfd_new(r->size, huge, err);
		if (r->fd < 0)
			return r->fd;
	} else {
		flags |= MAP_NORESERVE;
	}
	r->hva = reserve(r->gpa, r->size);
	if (!r->hva || mmap(r->hva, r->size, PROT_READ | PROT_WRITE, flags, r->fd < 0 ? -1 : r->fd,
			    0) == MAP_FAILED)
		return error_set_errno(err, -errno,
				       "Cannot create mmap region of %llu MiB of guest memory%s",
				       (unsigned long long)(r->size / MIB),
				       huge ? " in 2 MiB huge pages" : "");
	/* Advice: a host without these still runs the guest. */
	if (!huge)
		(void)madvise(r->hva, r->size, MADV_HUGEPAGE);
	(void)madvise(r->hva, r->size, MADV_DONTDUMP);
	(void)madvise(r->hva, r->size, MADV_DONTFORK);
	return 0;
}

int guest_mem_init(struct guest_mem *m, const struct guest_mem_range *ranges, uint32_t count,
		   enum huge_pages pages, bool shared, struct error *err)
{
	uint32_t i;
	int ret;

	memset(m, 0, sizeof(*m));
	if (count > LIMIT_MEM_REGIONS)
		return error_set(err, -EINVAL, "guest memory: more than %d regions",
				 LIMIT_MEM_REGIONS);
	for (i = 0; i < count; i++) {
		struct guest_mem_region *r = &m->regions[i];

		r->gpa = ranges[i].gpa;
		r->size = ranges[i].size;
		r->fd = -EBADF;
		m->count = i + 1;
		ret = region_map(r, pages, shared, err);
		if (ret < 0) {
			guest_mem_fini(m);
			return ret;
		}
	}
	return 0;
}

void guest_mem_fini(struct guest_mem *m)
{
	uint32_t i;

	for (i = 0; i < m->count; i++)
		region_unmap(&m->regions[i]);
	m->count = 0;
}

uint64_t guest_mem_bytes(const struct guest_mem *m)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < m->count; i++)
		bytes += m->regions[i].size;
	return bytes;
}

static const struct guest_mem_region *find(const struct guest_mem *m, uint64_t gpa)
{
	uint32_t i;

	for (i = 0; i < m->count; i++) {
		const struct guest_mem_region *r = &m->regions[i];

		if (gpa >= r->gpa && gpa - r->gpa < r->size)
			return r;
	}
	return NULL;
}

void *guest_mem_span(const struct guest_mem *m, uint64_t gpa, uint64_t len)
{
	const struct guest_mem_region *r = find(m, gpa);

	if (!r || len == 0 || len > r->size - (gpa - r->gpa))
		return NULL;
	return r->hva + (gpa - r->gpa);
}

/*
 * The host range that starts at `gpa`, `len` bytes at most; of length 0 where
 * there is no RAM. Every multi-byte access below is a walk over such pieces.
 */
static struct iovec piece(const struct guest_mem *m, uint64_t gpa, uint64_t len)
{
	const struct guest_mem_region *r = find(m, gpa);
	uint64_t left;

	if (!r)
		return (struct iovec){ 0 };
	left = r->size - (gpa - r->gpa);
	return (struct iovec){
		.iov_base = r->hva + (gpa - r->gpa),
		.iov_len = len < left ? len : left,
	};
}

/* True if every byte of the range is RAM; nothing is touched. */
static bool range_is_ram(const struct guest_mem *m, uint64_t gpa, uint64_t len)
{
	uint64_t end;

	if (__builtin_add_overflow(gpa, len, &end))
		return false;
	while (len) {
		struct iovec p = piece(m, gpa, len);

		if (p.iov_len == 0)
			return false;
		gpa += p.iov_len;
		len -= p.iov_len;
	}
	return true;
}

int guest_mem_copy_in(const struct guest_mem *m, uint64_t gpa, void *buf, size_t len)
{
	uint8_t *out = buf;

	if (!range_is_ram(m, gpa, len))
		return -EFAULT;
	while (len) {
		struct iovec p = piece(m, gpa, len);

		memcpy(out, p.iov_base, p.iov_len);
		out += p.iov_len;
		gpa += p.iov_len;
		len -= p.iov_len;
	}
	return 0;
}

int guest_mem_copy_out(const struct guest_mem *m, uint64_t gpa, const void *buf, size_t len)
{
	const uint8_t *in = buf;

	if (!range_is_ram(m, gpa, len))
		return -EFAULT;
	while (len) {
		struct iovec p = piece(m, gpa, len);

		memcpy(p.iov_base, in, p.iov_len);
		in += p.iov_len;
		gpa += p.iov_len;
		len -= p.iov_len;
	}
	return 0;
}

int guest_mem_fill(const struct guest_mem *m, uint64_t gpa, uint8_t byte, size_t len)
{
	if (!range_is_ram(m, gpa, len))
		return -EFAULT;
	while (len) {
		struct iovec p = piece(m, gpa, len);

		memset(p.iov_base, byte, p.iov_len);
		gpa += p.iov_len;
		len -= p.iov_len;
	}
	return 0;
}

int guest_mem_iov(const struct guest_mem *m, uint64_t gpa, uint64_t len, struct iovec *iov,
		  size_t max, size_t *n)
{
	size_t used = *n;

	if (len == 0)
		return -EINVAL;
	if (!range_is_ram(m, gpa, len))
		return -EFAULT;
	while (len) {
		if (used == max)
			return -ENOSPC;
		iov[used] = piece(m, gpa, len);
		gpa += iov[used].iov_len;
		len -= iov[used].iov_len;
		used++;
	}
	*n = used;
	return 0;
}

int guest_mem_read_file(const struct guest_mem *m, uint64_t gpa, int fd, uint64_t offset,
			uint64_t len)
{
	if (!range_is_ram(m, gpa, len))
		return -EFAULT;
	while (len) {
		struct iovec p = piece(m, gpa, len);
		ssize_t got = pread(fd, p.iov_base, p.iov_len, (off_t)offset);

		if (got == 0)
			return -ENODATA;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		gpa += (uint64_t)got;
		offset += (uint64_t)got;
		len -= (uint64_t)got;
	}
	return 0;
}
