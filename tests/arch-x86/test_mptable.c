/*
 * The MP table, read as a guest without ACPI reads it.
 */
#include "tests/arch-x86/arch_test.h"

#include "arch-x86/layout.h"
#include "arch-x86/mptable.h"

static struct guest_mem mem;
static struct topology topology;
static struct board_slot slots[LAYOUT_VIRTIO_MAX];
static uint8_t area[LAYOUT_EBDA_BYTES]; /* pointer and table */
static const uint8_t *const pointer = area;
static const uint8_t *const header = area + 16;
static struct error err;

static int write_tables(uint32_t vcpus, bool smt, uint32_t slot_count)
{
	int ret;
	uint32_t i;

	topology_init(&topology, vcpus, smt);
	for (i = 0; i < slot_count; i++)
		slots[i].gsi = 5 + i + (i >= 3);
	ret = mptable_write(&mem, &topology, slots, slot_count, &err);
	if (ret == 0)
		assert_int_equal(guest_mem_copy_in(&mem, LAYOUT_EBDA, area, sizeof(area)), 0);
	return ret;
}

/* The n-th entry of a type, or NULL. */
static const uint8_t *entry(uint8_t type, uint32_t n)
{
	const uint8_t *p = header + 44, *end = header + load_le16(header + 4);

	for (; p < end; p += *p == 0 ? 20 : 8)
		if (*p == type && n-- == 0)
			return p;
	return NULL;
}

static void checksums_are_right_for_all_vcpu_counts(void **state)
{
	uint32_t n;

	for (n = 1; n <= LIMIT_VCPUS; n++) {
		assert_int_equal(write_tables(n, n % 2 == 0, n % LAYOUT_VIRTIO_MAX), 0);
		assert_int_equal(test_sum(pointer, 16), 0);
		assert_int_equal(test_sum(header, load_le16(header + 4)), 0);
	}
}

static void pointer_leads_to_the_table(void **state)
{
	assert_int_equal(write_tables(1, false, 0), 0);
	assert_memory_equal(pointer, "_MP_", 4);
	assert_int_equal(load_le32(pointer + 4), LAYOUT_EBDA + 16);
	assert_int_equal(pointer[8], 1);
	assert_int_equal(pointer[9], 4);
	assert_int_equal(pointer[11], 0); /* a table, none of the default ones */
	assert_memory_equal(header, "PCMP", 4);
	assert_int_equal(load_le32(header + 36), 0xFEE00000);
}

static void entry_count_is_right(void **state)
{
	uint32_t count = 0, n;
	uint8_t type;

	assert_int_equal(write_tables(5, false, 7), 0);
	for (type = 0; type <= 4; type++)
		for (n = 0; entry(type, n); n++)
			count++;
	assert_int_equal(load_le16(header + 34), count);
	assert_int_equal(count, 5 + 1 + 1 + 4 + 7 + 2);
}

static void processors_have_the_topologys_ids(void **state)
{
	uint32_t n, i;

	for (n = 1; n <= LIMIT_VCPUS; n++) {
		assert_int_equal(write_tables(n, n % 4 == 2, 0), 0);
		for (i = 0; i < n; i++) {
			assert_int_equal(entry(0, i)[1], topology_apic_id(&topology, i));
			assert_int_equal(entry(0, i)[3], i == 0 ? 3 : 1);
		}
		assert_null(entry(0, n));
	}
}

static void ioapic_is_kvms(void **state)
{
	assert_int_equal(write_tables(2, false, 0), 0);
	assert_int_equal(entry(2, 0)[1], 0);
	assert_int_equal(entry(2, 0)[3], 1);
	assert_int_equal(load_le32(entry(2, 0) + 4), 0xFEC00000);
	assert_memory_equal(entry(1, 0) + 2, "ISA   ", 6);
}

static void lines_go_to_the_pin_of_their_number(void **state)
{
	static const uint8_t gsis[] = { 0, 1, 4, 8, 5, 6, 7, 9 };
	uint32_t i;

	assert_int_equal(write_tables(1, false, 4), 0);
	for (i = 0; i < ARRAY_SIZE(gsis); i++) {
		const uint8_t *e = entry(3, i);

		assert_int_equal(load_le16(e + 2), 5); /* edge, active high */
		assert_int_equal(e[5], gsis[i]);
		assert_int_equal(e[7], gsis[i]);
	}
	assert_null(entry(3, i));
}

static void local_lines_are_the_pics_and_the_nmi(void **state)
{
	assert_int_equal(write_tables(3, false, 0), 0);
	assert_int_equal(entry(4, 0)[1], 3);
	assert_int_equal(entry(4, 0)[7], 0);
	assert_int_equal(entry(4, 1)[1], 1);
	assert_int_equal(entry(4, 1)[6], 0xFF);
	assert_int_equal(entry(4, 1)[7], 1);
}

static void largest_machine_fits(void **state)
{
	assert_int_equal(write_tables(LIMIT_VCPUS, true, LAYOUT_VIRTIO_MAX), 0);
	assert_true(16u + load_le16(header + 4) <= LAYOUT_EBDA_BYTES);
}

static void larger_machine_is_an_error(void **state)
{
	assert_int_equal(write_tables(LIMIT_VCPUS + 8, false, LAYOUT_VIRTIO_MAX), -ENOSPC);
	assert_begins(err.text, "MP table: ");
	assert_int_equal(write_tables(256, false, 0), -ENOSPC);
}

static void missing_memory_is_an_error(void **state)
{
	guest_mem_fini(&mem);
	test_mem_init(&mem, 0x9F000, 0);
	assert_int_equal(write_tables(1, false, 0), -EFAULT);
}

static int fresh_memory(void **state)
{
	test_mem_init(&mem, 16 * MIB, 0);
	return 0;
}

static int free_memory(void **state)
{
	guest_mem_fini(&mem);
	return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fresh_memory, free_memory)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(checksums_are_right_for_all_vcpu_counts),
		TEST(pointer_leads_to_the_table),
		TEST(entry_count_is_right),
		TEST(processors_have_the_topologys_ids),
		TEST(ioapic_is_kvms),
		TEST(lines_go_to_the_pin_of_their_number),
		TEST(local_lines_are_the_pics_and_the_nmi),
		TEST(largest_machine_fits),
		TEST(larger_machine_is_an_error),
		TEST(missing_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
