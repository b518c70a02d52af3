/*
 * The four segments that every boot protocol starts with, at the selectors
 * that Linux asks for (Documentation/x86/boot.rst: __BOOT_CS 0x10, __BOOT_DS
 * 0x18), as KVM wants them and as they stand in memory.
 */
#ifndef LULL_ARCH_X86_GDT_H
#define LULL_ARCH_X86_GDT_H

#include <linux/kvm.h>
#include <stdint.h>

#include "vmm/guest_mem.h"

#define GDT_CODE 0x10
#define GDT_DATA 0x18
#define GDT_TSS 0x20
#define GDT_ENTRIES 6 /* two empty ones first; a TSS descriptor takes two in long mode */

/* `long_mode` selects 64-bit code; else flat 32-bit code. */
struct kvm_segment gdt_code(int long_mode);
struct kvm_segment gdt_data(void);
struct kvm_segment gdt_tss(void);

/* Puts the table to LAYOUT_GDT, little-endian. */
int gdt_write(const struct guest_mem *m, int long_mode);

#endif
