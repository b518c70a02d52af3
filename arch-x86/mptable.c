/*
 * MP table. Threads: main. Locks: none.
 *
 * The one KiB that guests search has room for 32 processors and a line for
 * every pin of the IOAPIC; more is an error, not a longer table.
 */
#include "arch-x86/mptable.h"

#include <errno.h>
#include <string.h>

#include "arch-x86/checksum.h"
#include "arch-x86/layout.h"
#include "vmm/base/bits.h"
#include "vmm/base/buf.h"

#define POINTER_SIZE 16u
#define HEADER_SIZE 44u
#define SPEC_REVISION 4 /* 1.4 */
#define LAPIC_VERSION 0x14
#define IOAPIC_VERSION 0x11
#define IOAPIC_ID 0 /* as KVM's has it */
#define ISA_BUS 0
#define ALL_APICS 0xFF

enum { ENTRY_PROCESSOR, ENTRY_BUS, ENTRY_IOAPIC, ENTRY_INTERRUPT, ENTRY_LOCAL_INTERRUPT };
enum { INTERRUPT_VECTORED, INTERRUPT_NMI, INTERRUPT_SMI, INTERRUPT_EXTINT };
#define PROCESSOR_ENABLED BIT(0)
#define PROCESSOR_BOOT BIT(1)
#define IOAPIC_ENABLED BIT(0)
#define FLAGS_CONFORM 0
#define FLAGS_ACTIVE_HIGH 1
#define FLAGS_EDGE (1 << 2)

/* The table as it grows. */
struct mp {
	struct buf bytes;
	uint16_t entries;
};

static void put_entry(struct mp *mp, const uint8_t *entry, size_t n)
{
	(void)buf_append(&mp->bytes, entry, n); /* remembered by the buffer */
	mp->entries++;
}

static void put_processor(struct mp *mp, uint32_t apic_id, bool boot)
{
	uint8_t e[20] = {
		ENTRY_PROCESSOR, (uint8_t)apic_id, LAPIC_VERSION,
		(uint8_t)(PROCESSOR_ENABLED | (boot ? PROCESSOR_BOOT : 0)),
	};

	store_le32(e + 4, 0x600);      /* signature: family 6 */
	store_le32(e + 8, 0x201);      /* features: FPU, local APIC */
	put_entry(mp, e, sizeof(e));
}

static void put_bus(struct mp *mp)
{
	static const uint8_t e[8] = { ENTRY_BUS, ISA_BUS, 'I', 'S', 'A', ' ', ' ', ' ' };

	put_entry(mp, e, sizeof(e));
}

static void put_ioapic(struct mp *mp)
{
	uint8_t e[8] = { ENTRY_IOAPIC, IOAPIC_ID, IOAPIC_VERSION, IOAPIC_ENABLED };

	store_le32(e + 4, LAYOUT_IOAPIC);
	put_entry(mp, e, sizeof(e));
}

static void put_line(struct mp *mp, uint32_t gsi)
{
	uint8_t e[8] = { ENTRY_INTERRUPT, INTERRUPT_VECTORED };

	store_le16(e + 2, FLAGS_ACTIVE_HIGH | FLAGS_EDGE);
	e[4] = ISA_BUS;
	e[5] = (uint8_t)gsi; /* line of the bus */
	e[6] = IOAPIC_ID;
	e[7] = (uint8_t)gsi; /* pin */
	put_entry(mp, e, sizeof(e));
}

static void put_local(struct mp *mp, uint8_t type, uint8_t apic_id, uint8_t lint)
{
	uint8_t e[8] = { ENTRY_LOCAL_INTERRUPT, type };

	store_le16(e + 2, FLAGS_CONFORM);
	e[4] = ISA_BUS;
	e[5] = 0;
	e[6] = apic_id;
	e[7] = lint;
	put_entry(mp, e, sizeof(e));
}

static void store_pointer(uint8_t *p)
{
	memcpy(p, "_MP_", 4);
	store_le32(p + 4, (uint32_t)LAYOUT_EBDA + POINTER_SIZE);
	p[8] = 1; /* length in units of 16 bytes */
	p[9] = SPEC_REVISION;
	p[10] = table_checksum(p, POINTER_SIZE);
}

static void store_header(uint8_t *p, size_t size, uint16_t entries)
{
	memcpy(p, "PCMP", 4);
	store_le16(p + 4, (uint16_t)size);
	p[6] = SPEC_REVISION;
	memcpy(p + 8, "LULL    ", 8);
	memcpy(p + 16, "VM          ", 12);
	store_le16(p + 34, entries);
	store_le32(p + 36, LAYOUT_LAPIC);
	p[7] = table_checksum(p, size);
}

static void build(struct mp *mp, const struct topology *t, const struct board_slot *slots,
		  uint32_t slot_count)
{
	static const uint8_t head[POINTER_SIZE + HEADER_SIZE];
	static const uint8_t fixed[] = { LAYOUT_GSI_PIT, LAYOUT_GSI_I8042, LAYOUT_GSI_SERIAL,
					 LAYOUT_GSI_RTC };
	uint32_t i;

	(void)buf_append(&mp->bytes, head, sizeof(head));
	for (i = 0; i < topology_cpu_count(t); i++)
		put_processor(mp, topology_apic_id(t, i), i == 0);
	put_bus(mp);
	put_ioapic(mp);
	for (i = 0; i < sizeof(fixed); i++)
		put_line(mp, fixed[i]);
	for (i = 0; i < slot_count; i++)
		put_line(mp, slots[i].gsi);
	put_local(mp, INTERRUPT_EXTINT, (uint8_t)topology_apic_id(t, 0), 0);
	put_local(mp, INTERRUPT_NMI, ALL_APICS, 1);
}

int mptable_write(const struct guest_mem *m, const struct topology *t,
		  const struct board_slot *slots, uint32_t slot_count, struct error *err)
{
	struct mp mp = { .entries = 0 };
	uint8_t *p;
	int ret;

	if (topology_max_apic_id(t) >= ALL_APICS)
		return error_set(err, -ENOSPC, "MP table: APIC id %u, at most 254",
				 topology_max_apic_id(t));
	buf_init(&mp.bytes, LAYOUT_EBDA_BYTES);
	build(&mp, t, slots, slot_count);
	if (buf_failed(&mp.bytes)) {
		ret = error_set(err, -ENOSPC, "MP table: does not fit into one KiB");
	} else {
		p = (uint8_t *)mp.bytes.data;
		store_pointer(p);
		store_header(p + POINTER_SIZE, mp.bytes.len - POINTER_SIZE, mp.entries);
		ret = guest_mem_copy_out(m, LAYOUT_EBDA, mp.bytes.data, mp.bytes.len);
		if (ret < 0)
			error_set(err, ret, "MP table: guest memory is too small for it");
	}
	buf_fini(&mp.bytes);
	return ret;
}
