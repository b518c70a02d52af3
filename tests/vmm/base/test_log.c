/*
 * The log: its lines, levels and filter, and the two ways in which it refuses
 * to be flooded or to wait.
 */
#include "tests/vmm/base/base_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/log.h"

#define TEXT_BYTES 65536

struct fixture {
	char path[64];
	char text[TEXT_BYTES];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->path, sizeof(f->path), "/tmp/lull-log-XXXXXX");
	close(mkstemp(f->path));
	*state = f;
	return log_set_target(f->path, NULL);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	log_set_target(NULL, NULL);
	log_set_level(LOG_LEVEL_INFO);
	log_set_format(false, false);
	log_set_module("");
	unlink(f->path);
	free(f);
	return 0;
}

static const char *logged(struct fixture *f)
{
	int fd = open(f->path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, f->text, sizeof(f->text) - 1);

	close(fd);
	f->text[n < 0 ? 0 : n] = '\0';
	return f->text;
}

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* 2026-11-30T20:15:01.123456789 [id:thread] text */
static void line_has_time_id_thread_and_text(void **state)
{
	const char *line;

	log_info("hello %d", 7);
	line = logged(*state);
	assert_int_equal(line[4], '-');
	assert_int_equal(line[10], 'T');
	assert_int_equal(line[19], '.');
	assert_int_equal(line[29], ' ');
	assert_memory_equal(line + 30, "[my-vm:test_base_log] hello 7\n", 30);
}

static void level_and_origin_are_shown_on_demand(void **state)
{
	const char *line;

	log_set_format(true, true);
	log_warn("w");
	line = logged(*state);
	assert_non_null(strstr(line, ":WARN:"));
	assert_non_null(strstr(line, "test_log.c:"));
}

static void lines_below_the_level_are_not_written(void **state)
{
	log_debug("not this");
	log_set_level(LOG_LEVEL_ERROR);
	log_warn("nor this");
	log_error("this");
	log_set_level(LOG_LEVEL_OFF);
	log_error("not this");
	assert_int_equal(count_lines(logged(*state)), 1);
	assert_false(log_enabled(LOG_LEVEL_ERROR));
}

static void levels_parse_in_any_case(void **state)
{
	enum log_level level = LOG_LEVEL_OFF;

	assert_int_equal(log_level_parse("Warning", &level), 0);
	assert_int_equal(level, LOG_LEVEL_WARN);
	assert_int_equal(log_level_parse("TRACE", &level), 0);
	assert_int_equal(level, LOG_LEVEL_TRACE);
	assert_int_equal(log_level_parse("off", &level), 0);
	assert_int_equal(level, LOG_LEVEL_OFF);
	assert_int_equal(log_level_parse("loud", &level), -EINVAL);
	assert_int_equal(log_level_parse("", &level), -EINVAL);
}

/* No text may forge a second line or talk to a terminal. */
static void control_bytes_are_written_as_question_marks(void **state)
{
	log_info("a\nb\x1b[31mc\rd\x7f");
	assert_int_equal(count_lines(logged(*state)), 1);
	assert_non_null(strstr(logged(*state), "a?b?[31mc?d?\n"));
}

static void long_line_is_cut_and_ended(void **state)
{
	char text[5000];
	size_t n;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_info("%s", text);
	n = strlen(logged(*state));
	assert_true(n > 500 && n <= 1024);
	assert_int_equal(((struct fixture *)*state)->text[n - 1], '\n');
}

static void one_site_is_limited_another_is_not(void **state)
{
	struct log_counters before, after;
	unsigned i;

	log_get_counters(&before);
	for (i = 0; i < 100; i++)
		log_info("flood");
	log_info("other");
	log_get_counters(&after);
	assert_int_equal(count_lines(logged(*state)), 11);
	assert_int_equal(after.rate_limited - before.rate_limited, 90);
	assert_non_null(strstr(logged(*state), "other"));
}

static void life_cycle_lines_are_not_limited(void **state)
{
	unsigned i;

	for (i = 0; i < 50; i++)
		log_always("life");
	assert_int_equal(count_lines(logged(*state)), 50);
}

static void module_filter_keeps_files_with_the_prefix(void **state)
{
	log_set_module("no/such/folder");
	log_always("not this");
	log_set_module("");
	log_always("this");
	assert_int_equal(count_lines(logged(*state)), 1);
}

static void bad_target_keeps_the_old_one(void **state)
{
	struct error err = { 0 };

	assert_int_equal(log_set_target("/no/such/dir/log", &err), -ENOENT);
	assert_non_null(strstr(err.text, "Failed to open target file: /no/such/dir/log"));
	log_always("still here");
	assert_int_equal(count_lines(logged(*state)), 1);
}

/* Nobody reads the FIFO: lines are lost and counted, the writer goes on. */
static void full_target_loses_lines_and_never_waits(void **state)
{
	struct log_counters before, after;
	struct fixture *f = *state;
	unsigned i;

	unlink(f->path);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_int_equal(log_set_target(f->path, NULL), 0);
	log_get_counters(&before);
	for (i = 0; i < 3000; i++)
		log_always("a line of some length to fill the pipe with");
	log_get_counters(&after);
	assert_true(after.missed > before.missed + 1000);
}

static void *write_lines(void *arg)
{
	unsigned i;

	for (i = 0; i < 100; i++)
		log_always("thread");
	return NULL;
}

static void lines_of_two_threads_do_not_mix(void **state)
{
	pthread_t a, b;
	const char *p;
	unsigned whole = 0;

	pthread_create(&a, NULL, write_lines, NULL);
	pthread_create(&b, NULL, write_lines, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	for (p = logged(*state); (p = strstr(p, "] thread\n")); p++)
		whole++;
	assert_int_equal(whole, 200);
	assert_int_equal(count_lines(((struct fixture *)*state)->text), 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(line_has_time_id_thread_and_text),
		T(level_and_origin_are_shown_on_demand),
		T(lines_below_the_level_are_not_written),
		T(levels_parse_in_any_case),
		T(control_bytes_are_written_as_question_marks),
		T(long_line_is_cut_and_ended),
		T(one_site_is_limited_another_is_not),
		T(life_cycle_lines_are_not_limited),
		T(module_filter_keeps_files_with_the_prefix),
		T(bad_target_keeps_the_old_one),
		T(full_target_loses_lines_and_never_waits),
		T(lines_of_two_threads_do_not_mix),
	};

	log_init("my-vm");
	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
