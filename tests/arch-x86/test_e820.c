/*
 * The guest's memory map.
 */
#include "tests/arch-x86/arch_test.h"

#include "arch-x86/e820.h"
#include "arch-x86/layout.h"

static struct e820_entry map[E820_ENTRIES];

/* Builds a map; the regions need no memory behind them. */
static uint32_t build(uint64_t low, uint64_t high)
{
	struct guest_mem m = { .count = high ? 2 : 1 };

	m.regions[0].size = low;
	m.regions[1] = (struct guest_mem_region){ .gpa = LAYOUT_HIGH_RAM, .size = high };
	return e820_build(&m, map);
}

static uint64_t ram(uint32_t count)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < count; i++)
		if (map[i].type == E820_RAM)
			bytes += map[i].size;
	return bytes;
}

static void base_memory_ends_at_the_mp_table(void **state)
{
	assert_int_equal(build(128 * MIB, 0), 3);
	assert_int_equal(map[0].addr, 0);
	assert_int_equal(map[0].size, 0x9FC00);
	assert_int_equal(map[0].type, E820_RAM);
}

static void tables_are_reserved(void **state)
{
	build(128 * MIB, 0);
	assert_int_equal(map[1].addr, 0x9FC00);
	assert_int_equal(map[1].addr + map[1].size, 0x100000);
	assert_int_equal(map[1].type, E820_RESERVED);
	assert_true(range_inside(LAYOUT_EBDA, LAYOUT_EBDA_BYTES, map[1].addr, map[1].size));
	assert_true(range_inside(LAYOUT_ACPI, LAYOUT_ACPI_BYTES, map[1].addr, map[1].size));
}

static void ram_beyond_the_hole_is_one_entry_more(void **state)
{
	assert_int_equal(build(3 * GIB, 2 * GIB), 4);
	assert_int_equal(map[2].addr + map[2].size, 0xC0000000);
	assert_int_equal(map[3].addr, 0x100000000);
	assert_int_equal(map[3].size, 2 * GIB);
}

static void all_ram_but_the_reserved_part_is_usable(void **state)
{
	assert_int_equal(ram(build(3 * GIB, 2 * GIB)), 5 * GIB - (0x100000 - 0x9FC00));
}

static void entries_ascend_without_overlap(void **state)
{
	uint32_t n = build(3 * GIB, GIB), i;

	for (i = 1; i < n; i++)
		assert_true(map[i].addr >= map[i - 1].addr + map[i - 1].size);
}

static void tiny_memory_has_no_empty_entry(void **state)
{
	uint32_t n = build(1 * MIB, 0), i;

	assert_int_equal(n, 2);
	n = build(512 * KIB, 0);
	assert_int_equal(n, 1);
	for (i = 0; i < n; i++)
		assert_true(map[i].size > 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(base_memory_ends_at_the_mp_table),
		cmocka_unit_test(tables_are_reserved),
		cmocka_unit_test(ram_beyond_the_hole_is_one_entry_more),
		cmocka_unit_test(all_ram_but_the_reserved_part_is_usable),
		cmocka_unit_test(entries_ascend_without_overlap),
		cmocka_unit_test(tiny_memory_has_no_empty_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
