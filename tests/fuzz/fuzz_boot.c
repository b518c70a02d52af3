/*
 * Arbitrary bytes as a kernel file: bzImage and ELF headers, program headers,
 * notes. Whatever is accepted must start inside guest RAM, at or above 1 MiB.
 *
 * Input: one byte of options (bit 0: there is an initrd), then the file.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch-x86/boot.h"
#include "arch-x86/layout.h"
#include "vmm/base/bits.h"
#include "vmm/base/fd.h"

#define RAM (32 * MIB)
#define RSDP 0xE0000
#define INITRD_BYTES 5000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		__builtin_trap();
}

/* Made once: what one input leaves in it does not change what the next one does. */
static const struct guest_mem *memory(void)
{
	static const struct guest_mem_range range = { .gpa = 0, .size = RAM };
	static struct guest_mem m;
	struct error err;

	if (!m.count)
		require(guest_mem_init(&m, &range, 1, HUGE_PAGES_NONE, false, &err) == 0);
	return &m;
}

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	require(fd >= 0 && fd_write_all(fd, data, size) == 0);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t initrd[INITRD_BYTES] = { 'i' };
	struct boot_input in = { .mem = memory(), .initrd_fd = -1, .cmdline = "quiet", .rsdp = RSDP };
	struct error err = { 0 };
	struct boot_start start;

	if (size == 0)
		return 0;
	in.kernel_fd = file_of(data + 1, size - 1);
	if (data[0] & 1)
		in.initrd_fd = file_of(initrd, sizeof(initrd));
	if (boot_kernel(&in, &start, &err) == 0) {
		require(start.entry >= LAYOUT_KERNEL && start.entry < RAM);
		require(start.info < LAYOUT_EBDA);
	} else {
		require(err.code < 0 && err.text[0]);
	}
	close(in.kernel_fd);
	if (in.initrd_fd >= 0)
		close(in.initrd_fd);
	return 0;
}
