/*
 * The command line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "vmm/limits.h"
#include "vmm/options.h"

#define WORDS(...) ((const char *[]){ "lulld", __VA_ARGS__, NULL })

static struct options o;
static struct error err;

static int parse(const char *const *words)
{
	char *argv[32];
	int argc = 0;

	for (; words[argc]; argc++)
		argv[argc] = (char *)(uintptr_t)words[argc];
	argv[argc] = NULL;
	err.text[0] = '\0';
	return options_parse(&o, argc, argv, &err);
}

static void no_option_leaves_the_defaults(void **state)
{
	const char *words[] = { "lulld", NULL };

	assert_int_equal(parse(words), 0);
	assert_null(o.api_sock);
	assert_null(o.id);
	assert_false(o.no_api);
	assert_int_equal(o.max_payload, LIMIT_API_BODY);
}

static void values_and_flags_are_taken(void **state)
{
	assert_int_equal(parse(WORDS("--api-sock", "/tmp/s", "--id", "vm-1", "--boot-timer",
				     "--level", "Debug", "--show-level", "--log-path", "l",
				     "--metrics-path", "m")),
			 0);
	assert_string_equal(o.api_sock, "/tmp/s");
	assert_string_equal(o.id, "vm-1");
	assert_true(o.boot_timer);
	assert_true(o.show_level);
	assert_string_equal(o.level, "Debug");
	assert_string_equal(o.log_path, "l");
	assert_string_equal(o.metrics_path, "m");
}

static void the_big_lock_is_off_unless_asked_for(void **state)
{
	assert_int_equal(parse(WORDS("--id", "a")), 0);
	assert_false(o.big_lock);
	assert_int_equal(parse(WORDS("--big-lock")), 0);
	assert_true(o.big_lock);
	assert_int_equal(parse(WORDS("--big-lock", "--big-lock")), -EINVAL);
}

/* What launchers of Firecracker pass and we have no use for. */
static void options_of_launchers_are_accepted(void **state)
{
	assert_int_equal(parse(WORDS("--no-seccomp", "--start-time-us", "1", "--start-time-cpu-us",
				     "2", "--parent-cpu-time-us", "3")),
			 0);
	assert_true(o.no_seccomp);
}

static void an_unknown_option_is_refused_and_named(void **state)
{
	assert_int_equal(parse(WORDS("--nonsense")), -EINVAL);
	assert_non_null(strstr(err.text, "--nonsense"));
}

static void a_word_that_is_no_option_is_refused(void **state)
{
	assert_int_equal(parse(WORDS("kernel")), -EINVAL);
	assert_non_null(strstr(err.text, "kernel"));
	assert_int_equal(parse(WORDS("-h")), -EINVAL);
}

static void a_value_behind_an_equals_sign_is_refused(void **state)
{
	assert_int_equal(parse(WORDS("--id=vm")), -EINVAL);
}

static void an_option_given_twice_is_refused(void **state)
{
	assert_int_equal(parse(WORDS("--id", "a", "--id", "a")), -EINVAL);
	assert_non_null(strstr(err.text, "twice"));
	assert_int_equal(parse(WORDS("--boot-timer", "--boot-timer")), -EINVAL);
}

static void a_missing_value_is_refused(void **state)
{
	assert_int_equal(parse(WORDS("--id")), -EINVAL);
	assert_int_equal(parse(WORDS("--id", "--no-seccomp")), -EINVAL);
	assert_non_null(strstr(err.text, "--id"));
}

static void words_after_two_dashes_are_not_ours(void **state)
{
	assert_int_equal(parse(WORDS("--id", "a", "--", "--nonsense")), 0);
}

static void an_id_is_letters_digits_and_hyphens(void **state)
{
	assert_int_equal(parse(WORDS("--id", "aZ-09")), 0);
	assert_int_equal(parse(WORDS("--id", "")), -EINVAL);
	assert_int_equal(parse(WORDS("--id", "a_b")), -EINVAL);
	assert_int_equal(parse(WORDS("--id", "a/b")), -EINVAL);
	assert_int_equal(parse(WORDS("--id", "a\nb")), -EINVAL);
}

static void an_id_has_a_longest_length(void **state)
{
	char id[LIMIT_ID + 2];

	memset(id, 'a', sizeof(id));
	id[LIMIT_ID] = '\0';
	assert_int_equal(parse(WORDS("--id", id)), 0);
	id[LIMIT_ID] = 'a';
	id[LIMIT_ID + 1] = '\0';
	assert_int_equal(parse(WORDS("--id", id)), -EINVAL);
}

static void the_payload_limit_is_a_number_in_its_range(void **state)
{
	assert_int_equal(parse(WORDS("--http-api-max-payload-size", "1")), 0);
	assert_int_equal(o.max_payload, 1);
	assert_int_equal(parse(WORDS("--http-api-max-payload-size", "1048576")), 0);
	assert_int_equal(parse(WORDS("--http-api-max-payload-size", "1048577")), -EINVAL);
	assert_int_equal(parse(WORDS("--http-api-max-payload-size", "0")), -EINVAL);
	assert_int_equal(parse(WORDS("--http-api-max-payload-size", "-1")), -EINVAL);
	assert_int_equal(parse(WORDS("--http-api-max-payload-size", "10k")), -EINVAL);
	assert_int_equal(parse(WORDS("--http-api-max-payload-size", "")), -EINVAL);
	assert_int_equal(parse(WORDS("--http-api-max-payload-size", "99999999999999999999")),
			 -EINVAL);
}

static void no_api_needs_a_config_file_and_no_socket(void **state)
{
	assert_int_equal(parse(WORDS("--no-api")), -EINVAL);
	assert_int_equal(parse(WORDS("--no-api", "--config-file", "c")), 0);
	assert_int_equal(parse(WORDS("--no-api", "--config-file", "c", "--api-sock", "s")),
			 -EINVAL);
}

/* Whatever else is wrong: who asks for help or the version gets it. */
static void help_and_version_skip_the_checks(void **state)
{
	assert_int_equal(parse(WORDS("--no-api", "--version")), 0);
	assert_true(o.version);
	assert_int_equal(parse(WORDS("--id", "?", "--help")), 0);
	assert_true(o.help);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_option_leaves_the_defaults),
		cmocka_unit_test(values_and_flags_are_taken),
		cmocka_unit_test(the_big_lock_is_off_unless_asked_for),
		cmocka_unit_test(options_of_launchers_are_accepted),
		cmocka_unit_test(an_unknown_option_is_refused_and_named),
		cmocka_unit_test(a_word_that_is_no_option_is_refused),
		cmocka_unit_test(a_value_behind_an_equals_sign_is_refused),
		cmocka_unit_test(an_option_given_twice_is_refused),
		cmocka_unit_test(a_missing_value_is_refused),
		cmocka_unit_test(words_after_two_dashes_are_not_ours),
		cmocka_unit_test(an_id_is_letters_digits_and_hyphens),
		cmocka_unit_test(an_id_has_a_longest_length),
		cmocka_unit_test(the_payload_limit_is_a_number_in_its_range),
		cmocka_unit_test(no_api_needs_a_config_file_and_no_socket),
		cmocka_unit_test(help_and_version_skip_the_checks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
