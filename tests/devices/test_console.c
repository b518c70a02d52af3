/*
 * The console behind a serial port, with its thread: output in order and
 * without loss, sinks that refuse it, sockets, slow guests, bad paths.
 */
#include "tests/devices/device_test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "devices/uart16550.h"
#include "vmm/base/fd.h"
#include "vmm/base/lock.h"
#include "vmm/base/ratelimit.h"
#include "vmm/device_thread.h"

#define SECOND 1000000000ull
#define REG_DATA 0
#define REG_LSR 5

struct fixture {
	struct spy_irq irq;
	struct metrics *metrics;
	struct device *uart;
	char dir[64];
	struct serial_config config;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	spy_irq_init(&f->irq);
	f->metrics = metrics_new();
	snprintf(f->dir, sizeof(f->dir), "/tmp/lull-console-XXXXXX");
	*state = f;
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(f->config.path, sizeof(f->config.path), "%s/console", f->dir);
	return 0;
}

static void destroy(struct fixture *f)
{
	if (f->uart)
		f->uart->ops->destroy(f->uart);
	f->uart = NULL;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	destroy(f);
	metrics_free(f->metrics);
	unlink(f->config.path);
	rmdir(f->dir);
	free(f);
	return lock_order_violations() == 0 ? 0 : -1;
}

static int create(struct fixture *f, enum console_kind kind, struct error *err)
{
	struct device_env env = { .metrics = f->metrics };

	f->config.console = kind;
	f->uart = uart16550_create(&env, &f->config, &f->irq.line, err);
	return f->uart ? 0 : err->code;
}

static void start(struct fixture *f, enum console_kind kind)
{
	struct error err = { 0 };

	assert_int_equal(create(f, kind, &err), 0);
	assert_int_equal(f->uart->ops->start(f->uart, &err), 0);
	assert_non_null(f->uart->thread);
}

static void guest_puts(struct fixture *f, unsigned first, unsigned n)
{
	unsigned i;

	for (i = first; i < first + n; i++)
		uart16550_bus_ops.write(f->uart, REG_DATA, 1, i % 251);
}

/* The next byte that the guest receives; -1 if none comes in a second. */
static int guest_gets(struct fixture *f)
{
	uint64_t end = ratelimit_now() + SECOND;

	while (!(uart16550_bus_ops.read(f->uart, REG_LSR, 1) & 1)) {
		if (ratelimit_now() > end)
			return -1;
		usleep(100);
	}
	return (int)uart16550_bus_ops.read(f->uart, REG_DATA, 1);
}

static int dial(struct fixture *f)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(addr.sun_path, f->config.path, strlen(f->config.path));
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* True if `fd` delivers the bytes that guest_puts(f, first, n) sent. */
static bool host_gets(int fd, unsigned first, unsigned n)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	unsigned i;

	for (i = first; i < first + n; i++) {
		uint8_t byte;

		if (poll(&p, 1, 2000) <= 0 || read(fd, &byte, 1) != 1 || byte != i % 251)
			return false;
	}
	return true;
}

static uint64_t count(struct fixture *f, const char *name)
{
	return count_of(f->metrics, "uart", name);
}

static void flood_to_a_file_loses_nothing(void **state)
{
	struct fixture *f = *state;
	int fd;

	start(f, CONSOLE_FILE);
	guest_puts(f, 0, 200000);
	destroy(f);
	fd = open(f->config.path, O_RDONLY);
	assert_int_equal(count(f, "missed_write_count"), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 200000);
	lseek(fd, 199000, SEEK_SET);
	assert_true(host_gets(fd, 199000, 1000));
	close(fd);
}

/* A byte does not wait for others, nor for the end. */
static void single_byte_goes_out_promptly(void **state)
{
	struct fixture *f = *state;
	struct stat st = { 0 };
	uint64_t end = ratelimit_now() + SECOND;

	start(f, CONSOLE_FILE);
	guest_puts(f, 0, 1);
	while (st.st_size == 0 && ratelimit_now() < end)
		stat(f->config.path, &st);
	assert_int_equal(st.st_size, 1);
}

/* A flood is not one write a byte. */
static void flood_is_written_in_batches(void **state)
{
	struct fixture *f = *state;

	start(f, CONSOLE_FILE);
	guest_puts(f, 0, 20000);
	destroy(f);
	assert_true(count(f, "flush_count") < 2000);
	assert_int_equal(count(f, "write_count"), 20000);
}

/* Nobody reads the pipe: the guest goes on, bytes are dropped and counted. */
static void full_pipe_never_holds_the_guest_up(void **state)
{
	struct fixture *f = *state;
	uint64_t begin;

	assert_int_equal(mkfifo(f->config.path, 0600), 0);
	start(f, CONSOLE_FILE);
	begin = ratelimit_now();
	guest_puts(f, 0, 300000);
	assert_true(ratelimit_now() - begin < 10 * SECOND);
	assert_true(count(f, "missed_write_count") >= 300000 - 65536 - LIMIT_SERIAL_OUTPUT - 4096);
	assert_true(count(f, "missed_write_count") < 300000);
}

static void drained_pipe_takes_the_output_that_waited(void **state)
{
	struct fixture *f = *state;
	int fd;

	assert_int_equal(mkfifo(f->config.path, 0600), 0);
	start(f, CONSOLE_FILE);
	fd = open(f->config.path, O_RDONLY);
	assert_int_equal(fcntl(fd, F_SETPIPE_SZ, 4096), 4096);
	guest_puts(f, 0, 12000); /* more than the pipe holds, less than the ring */
	usleep(10000);
	assert_true(host_gets(fd, 0, 12000));
	guest_puts(f, 12000, 100);
	assert_true(host_gets(fd, 12000, 100));
	assert_int_equal(count(f, "missed_write_count"), 0);
	close(fd);
}

static void rate_limit_drops_and_counts(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	f->config.rate_limiter = (struct token_bucket_config){
		.size = 100, .refill_time_ms = 3600000, .one_time_burst = 50, .present = true
	};
	start(f, CONSOLE_FILE);
	guest_puts(f, 0, 1000);
	destroy(f);
	assert_int_equal(stat(f->config.path, &st), 0);
	assert_in_range(st.st_size, 150, 160);
	assert_int_equal(count(f, "rate_limiter_dropped_bytes"), 1000 - st.st_size);
	assert_int_equal(count(f, "write_count"), 1000);
}

/* A refill time that does not fit into nanoseconds is as good as none. */
static void absurd_rate_limit_is_survived(void **state)
{
	struct fixture *f = *state;

	f->config.rate_limiter = (struct token_bucket_config){
		.size = UINT64_MAX, .refill_time_ms = UINT64_MAX, .present = true
	};
	start(f, CONSOLE_FILE);
	guest_puts(f, 0, 100);
	assert_int_equal(count(f, "rate_limiter_dropped_bytes"), 0);
}

static void socket_carries_both_ways(void **state)
{
	struct fixture *f = *state;
	int fd;

	start(f, CONSOLE_SOCKET);
	fd = dial(f);
	guest_puts(f, 0, 1000);
	assert_true(host_gets(fd, 0, 1000));
	assert_int_equal(write(fd, "hi", 2), 2);
	assert_int_equal(guest_gets(f), 'h');
	assert_int_equal(guest_gets(f), 'i');
	close(fd);
}

static void next_peer_is_served_when_one_leaves(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	start(f, CONSOLE_SOCKET);
	for (i = 0; i < 3; i++) {
		int fd = dial(f);

		assert_int_equal(write(fd, "x", 1), 1);
		assert_int_equal(guest_gets(f), 'x');
		guest_puts(f, i, 1);
		assert_true(host_gets(fd, i, 1));
		close(fd);
	}
}

static void second_peer_waits_for_the_first(void **state)
{
	struct fixture *f = *state;
	int first, second;

	start(f, CONSOLE_SOCKET);
	first = dial(f);
	assert_int_equal(write(first, "1", 1), 1);
	assert_int_equal(guest_gets(f), '1');
	second = dial(f);
	assert_int_equal(write(second, "2", 1), 1);
	usleep(20000);
	assert_int_equal(uart16550_bus_ops.read(f->uart, REG_LSR, 1) & 1, 0);
	close(first);
	assert_int_equal(guest_gets(f), '2');
	close(second);
}

/* What the guest says before anyone listens is kept, the newest of it. */
static void peer_that_comes_late_gets_the_newest_output(void **state)
{
	struct fixture *f = *state;
	uint64_t dropped, end = ratelimit_now() + 5 * SECOND;
	unsigned i;
	int fd;

	start(f, CONSOLE_SOCKET);
	for (i = 0; i < 100000; i += 1000) {
		guest_puts(f, i, 1000);
		usleep(1000);
	}
	usleep(20000);
	dropped = count(f, "missed_write_count");
	assert_true(dropped >= 100000 - LIMIT_SERIAL_OUTPUT);
	fd = dial(f);
	assert_true(host_gets(fd, (unsigned)dropped, 100000 - (unsigned)dropped));
	assert_true(ratelimit_now() < end);
	close(fd);
}

/* More than we hold stays with the host until the guest has read. */
static void slow_guest_gets_all_input(void **state)
{
	struct fixture *f = *state;
	char text[5000];
	size_t i;
	int fd;

	for (i = 0; i < sizeof(text); i++)
		text[i] = (char)('0' + i % 10);
	start(f, CONSOLE_SOCKET);
	fd = dial(f);
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	usleep(10000);
	for (i = 0; i < sizeof(text); i++)
		assert_int_equal(guest_gets(f), text[i]);
	close(fd);
}

/* A file cannot be polled: only the guest's reading tells when to go on. */
static void slow_guest_gets_all_of_a_file_on_stdin(void **state)
{
	struct fixture *f = *state;
	int saved = dup(STDIN_FILENO), fd = open(f->config.path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	char text[1000];
	size_t i;

	for (i = 0; i < sizeof(text); i++)
		text[i] = (char)('0' + i % 10);
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	lseek(fd, 0, SEEK_SET);
	dup2(fd, STDIN_FILENO);
	start(f, CONSOLE_STDIO);
	usleep(10000);
	for (i = 0; i < sizeof(text); i++)
		assert_int_equal(guest_gets(f), text[i]);
	destroy(f);
	dup2(saved, STDIN_FILENO);
	close(saved);
	close(fd);
}

/* `printf cmd | socat - UNIX:console`: the output goes on after the end of the input. */
static void half_closed_peer_still_gets_output(void **state)
{
	struct fixture *f = *state;
	int fd;

	start(f, CONSOLE_SOCKET);
	fd = dial(f);
	assert_int_equal(write(fd, "x", 1), 1);
	shutdown(fd, SHUT_WR);
	assert_int_equal(guest_gets(f), 'x');
	usleep(20000);
	guest_puts(f, 0, 1000);
	assert_true(host_gets(fd, 0, 1000));
	close(fd);
	fd = dial(f); /* served without any output having failed */
	assert_int_equal(write(fd, "y", 1), 1);
	assert_int_equal(guest_gets(f), 'y');
	close(fd);
}

static void half_closed_peer_costs_no_processor_time(void **state)
{
	struct fixture *f = *state;
	struct timespec begin, end;
	int fd;

	start(f, CONSOLE_SOCKET);
	fd = dial(f);
	shutdown(fd, SHUT_WR);
	usleep(20000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	usleep(200000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_true((end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec <
		    50000000);
	close(fd);
}

static void call_quiesce(void *arg)
{
	struct device *d = arg;

	d->ops->quiesce(d);
}

static void call_unquiesce(void *arg)
{
	struct device *d = arg;

	d->ops->unquiesce(d);
}

static void quiesced_port_receives_nothing(void **state)
{
	struct fixture *f = *state;
	int fd;

	start(f, CONSOLE_SOCKET);
	fd = dial(f);
	assert_int_equal(write(fd, "a", 1), 1);
	assert_int_equal(guest_gets(f), 'a');
	assert_int_equal(device_thread_call(f->uart->thread, call_quiesce, f->uart), 0);
	assert_int_equal(write(fd, "b", 1), 1);
	guest_puts(f, 0, 10); /* wakes the thread, which must not start reading */
	usleep(20000);
	assert_int_equal(uart16550_bus_ops.read(f->uart, REG_LSR, 1) & 1, 0);
	assert_int_equal(device_thread_call(f->uart->thread, call_unquiesce, f->uart), 0);
	assert_int_equal(guest_gets(f), 'b');
	close(fd);
}

static void socket_is_private_and_removed_at_the_end(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	start(f, CONSOLE_SOCKET);
	assert_int_equal(stat(f->config.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	destroy(f);
	assert_int_equal(stat(f->config.path, &st), -1);
}

static void existing_socket_path_is_refused_and_kept(void **state)
{
	struct fixture *f = *state;
	struct error err = { 0 };
	struct stat st;

	close(open(f->config.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(create(f, CONSOLE_SOCKET, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, f->config.path));
	assert_int_equal(stat(f->config.path, &st), 0);
}

struct absence {
	atomic_bool begun, over;
};

static void stay_away(void *arg)
{
	struct absence *a = arg;

	atomic_store(&a->begun, true);
	while (!atomic_load(&a->over))
		usleep(1000);
}

/* A vCPU that waits for a late thread is in the report under the port's name. */
static void a_wait_for_room_names_the_port(void **state)
{
	struct fixture *f = *state;
	struct lock_report_wait rows[8];
	struct absence a = { false, false };
	size_t i, count, found = 0;

	start(f, CONSOLE_FILE);
	event_loop_post(device_thread_loop(f->uart->thread), stay_away, &a);
	while (!atomic_load(&a.begun))
		usleep(1000);
	guest_puts(f, 0, LIMIT_SERIAL_OUTPUT + 1);
	atomic_store(&a.over, true);
	count = lock_report_waits(rows, 8);
	for (i = 0; i < count && i < 8; i++)
		found += !strcmp(rows[i].type, "console room") && !strcmp(rows[i].object, "serial");
	assert_int_equal(found, 1);
	destroy(f); /* the thread looks at `a` until then */
}

/* The longest path that fits is taken, one byte more is not. */
static void long_socket_path_is_refused(void **state)
{
	struct fixture *f = *state;
	struct error err = { 0 };
	size_t used = strlen(f->config.path);

	memset(f->config.path + used, 'x', 108 - used);
	f->config.path[108] = '\0';
	assert_int_equal(create(f, CONSOLE_SOCKET, &err), -ENAMETOOLONG);
	f->config.path[107] = '\0';
	assert_int_equal(create(f, CONSOLE_SOCKET, &err), 0);
}

static void directory_is_refused_as_a_file(void **state)
{
	struct fixture *f = *state;
	struct error err = { 0 };

	snprintf(f->config.path, sizeof(f->config.path), "%s", f->dir);
	assert_int_equal(create(f, CONSOLE_FILE, &err), -EISDIR);
	assert_non_null(strstr(err.text, "serial: cannot open"));
}

static void file_in_a_missing_directory_is_refused(void **state)
{
	struct fixture *f = *state;
	struct error err = { 0 };

	snprintf(f->config.path, sizeof(f->config.path), "%s/none/console", f->dir);
	assert_int_equal(create(f, CONSOLE_FILE, &err), -ENOENT);
	assert_non_null(strstr(err.text, f->config.path));
}

static void port_that_never_started_is_destroyed(void **state)
{
	struct fixture *f = *state;
	struct error err;

	assert_int_equal(create(f, CONSOLE_FILE, &err), 0);
	guest_puts(f, 0, 2 * LIMIT_SERIAL_OUTPUT);
	assert_int_equal(count(f, "missed_write_count"), LIMIT_SERIAL_OUTPUT);
}

static void no_console_needs_no_thread(void **state)
{
	struct fixture *f = *state;
	struct error err;

	assert_int_equal(create(f, CONSOLE_NONE, &err), 0);
	assert_int_equal(f->uart->ops->start(f->uart, &err), 0);
	assert_null(f->uart->thread);
	f->uart->ops->quiesce(f->uart);
	f->uart->ops->unquiesce(f->uart);
	assert_string_equal(f->uart->ops->status(f->uart), "active");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(flood_to_a_file_loses_nothing),
		T(single_byte_goes_out_promptly),
		T(flood_is_written_in_batches),
		T(full_pipe_never_holds_the_guest_up),
		T(drained_pipe_takes_the_output_that_waited),
		T(rate_limit_drops_and_counts),
		T(absurd_rate_limit_is_survived),
		T(socket_carries_both_ways),
		T(next_peer_is_served_when_one_leaves),
		T(second_peer_waits_for_the_first),
		T(peer_that_comes_late_gets_the_newest_output),
		T(slow_guest_gets_all_input),
		T(slow_guest_gets_all_of_a_file_on_stdin),
		T(half_closed_peer_still_gets_output),
		T(half_closed_peer_costs_no_processor_time),
		T(quiesced_port_receives_nothing),
		T(a_wait_for_room_names_the_port),
		T(socket_is_private_and_removed_at_the_end),
		T(existing_socket_path_is_refused_and_kept),
		T(long_socket_path_is_refused),
		T(directory_is_refused_as_a_file),
		T(file_in_a_missing_directory_is_refused),
		T(port_that_never_started_is_destroyed),
		T(no_console_needs_no_thread),
	};

	log_init("test");
	return cmocka_run_group_tests_name("console", tests, NULL, NULL);
}
