/*
 * Error text: what is filled, what is cut, what is returned.
 */
#include "tests/vmm/base/base_test.h"

#include "vmm/base/error.h"

static void set_fills_and_returns_the_code(void **state)
{
	struct error e = { 0 };

	assert_int_equal(error_set(&e, -EINVAL, "drive %s: %d", "a", 7), -EINVAL);
	assert_int_equal(e.code, -EINVAL);
	assert_string_equal(e.text, "drive a: 7");
}

static void field_is_named_until_another_error(void **state)
{
	struct error e = { 0 };

	assert_int_equal(error_set_field(&e, -EINVAL, "cores", "%d is odd", 7), -EINVAL);
	assert_string_equal(e.text, "cores: 7 is odd");
	assert_string_equal(e.field, "cores");
	error_prefix(&e, "Topology: ");
	assert_string_equal(e.field, "cores");
	error_set_errno(&e, -EIO, "disk");
	assert_null(e.field);
	assert_int_equal(error_set_field(NULL, -EINVAL, "cores", "x"), -EINVAL);
}

static void null_error_still_returns_the_code(void **state)
{
	assert_int_equal(error_set(NULL, -EINVAL, "x"), -EINVAL);
	assert_int_equal(error_set_errno(NULL, -ENOENT, "x"), -ENOENT);
	assert_int_equal(error_prefix(NULL, "x"), 0);
}

static void errno_text_follows(void **state)
{
	struct error e = { 0 };

	assert_int_equal(error_set_errno(&e, -ENOENT, "cannot open %s", "f"), -ENOENT);
	assert_string_equal(e.text, "cannot open f: No such file or directory (os error 2)");
}

static void long_text_is_cut_and_terminated(void **state)
{
	char text[ERROR_TEXT_MAX * 2];
	struct error e = { 0 };

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	error_set(&e, -EINVAL, "%s", text);
	assert_int_equal(strlen(e.text), ERROR_TEXT_MAX - 1);
	error_set_errno(&e, -EINVAL, "%s", text);
	assert_int_equal(strlen(e.text), ERROR_TEXT_MAX - 1);
	error_prefix(&e, "%s", "before: ");
	assert_int_equal(strlen(e.text), ERROR_TEXT_MAX - 1);
	assert_memory_equal(e.text, "before: x", 9);
}

static void prefix_goes_before_and_keeps_the_code(void **state)
{
	struct error e = { 0 };

	error_set(&e, -EIO, "disk is gone");
	assert_int_equal(error_prefix(&e, "drive %s: ", "root"), -EIO);
	assert_string_equal(e.text, "drive root: disk is gone");
}

static void later_error_replaces_an_earlier_one(void **state)
{
	struct error e = { 0 };

	error_set(&e, -EIO, "a long first text");
	error_set(&e, -EPERM, "b");
	assert_string_equal(e.text, "b");
	assert_int_equal(e.code, -EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_fills_and_returns_the_code),
		cmocka_unit_test(field_is_named_until_another_error),
		cmocka_unit_test(null_error_still_returns_the_code),
		cmocka_unit_test(errno_text_follows),
		cmocka_unit_test(long_text_is_cut_and_terminated),
		cmocka_unit_test(prefix_goes_before_and_keeps_the_code),
		cmocka_unit_test(later_error_replaces_an_earlier_one),
	};

	return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
