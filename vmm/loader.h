/*
 * Kernel and initrd files into guest memory: what is the same on every
 * architecture. Files are read, never mapped; every field of a header is
 * checked against the file's size and against guest RAM.
 *
 * Threads: main.
 */
#ifndef LULL_LOADER_H
#define LULL_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/base/error.h"
#include "vmm/guest_mem.h"

struct loader_elf {
	uint64_t entry;     /* e_entry */
	uint64_t low;       /* lowest and first-after-highest address loaded */
	uint64_t high;
	bool has_pvh_entry; /* XEN_ELFNOTE_PHYS32_ENTRY was found */
	uint32_t pvh_entry; /* guest physical */
};

/* The size of a kernel file: not empty, at most LIMIT_KERNEL_BYTES. */
int loader_kernel_size(int fd, uint64_t *ret_size, struct error *err);

/* True if the file starts with the ELF magic. */
bool loader_is_elf(int fd);

/*
 * Loads the PT_LOAD segments of a 64-bit little-endian executable for
 * `machine` (EM_X86_64, EM_AARCH64) at their physical addresses, all of which
 * must be RAM at or above `floor`. Notes that are broken, or of more than 64 KiB,
 * count as none. -EINVAL, -EFAULT, -ENODATA with text.
 */
int loader_elf(const struct guest_mem *m, int fd, uint16_t machine, uint64_t floor,
	       struct loader_elf *ret, struct error *err);

/*
 * Puts the whole file `fd` as high as fits below `ceiling`, page-aligned, at or
 * above `floor`, all in RAM.
 */
int loader_initrd(const struct guest_mem *m, int fd, uint64_t floor, uint64_t ceiling,
		  uint64_t *ret_gpa, uint64_t *ret_size, struct error *err);

/*
 * Printable ASCII, shorter than LIMIT_CMDLINE. Of its characters `added` are not
 * the client's: the error says so.
 */
int loader_check_cmdline(const char *cmdline, size_t added, struct error *err);

#endif
