/*
 * Boot segments. Threads: any. Locks: none.
 */
#include "arch-x86/gdt.h"

#include <endian.h>

#include "arch-x86/layout.h"

/* Segment types (Intel SDM volume 3A, 3.4.5.1 and 3.5) */
#define TYPE_CODE_READ_ACCESSED 0xB
#define TYPE_DATA_WRITE_ACCESSED 0x3
#define TYPE_TSS_BUSY 0xB

struct kvm_segment gdt_code(int long_mode)
{
	return (struct kvm_segment){
		.limit = 0xFFFFFFFF,
		.selector = GDT_CODE,
		.type = TYPE_CODE_READ_ACCESSED,
		.present = 1,
		.s = 1,
		.g = 1,
		.l = long_mode ? 1 : 0,
		.db = long_mode ? 0 : 1,
	};
}

struct kvm_segment gdt_data(void)
{
	return (struct kvm_segment){
		.limit = 0xFFFFFFFF,
		.selector = GDT_DATA,
		.type = TYPE_DATA_WRITE_ACCESSED,
		.present = 1,
		.s = 1,
		.g = 1,
		.db = 1,
	};
}

struct kvm_segment gdt_tss(void)
{
	return (struct kvm_segment){
		.limit = 0x67,
		.selector = GDT_TSS,
		.type = TYPE_TSS_BUSY,
		.present = 1,
	};
}

static uint64_t descriptor(struct kvm_segment s)
{
	uint64_t limit = s.g ? s.limit >> 12 : s.limit;

	return htole64((limit & 0xFFFF) | (s.base & 0xFFFFFF) << 16 | (uint64_t)s.type << 40 |
		       (uint64_t)s.s << 44 | (uint64_t)s.dpl << 45 | (uint64_t)s.present << 47 |
		       (limit >> 16 & 0xF) << 48 | (uint64_t)s.l << 53 | (uint64_t)s.db << 54 |
		       (uint64_t)s.g << 55 | (s.base >> 24 & 0xFF) << 56);
}

int gdt_write(const struct guest_mem *m, int long_mode)
{
	uint64_t gdt[GDT_ENTRIES] = { 0 };

	gdt[GDT_CODE / 8] = descriptor(gdt_code(long_mode));
	gdt[GDT_DATA / 8] = descriptor(gdt_data());
	gdt[GDT_TSS / 8] = descriptor(gdt_tss());
	return guest_mem_copy_out(m, LAYOUT_GDT, gdt, sizeof(gdt));
}
