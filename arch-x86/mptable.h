/*
 * MP table (Intel MultiProcessor specification 1.4) for guests that do not use
 * ACPI: processors, the IOAPIC, and the lines that are in use. Threads: main.
 */
#ifndef LULL_ARCH_X86_MPTABLE_H
#define LULL_ARCH_X86_MPTABLE_H

#include <stdint.h>

#include "arch-x86/board.h"
#include "vmm/base/error.h"
#include "vmm/guest_mem.h"
#include "vmm/topology.h"

/* Puts floating pointer and table into the last KiB of base memory. */
int mptable_write(const struct guest_mem *m, const struct topology *t,
		  const struct board_slot *slots, uint32_t slot_count, struct error *err);

#endif
