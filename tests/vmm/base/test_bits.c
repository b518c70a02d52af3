/*
 * Alignment, ranges and little-endian access.
 */
#include "tests/vmm/base/base_test.h"

#include "vmm/base/bits.h"

static void only_powers_of_two_are_powers_of_two(void **state)
{
	unsigned i;

	assert_false(is_power_of_two(0));
	for (i = 0; i < 64; i++) {
		assert_true(is_power_of_two(1ull << i));
		assert_int_equal(is_power_of_two((1ull << i) | 1), i == 0);
	}
}

static void alignment_goes_down_and_up(void **state)
{
	uint64_t v;

	for (v = 0; v < 64; v++) {
		assert_int_equal(align_down(v, 16), v / 16 * 16);
		assert_int_equal(align_up(v, 16), (v + 15) / 16 * 16);
		assert_int_equal(is_aligned(v, 16), v % 16 == 0);
	}
	assert_true(align_down(UINT64_MAX, 4096) == UINT64_MAX - 4095);
}

static void ceil_log2_rounds_up(void **state)
{
	unsigned i;

	assert_int_equal(ceil_log2(0), 0);
	assert_int_equal(ceil_log2(1), 0);
	for (i = 1; i < 32; i++) {
		assert_int_equal(ceil_log2(1u << i), i);
		assert_int_equal(ceil_log2((1u << i) + 1), i + 1);
	}
	assert_int_equal(ceil_log2(UINT32_MAX), 32);
}

static void range_inside_accepts_up_to_the_end(void **state)
{
	assert_true(range_inside(100, 50, 100, 50));
	assert_true(range_inside(149, 1, 100, 50));
	assert_true(range_inside(150, 0, 100, 50));
	assert_false(range_inside(149, 2, 100, 50));
	assert_false(range_inside(99, 1, 100, 50));
	assert_false(range_inside(151, 0, 100, 50));
}

static void range_inside_is_not_fooled_by_wrapping(void **state)
{
	assert_false(range_inside(110, UINT64_MAX, 100, 50));
	assert_false(range_inside(UINT64_MAX, 200, 100, 50));
	assert_true(range_inside(UINT64_MAX, 1, UINT64_MAX - 1, 2));
	assert_false(range_inside(UINT64_MAX, 2, UINT64_MAX - 1, 2));
}

static void ranges_overlap_if_they_share_a_byte(void **state)
{
	assert_false(ranges_overlap(0, 10, 10, 10));
	assert_true(ranges_overlap(0, 11, 10, 10));
	assert_true(ranges_overlap(12, 1, 10, 10));
	assert_false(ranges_overlap(20, 1, 10, 10));
}

static void bytes_are_little_endian_at_any_address(void **state)
{
	static const uint8_t expected[8] = { 8, 7, 6, 5, 4, 3, 2, 1 };
	uint8_t bytes[9] = { 0 };

	store_le64(bytes + 1, 0x0102030405060708ull);
	assert_memory_equal(bytes + 1, expected, 8);
	assert_int_equal(load_le64(bytes + 1), 0x0102030405060708ull);
	assert_int_equal(load_le32(bytes + 1), 0x05060708);
	assert_int_equal(load_le16(bytes + 1), 0x0708);
	store_le32(bytes + 1, 0xa1b2c3d4);
	store_le16(bytes + 5, 0xe5f6);
	assert_int_equal(load_le64(bytes + 1), 0x0102e5f6a1b2c3d4ull);
}

static void masks_cover_the_bytes_asked_for(void **state)
{
	assert_true(mask_of_bytes(1) == 0xff);
	assert_true(mask_of_bytes(2) == 0xffff);
	assert_true(mask_of_bytes(3) == 0xffffff);
	assert_true(mask_of_bytes(4) == 0xffffffff);
	assert_true(mask_of_bytes(8) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_powers_of_two_are_powers_of_two),
		cmocka_unit_test(alignment_goes_down_and_up),
		cmocka_unit_test(ceil_log2_rounds_up),
		cmocka_unit_test(range_inside_accepts_up_to_the_end),
		cmocka_unit_test(range_inside_is_not_fooled_by_wrapping),
		cmocka_unit_test(ranges_overlap_if_they_share_a_byte),
		cmocka_unit_test(bytes_are_little_endian_at_any_address),
		cmocka_unit_test(masks_cover_the_bytes_asked_for),
	};

	return cmocka_run_group_tests_name("bits", tests, NULL, NULL);
}
