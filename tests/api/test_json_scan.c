/* Strict JSON scan: what is taken, what is refused and in which words. */
#include "tests/api/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/json_scan.h"
#include "vmm/limits.h"

static const struct json_limits limits = { LIMIT_JSON_DEPTH, LIMIT_JSON_TOKENS };
static struct json_fault fault;

static int scan_bytes(const char *bytes, size_t len)
{
	struct json_span span;

	return json_scan(bytes, len, &limits, &span, &fault);
}

static int scan(const char *text)
{
	return scan_bytes(text, strlen(text));
}

static void expect_fault(const char *text, int code, const char *message)
{
	assert_int_equal(scan(text), code);
	assert_string_equal(fault.text, message);
}

static void plain_values_are_taken(void **state)
{
	static const char *const good[] = { "{}", "[]", "0", "-1", "\"\"", "true", "false", "null",
					    " {\"a\" : [1, 2.5e-3, {\"b\":null}]}\r\n\t" };
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(scan(good[i]), 0);
}

static void span_excludes_white_space(void **state)
{
	static const char text[] = " \n {\"a\":1} \n";
	struct json_span span;

	assert_int_equal(json_scan(text, strlen(text), &limits, &span, &fault), 0);
	assert_int_equal(span.start, 3);
	assert_int_equal(span.end, 10);
	assert_int_equal(span.place.line, 2);
	assert_int_equal(span.place.column, 8);
}

static void empty_text_ends_too_early(void **state)
{
	expect_fault("", -EINVAL, "EOF while parsing a value at line 1 column 0");
	expect_fault("  ", -EINVAL, "EOF while parsing a value at line 1 column 2");
}

static void garbage_is_no_value(void **state)
{
	expect_fault("garbage", -EINVAL, "expected value at line 1 column 1");
	expect_fault("{'a':1}", -EINVAL, "key must be a string at line 1 column 2");
	expect_fault("\xef\xbb\xbf{}", -EINVAL, "expected value at line 1 column 1");
	expect_fault("// no\n{}", -EINVAL, "expected value at line 1 column 1");
	expect_fault("TRUE", -EINVAL, "expected value at line 1 column 1");
	expect_fault("trux", -EINVAL, "expected ident at line 1 column 4");
}

static void truncated_text_says_where(void **state)
{
	expect_fault("{", -EINVAL, "EOF while parsing an object at line 1 column 1");
	expect_fault("{\"a\"", -EINVAL, "EOF while parsing an object at line 1 column 4");
	expect_fault("{\"a\":", -EINVAL, "EOF while parsing a value at line 1 column 5");
	expect_fault("{\"a\":1", -EINVAL, "EOF while parsing an object at line 1 column 6");
	expect_fault("[1,", -EINVAL, "EOF while parsing a list at line 1 column 3");
	expect_fault("{\n\"a", -EINVAL, "EOF while parsing a string at line 2 column 2");
}

static void separators_are_required(void **state)
{
	expect_fault("{\"a\" 1}", -EINVAL, "expected `:` at line 1 column 6");
	expect_fault("{\"a\":1 \"b\":2}", -EINVAL, "expected `,` or `}` at line 1 column 8");
	expect_fault("[1 2]", -EINVAL, "expected `,` or `]` at line 1 column 4");
}

static void trailing_commas_are_refused(void **state)
{
	expect_fault("{\"a\":1,}", -EINVAL, "trailing comma at line 1 column 8");
	expect_fault("[1,]", -EINVAL, "trailing comma at line 1 column 4");
}

static void nothing_may_follow_the_value(void **state)
{
	expect_fault("{} x", -EINVAL, "trailing characters at line 1 column 4");
	expect_fault("{}{}", -EINVAL, "trailing characters at line 1 column 3");
}

static void duplicate_keys_are_named(void **state)
{
	expect_fault("{\"ab\":1,\"ab\":2}", -EEXIST, "duplicate field `ab` at line 1 column 12");
	assert_int_equal(fault.kind, JSON_FAULT_DUPLICATE);
	assert_string_equal(fault.key, "ab");
}

static void duplicate_keys_hide_behind_no_escape(void **state)
{
	assert_int_equal(scan("{\"ab\":1,\"\\u0061b\":2}"), -EEXIST);
	assert_int_equal(scan("{\"a\\/b\":1,\"a/b\":2}"), -EEXIST);
	assert_int_equal(scan("{\"\\n\":1,\"\\u000a\":2}"), -EEXIST);
}

static void equal_keys_of_different_objects_are_fine(void **state)
{
	assert_int_equal(scan("{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":2}]}"), 0);
	assert_int_equal(scan("{\"a\":1,\"ab\":2,\"A\":3,\"\":4}"), 0);
}

/* `depth` arrays in one another. */
static int scan_nested(unsigned depth)
{
	char *text = malloc(2 * (size_t)depth);
	int ret;

	memset(text, '[', depth);
	memset(text + depth, ']', depth);
	ret = scan_bytes(text, 2 * (size_t)depth);
	free(text);
	return ret;
}

static void depth_ends_at_its_limit(void **state)
{
	assert_int_equal(scan_nested(LIMIT_JSON_DEPTH), 0);
	assert_int_equal(scan_nested(LIMIT_JSON_DEPTH + 1), -E2BIG);
	assert_string_equal(fault.text, "recursion limit exceeded at line 1 column 17");
}

static void ten_thousand_levels_are_refused_early(void **state)
{
	assert_int_equal(scan_nested(10000), -E2BIG);
	assert_int_equal(fault.place.column, LIMIT_JSON_DEPTH + 1);
}

/* An array of `count` numbers: count + 1 tokens. */
static int scan_numbers(unsigned count)
{
	char *text = malloc(2 * (size_t)count + 2);
	unsigned i;
	int ret;

	text[0] = '[';
	for (i = 0; i < count; i++) {
		text[1 + 2 * i] = '0';
		text[2 + 2 * i] = i + 1 < count ? ',' : ']';
	}
	ret = scan_bytes(text, 2 * (size_t)count + 1);
	free(text);
	return ret;
}

static void tokens_end_at_their_limit(void **state)
{
	assert_int_equal(scan_numbers(LIMIT_JSON_TOKENS - 1), 0);
	assert_int_equal(scan_numbers(LIMIT_JSON_TOKENS), -E2BIG);
	assert_non_null(strstr(fault.text, "more than 2048 values and keys"));
}

static void numbers_follow_the_grammar(void **state)
{
	static const char *const bad[] = { "01", "-", "+1", ".5", "1.", "1e", "1e+", "0x10",
					   "- 1", "NaN", "Infinity", "-Infinity", "1_000" };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(scan(bad[i]), -EINVAL);
	assert_int_equal(scan("[-0, 0.5, 1E5, 1e-5, -1.25e+2]"), 0);
}

static void integers_fit_64_bits(void **state)
{
	assert_int_equal(scan("[18446744073709551615, -9223372036854775808]"), 0);
	assert_int_equal(scan("18446744073709551616"), -EINVAL);
	assert_ptr_equal(strstr(fault.text, "invalid type: number `18446744073709551616`"),
			 fault.text);
	assert_int_equal(scan("-9223372036854775809"), -EINVAL);
}

static void floats_are_finite(void **state)
{
	expect_fault("1e999", -EINVAL, "number out of range at line 1 column 5");
	assert_int_equal(scan("-1e999"), -EINVAL);
	assert_int_equal(scan("1e-999"), 0);
}

static void endless_numbers_are_refused(void **state)
{
	char text[200];

	memset(text, '1', sizeof(text));
	assert_int_equal(scan_bytes(text, sizeof(text)), -EINVAL);
	text[1] = '.';
	assert_int_equal(scan_bytes(text, sizeof(text)), -EINVAL);
}

static void nul_has_no_place_in_strings(void **state)
{
	assert_int_equal(scan("\"/a\\u0000b\""), -EINVAL);
	assert_int_equal(scan("{\"path\\u0000x\":1}"), -EINVAL);
	assert_int_equal(scan_bytes("\"a\0b\"", 5), -EINVAL);
	assert_int_equal(scan_bytes("{}\0", 3), -EINVAL);
}

static void control_bytes_are_refused(void **state)
{
	expect_fault("\"a\nb\"", -EINVAL, "control character (\\u0000-\\u001F) found while parsing "
					   "a string at line 1 column 3");
	assert_int_equal(scan("\"\x01\""), -EINVAL);
	assert_int_equal(scan("\"\x7f\""), 0);
}

static void escapes_are_those_of_the_standard(void **state)
{
	assert_int_equal(scan("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\""), 0);
	expect_fault("\"\\x41\"", -EINVAL, "invalid escape at line 1 column 3");
	expect_fault("\"\\u12g4\"", -EINVAL, "invalid escape at line 1 column 4");
	assert_int_equal(scan("\"\\u12"), -EINVAL);
	assert_int_equal(scan("\"\\"), -EINVAL);
}

static void surrogates_come_in_pairs(void **state)
{
	assert_int_equal(scan("\"\\ud83d\\ude00\""), 0);
	assert_int_equal(scan("\"\\ud83d\""), -EINVAL);
	assert_int_equal(scan("\"\\ud83dx\""), -EINVAL);
	assert_int_equal(scan("\"\\ud83d\\u0041\""), -EINVAL);
	assert_int_equal(scan("\"\\ude00\""), -EINVAL);
}

static void utf8_is_checked(void **state)
{
	static const char *const bad[] = { "\"\xc0\xaf\"", "\"\xe0\x80\xaf\"", "\"\xed\xa0\x80\"",
					   "\"\xf4\x90\x80\x80\"", "\"\xff\"", "\"\x80\"",
					   "\"\xe2\x82\"", "\"\xf0\x9f\x98" };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(scan(bad[i]), -EINVAL);
	assert_int_equal(scan("\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\""), 0);
}

static void clipping_keeps_characters_whole(void **state)
{
	char out[8];

	json_clip(out, sizeof(out), "abc", 3);
	assert_string_equal(out, "abc");
	json_clip(out, sizeof(out), "abcdefghij", 10);
	assert_string_equal(out, "abcd...");
	json_clip(out, sizeof(out), "abc\xe2\x82\xac", 6);
	assert_string_equal(out, "abc...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_values_are_taken),
		cmocka_unit_test(span_excludes_white_space),
		cmocka_unit_test(empty_text_ends_too_early),
		cmocka_unit_test(garbage_is_no_value),
		cmocka_unit_test(truncated_text_says_where),
		cmocka_unit_test(separators_are_required),
		cmocka_unit_test(trailing_commas_are_refused),
		cmocka_unit_test(nothing_may_follow_the_value),
		cmocka_unit_test(duplicate_keys_are_named),
		cmocka_unit_test(duplicate_keys_hide_behind_no_escape),
		cmocka_unit_test(equal_keys_of_different_objects_are_fine),
		cmocka_unit_test(depth_ends_at_its_limit),
		cmocka_unit_test(ten_thousand_levels_are_refused_early),
		cmocka_unit_test(tokens_end_at_their_limit),
		cmocka_unit_test(numbers_follow_the_grammar),
		cmocka_unit_test(integers_fit_64_bits),
		cmocka_unit_test(floats_are_finite),
		cmocka_unit_test(endless_numbers_are_refused),
		cmocka_unit_test(nul_has_no_place_in_strings),
		cmocka_unit_test(control_bytes_are_refused),
		cmocka_unit_test(escapes_are_those_of_the_standard),
		cmocka_unit_test(surrogates_come_in_pairs),
		cmocka_unit_test(utf8_is_checked),
		cmocka_unit_test(clipping_keeps_characters_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
