/*
 * ACPI tables (ACPI specification 6.x). Threads: main. Locks: none.
 *
 * Hardware-reduced ACPI: no SCI, no fixed event registers, no PM timer. A
 * guest then needs neither the PIC nor the PIT, which saves it their probing;
 * both are there for guests without ACPI, which find them in the MP table.
 */
#include "arch-x86/acpi.h"

#include <errno.h>
#include <string.h>

#include "arch-x86/aml.h"
#include "arch-x86/checksum.h"
#include "arch-x86/layout.h"
#include "vmm/base/bits.h"

#define TABLE_HEADER 36u
#define TABLE_ALIGN 16u
#define OEM_ID "LULL  "
#define OEM_TABLE_ID "LULLVM  "
#define CREATOR_ID "LULL"

#define RSDP_SIZE 36u
#define RSDP_V1_SIZE 20u

/* FADT, revision 6: offsets of what is not zero */
#define FADT_SIZE 276u
#define FADT_DAY_ALARM 106
#define FADT_MONTH_ALARM 107
#define FADT_CENTURY 108
#define FADT_BOOT_ARCH 109
#define FADT_FLAGS 112
#define FADT_RESET_REG 116
#define FADT_RESET_VALUE 128
#define FADT_X_DSDT 140
#define FADT_SLEEP_CONTROL 244
#define FADT_SLEEP_STATUS 256
#define FADT_HYPERVISOR 268
/* IAPC_BOOT_ARCH; the RTC is there, so its "not present" bit stays clear */
#define BOOT_ARCH_8042 BIT(1)
#define BOOT_ARCH_NO_VGA BIT(2)
#define FLAG_WBINVD BIT(0)
#define FLAG_PROC_C1 BIT(2)
#define FLAG_NO_POWER_BUTTON BIT(4) /* not as a fixed register */
#define FLAG_NO_SLEEP_BUTTON BIT(5)
#define FLAG_NO_FIXED_RTC BIT(6)
#define FLAG_RESET_REG BIT(10)
#define FLAG_HW_REDUCED BIT(20)
#define GAS_SYSTEM_IO 1
#define GAS_BYTE_ACCESS 1

/* MADT entries */
enum { MADT_LAPIC = 0, MADT_IOAPIC = 1, MADT_LAPIC_NMI = 4, MADT_X2APIC = 9 };
#define MADT_ENABLED BIT(0)
#define MADT_ALL_PROCESSORS 0xFF
#define XAPIC_IDS 255

/* SRAT entries; for processors and memory, "enabled" is the same bit */
enum { SRAT_LAPIC = 0, SRAT_MEMORY = 1, SRAT_X2APIC = 2 };
#define SRAT_ENABLED BIT(0)
/* SLIT: 10 is the node itself; the others are usual values, nearer on one socket */
#define DISTANCE_SELF 10
#define DISTANCE_SOCKET 12
#define DISTANCE_REMOTE 20

static void put(struct acpi_image *image, const void *p, size_t n)
{
	(void)buf_append(&image->bytes, p, n); /* remembered by the buffer */
}

static void put8(struct acpi_image *image, uint8_t v)
{
	put(image, &v, 1);
}

static void put16(struct acpi_image *image, uint16_t v)
{
	v = htole16(v);
	put(image, &v, sizeof(v));
}

static void put32(struct acpi_image *image, uint32_t v)
{
	v = htole32(v);
	put(image, &v, sizeof(v));
}

static void put64(struct acpi_image *image, uint64_t v)
{
	v = htole64(v);
	put(image, &v, sizeof(v));
}

static void table_align(struct acpi_image *image)
{
	while (!buf_failed(&image->bytes) && image->bytes.len % TABLE_ALIGN)
		put8(image, 0);
}

/* Begins a table with its header; length and checksum follow in table_end(). */
static void table_begin(struct acpi_image *image, enum acpi_table table, const char *signature,
			uint8_t revision)
{
	table_align(image);
	image->tables[table].offset = (uint32_t)image->bytes.len;
	put(image, signature, 4);
	put32(image, 0);
	put8(image, revision);
	put8(image, 0);
	put(image, OEM_ID, 6);
	put(image, OEM_TABLE_ID, 8);
	put32(image, 1);
	put(image, CREATOR_ID, 4);
	put32(image, 1);
}

static void table_end(struct acpi_image *image, enum acpi_table table)
{
	uint32_t offset = image->tables[table].offset;
	uint32_t size = (uint32_t)image->bytes.len - offset;
	uint8_t *p;

	if (buf_failed(&image->bytes))
		return;
	p = (uint8_t *)image->bytes.data + offset;
	store_le32(p + 4, size);
	p[9] = table_checksum(p, size);
	image->tables[table].size = size;
}

static uint64_t table_gpa(const struct acpi_image *image, enum acpi_table table)
{
	return LAYOUT_ACPI + image->tables[table].offset;
}

/* Devices on fixed ports with one line. */
static void dsdt_legacy(struct buf *b, const char *name, const char *hid, const uint16_t *ports,
			const uint8_t *counts, uint32_t ranges, uint32_t gsi)
{
	struct aml_resources r = { .len = 0 };
	size_t device = aml_device(b, name);
	uint32_t i;

	aml_name_eisa_id(b, "_HID", hid);
	aml_name_integer(b, "_UID", 0);
	for (i = 0; i < ranges; i++)
		aml_resource_ports(&r, ports[i], counts[i]);
	aml_resource_interrupt(&r, gsi);
	aml_name_resources(b, &r);
	aml_end(b, device);
}

static void dsdt_virtio(struct buf *b, uint32_t n, const struct board_slot *slot)
{
	static const char digits[] = "0123456789ABCDEF";
	char name[] = { 'V', '0', digits[n >> 4 & 0xF], digits[n & 0xF], '\0' };
	struct aml_resources r = { .len = 0 };
	size_t device = aml_device(b, name);

	aml_name_string(b, "_HID", "LNRO0005");
	aml_name_integer(b, "_UID", n);
	aml_resource_memory(&r, (uint32_t)slot->base, LAYOUT_VIRTIO_BYTES);
	aml_resource_interrupt(&r, slot->gsi);
	aml_name_resources(b, &r);
	aml_end(b, device);
}

static void put_dsdt(struct acpi_image *image, const struct acpi_config *c)
{
	static const uint16_t serial[] = { LAYOUT_SERIAL_PORT };
	static const uint8_t serial_counts[] = { LAYOUT_SERIAL_PORTS };
	static const uint16_t keyboard[] = { LAYOUT_I8042_PORT, LAYOUT_I8042_PORT + 4 };
	static const uint8_t keyboard_counts[] = { 1, 1 };
	static const uint16_t rtc[] = { LAYOUT_RTC_PORT };
	static const uint8_t rtc_counts[] = { LAYOUT_RTC_PORTS };
	static const uint64_t s5[] = { ACPI_S5_SLEEP_TYPE, 0 };
	struct buf *b = &image->bytes;
	size_t scope;
	uint32_t i;

	table_begin(image, ACPI_DSDT, "DSDT", 2);
	aml_name_package(b, "\\_S5_", s5, ARRAY_SIZE(s5));
	scope = aml_scope(b, "\\_SB_");
	dsdt_legacy(b, "COM1", "PNP0501", serial, serial_counts, 1, LAYOUT_GSI_SERIAL);
	dsdt_legacy(b, "PS2K", "PNP0303", keyboard, keyboard_counts, 2, LAYOUT_GSI_I8042);
	dsdt_legacy(b, "RTC_", "PNP0B00", rtc, rtc_counts, 1, LAYOUT_GSI_RTC);
	for (i = 0; i < c->slot_count; i++)
		dsdt_virtio(b, i, &c->slots[i]);
	aml_end(b, scope);
	table_end(image, ACPI_DSDT);
}

/* A generic address: one byte at an I/O port. */
static void store_port(uint8_t *p, uint16_t port)
{
	p[0] = GAS_SYSTEM_IO;
	p[1] = 8; /* bits */
	p[2] = 0;
	p[3] = GAS_BYTE_ACCESS;
	store_le64(p + 4, port);
}

static void put_fadt(struct acpi_image *image)
{
	uint8_t fadt[FADT_SIZE] = { 0 };

	fadt[FADT_DAY_ALARM] = ACPI_RTC_DAY_ALARM;
	fadt[FADT_MONTH_ALARM] = ACPI_RTC_MONTH_ALARM;
	fadt[FADT_CENTURY] = ACPI_RTC_CENTURY;
	store_le16(fadt + FADT_BOOT_ARCH, BOOT_ARCH_8042 | BOOT_ARCH_NO_VGA);
	store_le32(fadt + FADT_FLAGS, FLAG_WBINVD | FLAG_PROC_C1 | FLAG_NO_POWER_BUTTON |
					      FLAG_NO_SLEEP_BUTTON | FLAG_NO_FIXED_RTC |
					      FLAG_RESET_REG | FLAG_HW_REDUCED);
	store_port(fadt + FADT_RESET_REG, LAYOUT_ACPI_PM_PORT + 2);
	fadt[FADT_RESET_VALUE] = ACPI_RESET_VALUE;
	store_le64(fadt + FADT_X_DSDT, table_gpa(image, ACPI_DSDT));
	store_port(fadt + FADT_SLEEP_CONTROL, LAYOUT_ACPI_PM_PORT);
	store_port(fadt + FADT_SLEEP_STATUS, LAYOUT_ACPI_PM_PORT + 1);
	memcpy(fadt + FADT_HYPERVISOR, "LULLKVM", 8);
	table_begin(image, ACPI_FADT, "FACP", 6);
	put(image, fadt + TABLE_HEADER, FADT_SIZE - TABLE_HEADER);
	table_end(image, ACPI_FADT);
}

static void put_processor(struct acpi_image *image, uint32_t uid, uint32_t apic_id)
{
	if (apic_id < XAPIC_IDS && uid < MADT_ALL_PROCESSORS) {
		put8(image, MADT_LAPIC);
		put8(image, 8);
		put8(image, (uint8_t)uid);
		put8(image, (uint8_t)apic_id);
		put32(image, MADT_ENABLED);
	} else {
		put8(image, MADT_X2APIC);
		put8(image, 16);
		put16(image, 0);
		put32(image, apic_id);
		put32(image, MADT_ENABLED);
		put32(image, uid);
	}
}

static void put_madt(struct acpi_image *image, const struct topology *t)
{
	uint32_t i;

	table_begin(image, ACPI_MADT, "APIC", 4);
	put32(image, LAYOUT_LAPIC);
	put32(image, 0); /* no PIC: see the top of this file */
	for (i = 0; i < topology_cpu_count(t); i++)
		put_processor(image, i, topology_apic_id(t, i));
	put8(image, MADT_IOAPIC);
	put8(image, 12);
	put8(image, 0); /* id, as KVM's has it */
	put8(image, 0);
	put32(image, LAYOUT_IOAPIC);
	put32(image, 0); /* first GSI */
	put8(image, MADT_LAPIC_NMI);
	put8(image, 6);
	put8(image, MADT_ALL_PROCESSORS);
	put16(image, 0);
	put8(image, 1); /* LINT1 */
	table_end(image, ACPI_MADT);
}

static void put_processor_affinity(struct acpi_image *image, uint32_t node, uint32_t apic_id)
{
	if (apic_id < XAPIC_IDS) {
		put8(image, SRAT_LAPIC);
		put8(image, 16);
		put8(image, (uint8_t)node);
		put8(image, (uint8_t)apic_id);
		put32(image, SRAT_ENABLED);
		put32(image, 0); /* no SAPIC; the node's higher bytes */
		put32(image, 0); /* clock domain */
	} else {
		put8(image, SRAT_X2APIC);
		put8(image, 24);
		put16(image, 0);
		put32(image, node);
		put32(image, apic_id);
		put32(image, SRAT_ENABLED);
		put64(image, 0); /* clock domain */
	}
}

static void put_memory_affinity(struct acpi_image *image, uint32_t node, uint64_t gpa,
				uint64_t size)
{
	put8(image, SRAT_MEMORY);
	put8(image, 40);
	put32(image, node);
	put16(image, 0);
	put64(image, gpa);
	put64(image, size);
	put32(image, 0);
	put32(image, SRAT_ENABLED);
	put64(image, 0);
}

/* RAM from its start on goes to the nodes in turn; one may lie on both sides of the hole. */
static void put_memory_affinities(struct acpi_image *image, const struct acpi_config *c)
{
	uint32_t node = 0, i;
	uint64_t left = c->topology->node_mib[0] * MIB;

	for (i = 0; i < c->ram_count; i++) {
		struct guest_mem_range r = c->ram[i];

		while (r.size && node < c->topology->node_count) {
			uint64_t part = r.size < left ? r.size : left;

			put_memory_affinity(image, node, r.gpa, part);
			r.gpa += part;
			r.size -= part;
			left -= part;
			if (left == 0 && ++node < c->topology->node_count)
				left = c->topology->node_mib[node] * MIB;
		}
	}
}

static void put_srat(struct acpi_image *image, const struct acpi_config *c)
{
	const struct topology *t = c->topology;
	uint32_t i;

	table_begin(image, ACPI_SRAT, "SRAT", 3);
	put32(image, 1); /* by specification */
	put64(image, 0);
	for (i = 0; i < topology_cpu_count(t); i++)
		put_processor_affinity(image, topology_node_of(t, i), topology_apic_id(t, i));
	put_memory_affinities(image, c);
	table_end(image, ACPI_SRAT);
}

static uint8_t distance(const struct topology *t, uint32_t a, uint32_t b)
{
	uint32_t in_socket = topology_cpus_in(t, TOPOLOGY_SOCKET) / topology_cpus_in(t, t->node);

	if (a == b)
		return DISTANCE_SELF;
	return a / in_socket == b / in_socket ? DISTANCE_SOCKET : DISTANCE_REMOTE;
}

static void put_slit(struct acpi_image *image, const struct topology *t)
{
	uint32_t a, b;

	table_begin(image, ACPI_SLIT, "SLIT", 1);
	put64(image, t->node_count);
	for (a = 0; a < t->node_count; a++)
		for (b = 0; b < t->node_count; b++)
			put8(image, distance(t, a, b));
	table_end(image, ACPI_SLIT);
}

static void put_xsdt(struct acpi_image *image)
{
	static const enum acpi_table tables[] = { ACPI_FADT, ACPI_MADT, ACPI_SRAT, ACPI_SLIT };
	uint32_t i;

	table_begin(image, ACPI_XSDT, "XSDT", 1);
	for (i = 0; i < ARRAY_SIZE(tables); i++)
		if (image->tables[tables[i]].size)
			put64(image, table_gpa(image, tables[i]));
	table_end(image, ACPI_XSDT);
}

/* The RSDP stands first; its place was left free. */
static void store_rsdp(struct acpi_image *image)
{
	uint8_t *p = (uint8_t *)image->bytes.data;

	memcpy(p, "RSD PTR ", 8);
	memcpy(p + 9, OEM_ID, 6);
	p[15] = 2; /* revision */
	store_le32(p + 20, RSDP_SIZE);
	store_le64(p + 24, table_gpa(image, ACPI_XSDT));
	p[8] = table_checksum(p, RSDP_V1_SIZE);
	p[32] = table_checksum(p, RSDP_SIZE);
	image->tables[ACPI_RSDP].size = RSDP_SIZE;
}

int acpi_image_init(struct acpi_image *image, const struct acpi_config *c, struct error *err)
{
	static const uint8_t rsdp[RSDP_SIZE];

	memset(image, 0, sizeof(*image));
	buf_init(&image->bytes, LAYOUT_ACPI_BYTES);
	if (c->slot_count > LIMIT_VIRTIO_DEVICES)
		return error_set(err, -ENOSPC, "ACPI: more than %d virtio devices",
				 LIMIT_VIRTIO_DEVICES);
	put(image, rsdp, sizeof(rsdp));
	put_dsdt(image, c);
	put_fadt(image);
	put_madt(image, c->topology);
	if (c->topology->node_count) {
		put_srat(image, c);
		put_slit(image, c->topology);
	}
	put_xsdt(image);
	if (buf_failed(&image->bytes))
		return error_set(err, -ENOSPC, "ACPI: tables do not fit into %llu KiB",
				 (unsigned long long)(LAYOUT_ACPI_BYTES / KIB));
	store_rsdp(image);
	return 0;
}

void acpi_image_fini(struct acpi_image *image)
{
	buf_fini(&image->bytes);
}

int acpi_write(const struct guest_mem *m, const struct acpi_config *c, uint64_t *ret_rsdp,
	       struct error *err)
{
	struct acpi_image image;
	int ret = acpi_image_init(&image, c, err);

	if (ret == 0) {
		ret = guest_mem_copy_out(m, LAYOUT_ACPI, image.bytes.data, image.bytes.len);
		if (ret < 0)
			error_set(err, ret, "ACPI: guest memory is too small for the tables");
	}
	acpi_image_fini(&image);
	if (ret == 0)
		*ret_rsdp = LAYOUT_ACPI;
	return ret;
}
