/*
 * The writer of ACPI machine language, byte by byte.
 */
#include "tests/arch-x86/arch_test.h"

#include "arch-x86/aml.h"

static struct buf b;

static int fresh_buffer(void **state)
{
	buf_init(&b, 1 << 20);
	return 0;
}

static int free_buffer(void **state)
{
	buf_fini(&b);
	return 0;
}

static void assert_bytes(const void *bytes, size_t n)
{
	assert_false(buf_failed(&b));
	assert_int_equal(b.len, n);
	assert_memory_equal(b.data, bytes, n);
}

static void integers_take_as_few_bytes_as_they_can(void **state)
{
	aml_name_integer(&b, "A___", 0);
	aml_name_integer(&b, "B___", 1);
	aml_name_integer(&b, "C___", 2);
	aml_name_integer(&b, "D___", 0x100);
	aml_name_integer(&b, "E___", 0x10000);
	assert_bytes("\x08" "A___\x00"
		     "\x08" "B___\x01"
		     "\x08" "C___\x0A\x02"
		     "\x08" "D___\x0B\x00\x01"
		     "\x08" "E___\x0C\x00\x00\x01\x00", 6 + 6 + 7 + 8 + 10);
}

static void large_integers_have_eight_bytes(void **state)
{
	aml_name_integer(&b, "F___", 0x123456789);
	assert_bytes("\x08" "F___\x0E\x89\x67\x45\x23\x01\0\0\0", 14);
}

static void strings_end_with_zero(void **state)
{
	aml_name_string(&b, "_HID", "LNRO0005");
	assert_bytes("\x08_HID\x0DLNRO0005", 15);
}

static void eisa_ids_are_packed(void **state)
{
	aml_name_eisa_id(&b, "_HID", "PNP0501");
	aml_name_eisa_id(&b, "_HID", "PNP0B00");
	assert_bytes("\x08_HID\x0C\x41\xD0\x05\x01\x08_HID\x0C\x41\xD0\x0B\x00", 20);
}

static void package_has_its_length_and_count(void **state)
{
	static const uint64_t values[] = { 5, 0 };

	aml_name_package(&b, "\\_S5_", values, 2);
	assert_bytes("\x08\\_S5_\x12\x05\x02\x0A\x05\x00", 12);
}

static void blocks_nest(void **state)
{
	size_t scope = aml_scope(&b, "\\_SB_"), device = aml_device(&b, "COM1");

	aml_end(&b, device);
	aml_end(&b, scope);
	assert_bytes("\x10\x0D\\_SB_\x5B\x82\x05" "COM1", 14);
}

/* Length that a block of `n` bytes begins with, as a guest reads it. */
static size_t block_length(size_t n, size_t *ret_bytes)
{
	size_t begin = aml_scope(&b, "ABCD"), i, length;
	const uint8_t *p;

	for (i = 4; i < n; i++)
		buf_append(&b, "x", 1);
	aml_end(&b, begin);
	p = (const uint8_t *)b.data + begin;
	*ret_bytes = (p[0] >> 6) + 1u;
	length = *ret_bytes == 1 ? p[0] & 0x3F : p[0] & 0xF;
	for (i = 1; i < *ret_bytes; i++)
		length |= (size_t)p[i] << (8 * i - 4);
	assert_memory_equal(p + *ret_bytes, "ABCD", 4);
	return length;
}

static void block_length_counts_itself(void **state)
{
	static const struct {
		size_t n, bytes;
	} cases[] = { { 4, 1 }, { 62, 1 }, { 63, 2 }, { 4093, 2 }, { 4094, 3 }, { 100000, 3 } };
	size_t i, bytes;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(block_length(cases[i].n, &bytes), cases[i].n + cases[i].bytes);
		assert_int_equal(bytes, cases[i].bytes);
	}
}

static void resources_are_a_buffer_with_an_end(void **state)
{
	struct aml_resources r = { .len = 0 };

	aml_resource_ports(&r, 0x3F8, 8);
	aml_resource_interrupt(&r, 4);
	aml_name_resources(&b, &r);
	assert_bytes("\x08_CRS\x11\x16\x0A\x13"
		     "\x47\x01\xF8\x03\xF8\x03\x01\x08"
		     "\x89\x06\x00\x03\x01\x04\x00\x00\x00"
		     "\x79\x00", 28);
}

static void memory_resource_is_fixed_and_writable(void **state)
{
	struct aml_resources r = { .len = 0 };

	aml_resource_memory(&r, 0xC0001000, 0x1000);
	assert_int_equal(r.len, 12);
	assert_memory_equal(r.bytes, "\x86\x09\x00\x01\x00\x10\x00\xC0\x00\x10\x00\x00", 12);
}

static void too_many_resources_are_a_failure(void **state)
{
	struct aml_resources r = { .len = 0 };
	int i;

	for (i = 0; i < 9; i++)
		aml_resource_memory(&r, 0, 0);
	assert_true(r.failed);
	aml_name_resources(&b, &r);
	assert_true(buf_failed(&b));
}

static void full_buffer_is_remembered(void **state)
{
	size_t scope;

	buf_fini(&b);
	buf_init(&b, 8);
	scope = aml_scope(&b, "\\_SB_");
	aml_name_integer(&b, "ABCD", 7);
	aml_end(&b, scope);
	assert_true(buf_failed(&b));
	assert_true(b.len <= 8);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fresh_buffer, free_buffer)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(integers_take_as_few_bytes_as_they_can),
		TEST(large_integers_have_eight_bytes),
		TEST(strings_end_with_zero),
		TEST(eisa_ids_are_packed),
		TEST(package_has_its_length_and_count),
		TEST(blocks_nest),
		TEST(block_length_counts_itself),
		TEST(resources_are_a_buffer_with_an_end),
		TEST(memory_resource_is_fixed_and_writable),
		TEST(too_many_resources_are_a_failure),
		TEST(full_buffer_is_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
