/*
 * ACPI tables: RSDP, XSDT, FADT of the hardware-reduced kind, MADT and DSDT;
 * SRAT and SLIT if the machine has NUMA nodes. Written from the topology and the board's rows. Threads: main.
 */
#ifndef LULL_ARCH_X86_ACPI_H
#define LULL_ARCH_X86_ACPI_H

#include <stdint.h>

#include "arch-x86/board.h"
#include "vmm/base/buf.h"
#include "vmm/base/error.h"
#include "vmm/guest_mem.h"
#include "vmm/topology.h"

/* Written to the sleep control register for S5, and to the reset register. */
#define ACPI_S5_SLEEP_TYPE 5
#define ACPI_RESET_VALUE 1
/* Indexes of the clock's bytes that guests find here only. */
#define ACPI_RTC_CENTURY 0x32
#define ACPI_RTC_DAY_ALARM 0x7d
#define ACPI_RTC_MONTH_ALARM 0x7e

struct acpi_config {
	const struct topology *topology;
	const struct guest_mem_range *ram; /* in ascending order; of NUMA machines only */
	uint32_t ram_count;
	const struct board_slot *slots; /* of the virtio devices */
	uint32_t slot_count;
};

enum acpi_table {
	ACPI_RSDP,
	ACPI_DSDT,
	ACPI_FADT,
	ACPI_MADT,
	ACPI_SRAT, /* of size 0 without NUMA, as is */
	ACPI_SLIT,
	ACPI_XSDT,
	ACPI_TABLES,
};

/* All tables as they will lie in guest memory from LAYOUT_ACPI on. */
struct acpi_image {
	struct buf bytes;
	struct {
		uint32_t offset;
		uint32_t size;
	} tables[ACPI_TABLES];
};

/* -ENOSPC if they are larger than their place. acpi_image_fini() in any case. */
int acpi_image_init(struct acpi_image *image, const struct acpi_config *c, struct error *err);
void acpi_image_fini(struct acpi_image *image);

/* Builds them and puts them into guest memory. */
int acpi_write(const struct guest_mem *m, const struct acpi_config *c, uint64_t *ret_rsdp,
	       struct error *err);

#endif
