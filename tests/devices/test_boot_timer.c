/*
 * Boot timer: one line in the log, for one value at one offset, once.
 */
#include "tests/devices/device_test.h"

#include <fcntl.h>

#include "devices/boot_timer.h"

#define LOG_BYTES 4096

struct fixture {
	struct device *timer;
	char path[64];
	int fd;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct device_env env = { 0 };

	snprintf(f->path, sizeof(f->path), "/tmp/lull-boot-timer-XXXXXX");
	f->fd = mkstemp(f->path);
	f->timer = boot_timer_create(&env, NULL);
	*state = f;
	return f->fd >= 0 && f->timer && log_set_target(f->path, NULL) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	log_set_target(NULL, NULL);
	f->timer->ops->destroy(f->timer);
	close(f->fd);
	unlink(f->path);
	free(f);
	return 0;
}

static void wr(struct fixture *f, unsigned offset, unsigned value)
{
	assert_int_equal(boot_timer_bus_ops.write(f->timer, offset, 1, value), BUS_DONE);
}

/* What the log holds now. */
static const char *logged(struct fixture *f)
{
	static char text[LOG_BYTES];
	ssize_t n = pread(f->fd, text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

static void other_values_and_offsets_log_nothing(void **state)
{
	unsigned v;

	for (v = 0; v < 256; v++) {
		if (v != BOOT_TIMER_MAGIC)
			wr(*state, 0, v);
		wr(*state, 1, v);
	}
	assert_string_equal(logged(*state), "");
}

static void magic_logs_the_time_once(void **state)
{
	const char *line;

	wr(*state, 0, BOOT_TIMER_MAGIC);
	wr(*state, 0, BOOT_TIMER_MAGIC);
	line = strstr(logged(*state), "Guest-boot-time = ");
	assert_non_null(line);
	assert_null(strstr(line + 1, "Guest-boot-time"));
	assert_non_null(strstr(line, " us "));
	assert_non_null(strstr(line, " ms, "));
	assert_non_null(strstr(line, " CPU us "));
	assert_non_null(strstr(line, " CPU ms\n"));
}

static void time_counts_from_creation(void **state)
{
	const char *line;
	char *end;

	usleep(20000);
	wr(*state, 0, BOOT_TIMER_MAGIC);
	line = strstr(logged(*state), "Guest-boot-time = ");
	assert_non_null(line);
	assert_true(strtoull(line + strlen("Guest-boot-time = "), &end, 10) >= 20000);
	assert_true(strtoull(end + strlen(" us "), NULL, 10) >= 20);
}

static void reads_zero(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(boot_timer_bus_ops.read(f->timer, 0, 1), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(other_values_and_offsets_log_nothing),
		T(magic_logs_the_time_once),
		T(time_counts_from_creation),
		T(reads_zero),
	};

	log_init("test");
	return cmocka_run_group_tests_name("boot_timer", tests, NULL, NULL);
}
