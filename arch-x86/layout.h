/*
 * Every fixed address, port and line of the x86 machine.
 *
 *	guest physical memory				low memory at start
 *	                                                0x000000 .------------------.
 *	  0 .-----------------------.                   0x000500 | GDT              |
 *	    | RAM, below 3 GiB      |                   0x006000 | PVH start_info,  |
 *	    |                       |                            | module list      |
 *	3 GiB ----------------------+ 0xC0000000        0x007000 | zero page, or    |
 *	    | boot timer            |                            | PVH memory map   |
 *	    +-----------------------+ 0xC0001000        0x008FF0 | stack (downward) |
 *	    | virtio-mmio, 4 KiB    |                   0x009000 | page tables      |
 *	    | each                  |                   0x020000 | command line     |
 *	    :   (hole)              :                   0x09FC00 | MP table         |
 *	    | IOAPIC                | 0xFEC00000        0x0A0000 | (reserved)       |
 *	    | local APIC            | 0xFEE00000        0x0E0000 | RSDP, ACPI tables|
 *	    | KVM: identity map,TSS | 0xFFFBC000        0x100000 | kernel           |
 *	4 GiB ----------------------+                            :                  :
 *	    | RAM, the rest         |                            | initrd, at the   |
 *	    '-----------------------'                            '- top of low RAM -'
 *
 * From 0x9FC00 to 1 MiB all is reserved in the memory map that the guest gets.
 */
#ifndef LULL_ARCH_X86_LAYOUT_H
#define LULL_ARCH_X86_LAYOUT_H

/* RAM */
#define LAYOUT_LOW_RAM_END 0xC0000000ull   /* RAM above lies beyond the hole */
#define LAYOUT_HIGH_RAM 0x100000000ull
#define LAYOUT_KERNEL 0x100000ull          /* also the floor of everything that is loaded */
#define LAYOUT_IDENTITY_BYTES 0x40000000ull /* mapped by the first page tables */

/* Low memory, written once before the start */
#define LAYOUT_GDT 0x500ull
#define LAYOUT_PVH_START_INFO 0x6000ull
#define LAYOUT_PVH_MODULES 0x6040ull
#define LAYOUT_PVH_MEMMAP 0x7000ull
#define LAYOUT_ZERO_PAGE 0x7000ull
#define LAYOUT_STACK 0x8FF0ull
#define LAYOUT_PML4 0x9000ull
#define LAYOUT_PDPT 0xA000ull
#define LAYOUT_PD 0xB000ull
#define LAYOUT_CMDLINE 0x20000ull          /* LIMIT_CMDLINE bytes */
#define LAYOUT_EBDA 0x9FC00ull             /* last KiB of base memory: MP table */
#define LAYOUT_EBDA_BYTES 0x400ull
#define LAYOUT_ACPI 0xE0000ull             /* RSDP first: the guest may search for it */
#define LAYOUT_ACPI_BYTES 0x20000ull

/* MMIO */
#define LAYOUT_BOOT_TIMER 0xC0000000ull
#define LAYOUT_BOOT_TIMER_BYTES 0x1000ull
#define LAYOUT_VIRTIO 0xC0001000ull
#define LAYOUT_VIRTIO_BYTES 0x1000ull      /* each */
#define LAYOUT_IOAPIC 0xFEC00000u
#define LAYOUT_LAPIC 0xFEE00000u
#define LAYOUT_KVM_IDENTITY_MAP 0xFFFBC000ull /* one page */
#define LAYOUT_KVM_TSS 0xFFFBD000ull          /* three pages */

/* Ports */
#define LAYOUT_I8042_PORT 0x60
#define LAYOUT_I8042_PORTS 5
#define LAYOUT_RTC_PORT 0x70
#define LAYOUT_RTC_PORTS 2
#define LAYOUT_DELAY_PORT 0x80 /* POST codes; Linux writes to it to pass the time */
#define LAYOUT_SERIAL_PORT 0x3F8
#define LAYOUT_SERIAL_PORTS 8
#define LAYOUT_ACPI_PM_PORT 0x600 /* +0 sleep control, +1 sleep status, +2 reset */
#define LAYOUT_ACPI_PM_PORTS 3

/* Lines (GSIs): pins of the IOAPIC and, below 16, of the PIC; all edge-triggered */
#define LAYOUT_GSI_PIT 0
#define LAYOUT_GSI_I8042 1
#define LAYOUT_GSI_SERIAL 4
#define LAYOUT_GSI_RTC 8
#define LAYOUT_GSI_VIRTIO_FIRST 5
#define LAYOUT_GSI_VIRTIO_LAST 23
/* Devices there are lines for: 5 to 23 but the RTC's. */
#define LAYOUT_VIRTIO_MAX (LAYOUT_GSI_VIRTIO_LAST - LAYOUT_GSI_VIRTIO_FIRST)

#endif
