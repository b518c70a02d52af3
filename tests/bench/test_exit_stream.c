/*
 * Recorded streams of exits: what lines mean, what is refused, what classes hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exit_stream.h"

static const char *recorded; /* path of boot-exits.txt */

static int read_text(struct exit_stream *s, const char *text)
{
	char path[] = "/tmp/exit-stream.XXXXXX";
	int fd = mkstemp(path);
	int ret;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	ret = exit_stream_read(s, path);
	unlink(path);
	return ret;
}

static void assert_exit(const struct replay_exit *e, enum replay_op op, uint64_t address,
			unsigned width, uint64_t value)
{
	assert_int_equal(e->op, op);
	assert_int_equal(e->address, address);
	assert_int_equal(e->width, width);
	assert_int_equal(e->value, value);
	assert_int_equal(e->count, 1);
}

static void each_value_is_an_exit(void **state)
{
	struct exit_stream s;

	assert_int_equal(read_text(&s, "# head\ni 70 1 a\no cf8 4 80000000 1\n"
				       "r c0001060 4 1\nw c0001064 4 3\n"), 0);
	assert_int_equal(s.count, 5);
	assert_exit(&s.exits[0], REPLAY_PIO_READ, 0x70, 1, 0x0a);
	assert_exit(&s.exits[1], REPLAY_PIO_WRITE, 0xcf8, 4, 0x80000000);
	assert_exit(&s.exits[2], REPLAY_PIO_WRITE, 0xcf8, 4, 1);
	assert_exit(&s.exits[3], REPLAY_MMIO_READ, 0xc0001060, 4, 1);
	assert_exit(&s.exits[4], REPLAY_MMIO_WRITE, 0xc0001064, 4, 3);
	exit_stream_fini(&s);
}

static void a_character_of_the_log_is_two_exits(void **state)
{
	struct exit_stream s;

	assert_int_equal(read_text(&s, "c 48 a\n"), 0);
	assert_int_equal(s.count, 4);
	assert_exit(&s.exits[0], REPLAY_PIO_READ, 0x3fd, 1, 0x60);
	assert_exit(&s.exits[1], REPLAY_PIO_WRITE, 0x3f8, 1, 'H');
	assert_exit(&s.exits[3], REPLAY_PIO_WRITE, 0x3f8, 1, '\n');
	exit_stream_fini(&s);
}

static void a_string_has_a_count(void **state)
{
	struct exit_stream s;

	assert_int_equal(read_text(&s, "o 3f8 1*16 20\n"), 0);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.exits[0].count, 16);
	assert_int_equal(s.exits[0].value, 0x20);
	exit_stream_fini(&s);
}

static void other_lines_are_refused(void **state)
{
	static const char *const lines[] = { "x 3f8 1 20\n", "o 3f8 3 20\n", "o 3f8\n", "o\n" };
	struct exit_stream s;
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(read_text(&s, lines[i]), -EINVAL);
		exit_stream_fini(&s);
	}
	assert_int_equal(exit_stream_read(&s, "/nowhere"), -ENOENT);
}

static void a_class_keeps_its_exits_in_order(void **state)
{
	struct exit_stream s;

	assert_int_equal(read_text(&s, "o 70 1 a\nc 48\ni 71 1 26\nr c0001060 4 1\n"), 0);
	assert_int_equal(exit_stream_filter(&s, "rtc"), 0);
	assert_int_equal(s.count, 2);
	assert_exit(&s.exits[0], REPLAY_PIO_WRITE, 0x70, 1, 0x0a);
	assert_exit(&s.exits[1], REPLAY_PIO_READ, 0x71, 1, 0x26);
	assert_int_equal(exit_stream_filter(&s, "no such class"), -ENOENT);
	exit_stream_fini(&s);
}

static void the_recording_has_exits_of_every_class(void **state)
{
	static const char *const classes[] = { "rtc", "serial", "virtio_status", "unknown_port" };
	struct exit_stream s;
	size_t i;

	for (i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		assert_int_equal(exit_stream_read(&s, recorded), 0);
		assert_true(s.count > 10000);
		assert_int_equal(exit_stream_filter(&s, classes[i]), 0);
		assert_true(s.count >= 10);
		exit_stream_fini(&s);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_value_is_an_exit),
		cmocka_unit_test(a_character_of_the_log_is_two_exits),
		cmocka_unit_test(a_string_has_a_count),
		cmocka_unit_test(other_lines_are_refused),
		cmocka_unit_test(a_class_keeps_its_exits_in_order),
		cmocka_unit_test(the_recording_has_exits_of_every_class),
	};

	if (argc != 2)
		return 2;
	recorded = argv[1];
	return cmocka_run_group_tests_name("bench/exit_stream", tests, NULL, NULL);
}
