/*
 * The Linux boot protocol (Documentation/x86/boot.rst of the kernel): bzImage
 * files, and the zero page for the 64-bit entry. Threads: main.
 */
#ifndef LULL_ARCH_X86_BOOT_LINUX_H
#define LULL_ARCH_X86_BOOT_LINUX_H

#include <asm/bootparam.h>
#include <stdint.h>

#include "arch-x86/boot.h"

/* A kernel in guest memory, ready for the 64-bit entry. */
struct boot_linux_kernel {
	struct setup_header header; /* as in the file; of our making for an ELF file */
	uint64_t entry;
	uint64_t end;         /* what it needs of memory ends here */
	uint64_t initrd_ceiling;
};

/* Loads a bzImage. */
int boot_linux_load(const struct guest_mem *m, int fd, struct boot_linux_kernel *ret,
		    struct error *err);

/* For an ELF kernel that was loaded up to `end` and has no PVH note. */
void boot_linux_from_elf(uint64_t entry, uint64_t end, struct boot_linux_kernel *ret);

/* Loads the initrd; writes command line, zero page, page tables and GDT. */
int boot_linux_finish(const struct boot_input *in, const struct boot_linux_kernel *kernel,
		      struct boot_start *ret, struct error *err);

#endif
