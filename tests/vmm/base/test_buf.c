/*
 * The bounded buffer: at its maximum, one above, and after a failure.
 */
#include "tests/vmm/base/base_test.h"

#include "vmm/base/buf.h"

static void empty_buffer_is_empty_text(void **state)
{
	struct buf b;

	buf_init(&b, 10);
	assert_string_equal(buf_text(&b), "");
	assert_int_equal(buf_append(&b, "", 0), 0);
	assert_string_equal(buf_text(&b), "");
	buf_fini(&b);
}

static void appends_add_up(void **state)
{
	struct buf b;

	buf_init(&b, 100);
	assert_int_equal(buf_append(&b, "abc", 3), 0);
	assert_int_equal(buf_printf(&b, "%d-%s", 42, "x"), 0);
	assert_string_equal(buf_text(&b), "abc42-x");
	assert_int_equal(b.len, 7);
	buf_fini(&b);
}

static void maximum_is_reached_and_not_passed(void **state)
{
	struct buf b;

	buf_init(&b, 4);
	assert_int_equal(buf_append(&b, "abcd", 4), 0);
	assert_false(buf_failed(&b));
	assert_int_equal(buf_append(&b, "e", 1), -ENOSPC);
	assert_true(buf_failed(&b));
	assert_string_equal(buf_text(&b), "abcd");
	buf_fini(&b);
}

static void printf_at_the_maximum_is_not_cut(void **state)
{
	struct buf b;

	buf_init(&b, 4);
	assert_int_equal(buf_printf(&b, "%d", 12345), -ENOSPC);
	assert_string_equal(buf_text(&b), "");
	assert_int_equal(buf_printf(&b, "%d", 1234), 0);
	assert_string_equal(buf_text(&b), "1234");
	buf_fini(&b);
}

static void absurd_length_does_not_wrap(void **state)
{
	struct buf b;

	buf_init(&b, 100);
	assert_int_equal(buf_append(&b, "ab", 2), 0);
	assert_int_equal(buf_append(&b, "", SIZE_MAX), -ENOSPC);
	assert_int_equal(buf_append(&b, "", SIZE_MAX - 1), -ENOSPC);
	assert_string_equal(buf_text(&b), "ab");
	buf_fini(&b);
}

static void clear_forgets_text_and_failure(void **state)
{
	struct buf b;

	buf_init(&b, 2);
	buf_append(&b, "abc", 3);
	buf_append(&b, "ab", 2);
	buf_clear(&b);
	assert_false(buf_failed(&b));
	assert_string_equal(buf_text(&b), "");
	assert_int_equal(buf_append(&b, "cd", 2), 0);
	buf_fini(&b);
	assert_string_equal(buf_text(&b), "");
}

static void growth_keeps_the_content(void **state)
{
	struct buf b;
	unsigned i;

	buf_init(&b, 100000);
	for (i = 0; i < 10000; i++)
		assert_int_equal(buf_printf(&b, "%04u,", i), 0);
	assert_int_equal(b.len, 50000);
	assert_memory_equal(b.data, "0000,0001,", 10);
	assert_memory_equal(b.data + 49995, "9999,", 6);
	buf_fini(&b);
}

static void json_string_escapes_quotes_and_backslashes(void **state)
{
	struct buf b;

	buf_init(&b, 100);
	assert_int_equal(buf_append_json_string(&b, "a\"b\\c\nd\te"), 0);
	assert_string_equal(buf_text(&b), "\"a\\\"b\\\\c\\nd\\te\"");
	buf_fini(&b);
}

/* No byte below 0x20 and no DEL gets through; bytes above 0x7f (UTF-8) do. */
static void json_string_escapes_every_control_byte(void **state)
{
	struct buf b;
	size_t i;
	unsigned c;

	for (c = 1; c < 256; c++) {
		char text[2] = { (char)c, 0 };

		buf_init(&b, 16);
		assert_int_equal(buf_append_json_string(&b, text), 0);
		for (i = 0; i < b.len; i++)
			assert_true((unsigned char)b.data[i] >= 0x20 && b.data[i] != 0x7f);
		assert_int_equal(b.data[0], '"');
		assert_int_equal(b.data[b.len - 1], '"');
		buf_fini(&b);
	}
}

static void json_string_past_the_maximum_fails(void **state)
{
	struct buf b;

	buf_init(&b, 4);
	assert_int_equal(buf_append_json_string(&b, "abc"), -ENOSPC);
	assert_true(buf_failed(&b));
	buf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_buffer_is_empty_text),
		cmocka_unit_test(appends_add_up),
		cmocka_unit_test(maximum_is_reached_and_not_passed),
		cmocka_unit_test(printf_at_the_maximum_is_not_cut),
		cmocka_unit_test(absurd_length_does_not_wrap),
		cmocka_unit_test(clear_forgets_text_and_failure),
		cmocka_unit_test(growth_keeps_the_content),
		cmocka_unit_test(json_string_escapes_quotes_and_backslashes),
		cmocka_unit_test(json_string_escapes_every_control_byte),
		cmocka_unit_test(json_string_past_the_maximum_fails),
	};

	return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
