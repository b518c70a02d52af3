/* Metrics: groups, sums, differences, targets that are slow or not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/metrics.h"

struct block {
	metric read_bytes;
	metric read_min;
	metric extra;
};

static const struct metric_field block_fields[] = {
	METRIC(struct block, read_bytes),
	{ "read_agg.min_us", METRIC_STORE, offsetof(struct block, read_min) },
	METRIC(struct block, extra),
	{ 0 },
};

static const struct metric_field other_fields[] = {
	METRIC(struct block, extra),
	{ 0 },
};

struct fixture {
	struct metrics *m;
	struct buf out;
	char dir[40];
	char path[64];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	f->m = metrics_new();
	buf_init(&f->out, 1u << 20);
	snprintf(f->dir, sizeof(f->dir), "/tmp/lull-metrics-XXXXXX");
	if (!f->m || !mkdtemp(f->dir))
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/out", f->dir);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	metrics_free(f->m);
	buf_fini(&f->out);
	unlink(f->path);
	rmdir(f->dir);
	free(f);
	return 0;
}

static const char *format(struct fixture *f)
{
	buf_clear(&f->out);
	assert_int_equal(metrics_format(f->m, &f->out), 0);
	return buf_text(&f->out);
}

#define assert_has(text, part) assert_non_null(strstr(text, part))

/* What lies in the file now. */
static const char *written(struct fixture *f)
{
	int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char part[4096];
	ssize_t got;

	buf_clear(&f->out);
	while ((got = read(fd, part, sizeof(part))) > 0)
		buf_append(&f->out, part, (size_t)got);
	close(fd);
	return buf_text(&f->out);
}

static void all_known_groups_are_always_there(void **state)
{
	static const char *const groups[] = {
		"api_server", "balloon", "block", "deprecated_api", "entropy", "get_api_requests",
		"i8042", "interrupts", "latencies_us", "logger", "memory_hotplug", "mmds", "net",
		"patch_api_requests", "pmem", "put_api_requests", "seccomp", "signals", "uart",
		"vcpu", "vmm", "vsock",
	};
	const char *text = format(*state);
	char want[64];
	size_t i;

	assert_ptr_equal(strstr(text, "{\"utc_timestamp_ms\":"), text);
	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		snprintf(want, sizeof(want), ",\"%s\":{\"", groups[i]);
		assert_has(text, want);
	}
	assert_has(text, "\"remaining_reqs_count\":0,\"read_agg\":{\"min_us\":0,\"max_us\":0,"
			 "\"sum_us\":0},\"write_agg\":{\"min_us\":0,\"max_us\":0,\"sum_us\":0}}");
}

static void groups_of_one_name_are_added_up(void **state)
{
	struct fixture *f = *state;
	struct block a = { 1, 5, 7 }, b = { 10, 6, 70 };
	const char *text;

	assert_int_equal(metrics_add_group(f->m, "block", block_fields, &a), 0);
	assert_int_equal(metrics_add_group(f->m, "block", block_fields, &b), 0);
	assert_int_equal(metrics_add_group(f->m, "block_a", block_fields, &a), 0);
	text = format(f);
	assert_has(text, "\"read_bytes\":11,");
	assert_has(text, "\"read_agg\":{\"min_us\":11,");
	assert_has(text, "\"extra\":77}");
	assert_has(strstr(text, "\"block_a\":{\"activate_fails\":0,"), "\"read_bytes\":1,");
}

static void other_fields_under_one_name_are_refused(void **state)
{
	struct fixture *f = *state;
	struct block a = { 0 };

	assert_int_equal(metrics_add_group(f->m, "block", block_fields, &a), 0);
	assert_int_equal(metrics_add_group(f->m, "block", other_fields, &a), -EINVAL);
}

static void unknown_groups_are_shown_behind(void **state)
{
	struct fixture *f = *state;
	struct block a = { .extra = 3 };

	assert_int_equal(metrics_add_group(f->m, "spin", other_fields, &a), 0);
	assert_has(format(f), ",\"spin\":{\"extra\":3}}");
}

static void removed_groups_keep_what_they_counted(void **state)
{
	struct fixture *f = *state;
	struct block a = { .read_bytes = 4 }, b = { .read_bytes = 5 };

	assert_int_equal(metrics_add_group(f->m, "block", block_fields, &a), 0);
	metrics_remove_group(f->m, &a);
	a.read_bytes = 1000;
	assert_int_equal(metrics_add_group(f->m, "block", block_fields, &b), 0);
	assert_has(format(f), "\"read_bytes\":9,");
	metrics_remove_group(f->m, &a);
	assert_has(format(f), "\"read_bytes\":9,");
}

static void names_are_copied(void **state)
{
	struct fixture *f = *state;
	char name[] = "block_x";
	struct block a = { 0 };

	assert_int_equal(metrics_add_group(f->m, name, block_fields, &a), 0);
	name[6] = 'y';
	assert_has(format(f), "\"block_x\":{");
}

static void counts_are_differences_and_stores_are_not(void **state)
{
	struct fixture *f = *state;
	struct block a = { 100, 200, 0 };
	struct error err;

	assert_int_equal(metrics_add_group(f->m, "block", block_fields, &a), 0);
	assert_int_equal(metrics_set_target(f->m, f->path, &err), 0);
	assert_int_equal(metrics_flush(f->m, &err), 0);
	metric_add(&a.read_bytes, 7);
	assert_has(format(f), "\"read_bytes\":7,");
	assert_int_equal(metrics_flush(f->m, &err), 0);
	assert_has(format(f), "\"read_bytes\":0,");
	assert_has(written(f), "\"read_bytes\":100,");
	assert_has(strchr(written(f), '\n'), "\"read_bytes\":7,");
	assert_has(strchr(written(f), '\n'), "\"read_agg\":{\"min_us\":200,");
}

static void every_flush_is_one_line(void **state)
{
	struct fixture *f = *state;
	struct error err;
	const char *text;
	size_t i, lines = 0;

	assert_int_equal(metrics_set_target(f->m, f->path, &err), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(metrics_flush(f->m, &err), 0);
	for (text = written(f); *text; text++)
		lines += *text == '\n';
	assert_int_equal(lines, 3);
}

static void flush_without_target_does_nothing(void **state)
{
	struct fixture *f = *state;
	struct block a = { .read_bytes = 3 };
	struct error err;

	assert_int_equal(metrics_add_group(f->m, "block", block_fields, &a), 0);
	assert_int_equal(metrics_flush(f->m, &err), 0);
	assert_has(format(f), "\"read_bytes\":3,");
}

static void target_is_set_once(void **state)
{
	struct fixture *f = *state;
	struct error err;

	assert_int_equal(metrics_set_target(f->m, f->path, &err), 0);
	assert_int_equal(metrics_set_target(f->m, f->path, &err), -EALREADY);
	assert_string_equal(err.text, "Cannot initialize the metrics system due to bad user input: "
				      "Reinitialization of metrics not allowed.");
}

static void unusable_target_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct error err;

	assert_int_equal(metrics_set_target(f->m, "/nonexistent/m", &err), -ENOENT);
	assert_has(err.text, "bad user input: No such file or directory (os error 2) "
			     "/nonexistent/m");
	assert_int_equal(metrics_set_target(f->m, f->path, &err), 0);
}

static void fifo_without_reader_never_blocks(void **state)
{
	struct fixture *f = *state;
	struct error err;
	int i;

	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_int_equal(metrics_set_target(f->m, f->path, &err), 0);
	for (i = 0; i < 50; i++)
		assert_int_equal(metrics_flush(f->m, &err), 0);
}

/* Each line that comes out of a full FIFO is whole, and lost lines are counted. */
static void full_fifo_loses_whole_lines(void **state)
{
	struct fixture *f = *state;
	const char *text, *line;
	struct error err;
	int i;

	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_int_equal(metrics_set_target(f->m, f->path, &err), 0);
	for (i = 0; i < 50; i++)
		assert_int_equal(metrics_flush(f->m, &err), 0);
	assert_memory_equal(written(f), "{\"utc", 5);
	assert_int_equal(metrics_flush(f->m, &err), 0);
	text = written(f); /* the rest of the line that fitted in part, and the new one */
	assert_non_null(strchr(text, '\n'));
	for (line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n'))
		assert_memory_equal(line + 1, "{\"utc", 5);
	assert_has(text, "\"missed_metrics_count\":");
	assert_null(strstr(text, "\"missed_metrics_count\":0,"));
}

static void lost_lines_keep_their_counts(void **state)
{
	struct fixture *f = *state;
	struct block a = { 0 };
	struct error err;
	int i;

	assert_int_equal(metrics_add_group(f->m, "block", block_fields, &a), 0);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_int_equal(metrics_set_target(f->m, f->path, &err), 0);
	for (i = 0; i < 50; i++)
		metrics_flush(f->m, &err);
	metric_add(&a.read_bytes, 42);
	metrics_flush(f->m, &err);
	assert_has(format(f), "\"read_bytes\":42,");
}

static void broken_target_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct error err;

	assert_int_equal(metrics_set_target(f->m, "/dev/full", &err), 0);
	assert_int_equal(metrics_flush(f->m, &err), -ENOSPC);
	assert_has(err.text, "Cannot write the metrics: No space left on device");
}

static void format_reports_a_small_buffer(void **state)
{
	struct fixture *f = *state;
	struct buf small;

	buf_init(&small, 100);
	assert_int_equal(metrics_format(f->m, &small), -ENOSPC);
	buf_fini(&small);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(all_known_groups_are_always_there),
		TEST(groups_of_one_name_are_added_up),
		TEST(other_fields_under_one_name_are_refused),
		TEST(unknown_groups_are_shown_behind),
		TEST(removed_groups_keep_what_they_counted),
		TEST(names_are_copied),
		TEST(counts_are_differences_and_stores_are_not),
		TEST(every_flush_is_one_line),
		TEST(flush_without_target_does_nothing),
		TEST(target_is_set_once),
		TEST(unusable_target_is_an_error),
		TEST(fifo_without_reader_never_blocks),
		TEST(full_fifo_loses_whole_lines),
		TEST(lost_lines_keep_their_counts),
		TEST(broken_target_is_an_error),
		TEST(format_reports_a_small_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
