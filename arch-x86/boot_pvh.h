/*
 * The PVH start (Xen's "x86/HVM direct boot ABI"): an ELF kernel is entered in
 * 32-bit protected mode with EBX pointing at a start_info. Threads: main.
 */
#ifndef LULL_ARCH_X86_BOOT_PVH_H
#define LULL_ARCH_X86_BOOT_PVH_H

#include <stdint.h>

#include "arch-x86/boot.h"

/* Loads the initrd above `kernel_end`; writes command line, start_info and GDT. */
int boot_pvh_finish(const struct boot_input *in, uint32_t entry, uint64_t kernel_end,
		    struct boot_start *ret, struct error *err);

#endif
