/*
 * Booting: puts a kernel, an initrd, a command line and the firmware tables
 * into guest memory and says where the first vCPU begins.
 *
 * Threads: main.
 */
#ifndef LULL_ARCH_X86_BOOT_H
#define LULL_ARCH_X86_BOOT_H

#include <stdint.h>

#include "vmm/base/error.h"
#include "vmm/guest_mem.h"

enum boot_protocol {
	BOOT_LINUX64, /* Linux 64-bit protocol: long mode, RSI = zero page */
	BOOT_PVH,     /* PVH: 32-bit protected mode without paging, EBX = start_info */
};

struct boot_start {
	enum boot_protocol protocol;
	uint64_t entry; /* guest physical, and virtual under the identity map */
	uint64_t info;  /* zero page or start_info */
};

struct boot_input {
	const struct guest_mem *mem;
	int kernel_fd;
	int initrd_fd; /* negative: none */
	const char *cmdline;
	uint64_t rsdp;
};

#define BOOT_INITRD_ERROR "Error with initrd initialization: "

/*
 * An ELF file is started by PVH if it has the note and by the 64-bit protocol
 * if not; anything else must be a bzImage. Errors are "kernel: ...",
 * "initrd: ..." or "boot_args: ..."; of a file that cannot be loaded, behind the
 * words by which clients of Firecracker know them.
 */
int boot_kernel(const struct boot_input *in, struct boot_start *ret, struct error *err);

#endif
