/* Checks of HTTP requests that the library leaves to us. */
#include "tests/api/cmocka_all.h"

#include <stdio.h>

#include "api/http_checks.h"
#include "vmm/limits.h"

static struct http_head scan(const char *text)
{
	struct http_head head;

	http_scan_head(text, strlen(text), &head);
	return head;
}

static void targets_are_plain_paths(void **state)
{
	static const char *const bad[] = { "", "x", "*", "https://h/", "/%41", "/a b", "/\x7f",
					   "/\xc3\xa4", "localhost:80" };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_non_null(http_check_target(bad[i]));
	assert_null(http_check_target("/"));
	assert_null(http_check_target("//a/../b?c=d&e#f"));
	assert_null(http_check_target("http://localhost/a"));
}

static void targets_end_at_their_limit(void **state)
{
	char target[LIMIT_API_URI + 2];

	memset(target, '/', sizeof(target));
	target[LIMIT_API_URI] = '\0';
	assert_null(http_check_target(target));
	target[LIMIT_API_URI] = '/';
	target[LIMIT_API_URI + 1] = '\0';
	assert_non_null(http_check_target(target));
}

static void headers_are_counted(void **state)
{
	struct http_headers seen = { 0 };
	int i;

	for (i = 0; i < LIMIT_API_HEADER_COUNT; i++)
		assert_null(http_check_header(&seen, "Accept", "*/*"));
	assert_string_equal(http_check_header(&seen, "Accept", "*/*"), "Too many headers.");
}

static void header_names_and_values_are_plain(void **state)
{
	struct http_headers seen = { 0 };

	assert_null(http_check_header(&seen, "X-Name_1", "a\tb \xc3\xa4"));
	assert_non_null(http_check_header(&seen, "", "a"));
	assert_non_null(http_check_header(&seen, "Host ", "a"));
	assert_non_null(http_check_header(&seen, "A:B", "a"));
	assert_non_null(http_check_header(&seen, "A", "a\rb"));
	assert_non_null(http_check_header(&seen, "A", "\x7f"));
}

static void content_length_is_one_number(void **state)
{
	static const char *const bad[] = { "", "+1", "-1", "1 2", "0x1", "1,1",
					   "1234567890123456789" };
	struct http_headers seen = { 0 };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		seen = (struct http_headers){ 0 };
		assert_non_null(http_check_header(&seen, "content-length", bad[i]));
	}
	seen = (struct http_headers){ 0 };
	assert_null(http_check_header(&seen, "Content-Length", "123"));
	assert_non_null(http_check_header(&seen, "CONTENT-LENGTH", "123"));
}

static void head_shows_the_length(void **state)
{
	struct http_head head = scan("PUT /x HTTP/1.1\r\ncontent-LENGTH:  \t42\r\nA: b\r\n\r\nbody");

	assert_true(head.complete && head.has_length && !head.is_v1);
	assert_int_equal(head.length, 42);
	assert_true(scan("PUT /v1/vm HTTP/1.1\nContent-Length: 7\n\n").is_v1);
}

static void unfinished_heads_show_whole_lines_only(void **state)
{
	struct http_head head = scan("PUT /x HTTP/1.1\r\nContent-Length: 4");

	assert_false(head.complete || head.has_length);
	head = scan("Content-Length: 45\r\n");
	assert_true(head.has_length && !head.complete);
	assert_false(scan("").complete);
}

static void body_is_no_part_of_the_head(void **state)
{
	struct http_head head = scan("PUT /x HTTP/1.1\r\n\r\nContent-Length: 99\r\n");

	assert_true(head.complete);
	assert_false(head.has_length);
}

static void enormous_lengths_do_not_wrap(void **state)
{
	assert_true(scan("Content-Length: 99999999999999999999999\r\n").length == UINT64_MAX);
	assert_true(scan("Content-Length: 999999999999999999\r\n").length == 999999999999999999ull);
	assert_false(scan("Content-Length: x\r\n").has_length);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_are_plain_paths),
		cmocka_unit_test(targets_end_at_their_limit),
		cmocka_unit_test(headers_are_counted),
		cmocka_unit_test(header_names_and_values_are_plain),
		cmocka_unit_test(content_length_is_one_number),
		cmocka_unit_test(head_shows_the_length),
		cmocka_unit_test(unfinished_heads_show_whole_lines_only),
		cmocka_unit_test(body_is_no_part_of_the_head),
		cmocka_unit_test(enormous_lengths_do_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
