/*
 * The memory map that the guest is given: RAM, and what of it is taken.
 * Threads: main.
 */
#ifndef LULL_ARCH_X86_E820_H
#define LULL_ARCH_X86_E820_H

#include <stdint.h>

#include "vmm/guest_mem.h"

/* Types of the ACPI specification's system address map interfaces */
enum e820_type { E820_RAM = 1, E820_RESERVED = 2 };

struct e820_entry {
	uint64_t addr;
	uint64_t size;
	enum e820_type type;
};

#define E820_ENTRIES (LIMIT_MEM_REGIONS + 2) /* the first region falls into three parts */

/* Ascending, disjoint, none empty. Returns how many. */
uint32_t e820_build(const struct guest_mem *m, struct e820_entry entries[E820_ENTRIES]);

#endif
