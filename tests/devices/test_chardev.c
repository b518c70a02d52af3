/*
 * Host side of a console, on the test's own event loop: standard input and
 * output of every kind, files, pseudo terminals, and what is put back.
 */
#include "tests/devices/device_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

#include "devices/chardev.h"
#include "vmm/base/fd.h"

#define TURN_NS 30000000ull

struct fixture {
	struct chardev c;
	struct event_loop *loop;
	struct event_source *stop;
	int saved_in, saved_out;
	char got[4096];
	size_t n, room;
	bool endless; /* what is taken leaves the room as it was */
	unsigned inputs, writables;
	char path[64];
};

static size_t on_input(void *user, const uint8_t *data, size_t n)
{
	struct fixture *f = user;

	assert_true(n <= f->room && f->n + n < sizeof(f->got));
	memcpy(f->got + f->n, data, n);
	f->n += n;
	if (!f->endless)
		f->room -= n;
	f->inputs++;
	return f->room;
}

static void on_writable(void *user)
{
	((struct fixture *)user)->writables++;
}

static const struct chardev_ops ops = { .input = on_input, .writable = on_writable };

static void on_stop(void *arg)
{
	event_loop_stop(((struct fixture *)arg)->loop);
}

/* Lets the loop run for a moment. */
static void turn(struct fixture *f)
{
	event_source_arm(f->stop, TURN_NS);
	event_loop_run(f->loop);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	snprintf(f->path, sizeof(f->path), "/tmp/lull-chardev-XXXXXX");
	fd = mkstemp(f->path);
	close(fd);
	f->saved_in = dup(STDIN_FILENO);
	f->saved_out = dup(STDOUT_FILENO);
	f->loop = event_loop_new();
	f->stop = event_loop_add_timer(f->loop, on_stop, f);
	f->room = 1000;
	*state = f;
	return 0;
}

static void restore(int saved, int fd)
{
	if (saved >= 0)
		dup2(saved, fd);
	else
		close(fd);
	if (saved >= 0)
		close(saved);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->c.ops) {
		chardev_stop(&f->c);
		chardev_close(&f->c);
	}
	restore(f->saved_in, STDIN_FILENO);
	restore(f->saved_out, STDOUT_FILENO);
	event_loop_free(f->loop);
	unlink(f->path);
	free(f);
	return 0;
}

static void start(struct fixture *f, enum console_kind kind)
{
	struct serial_config config = { .console = kind };

	snprintf(config.path, sizeof(config.path), "%s", f->path);
	assert_int_equal(chardev_open(&f->c, &config, NULL), 0);
	assert_int_equal(chardev_start(&f->c, f->loop, &ops, f, NULL), 0);
	chardev_set_room(&f->c, f->room);
}

static ssize_t put(struct fixture *f, const char *text)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };

	return chardev_write(&f->c, &iov, 1);
}

static void become_stdin(int fd)
{
	dup2(fd, STDIN_FILENO);
	close(fd);
}

static void pipe_on_stdin_is_read_to_its_end(void **state)
{
	struct fixture *f = *state;
	int p[2];

	assert_int_equal(pipe(p), 0);
	become_stdin(p[0]);
	start(f, CONSOLE_STDIO);
	assert_int_equal(write(p[1], "hello", 5), 5);
	turn(f);
	assert_string_equal(f->got, "hello");
	close(p[1]);
	turn(f);
	assert_int_equal(f->c.in_fd, -EBADF); /* it ended: nothing is watched, nothing spins */
	assert_int_equal(f->inputs, 1);
}

static void regular_file_on_stdin_is_read_by_room(void **state)
{
	struct fixture *f = *state;
	int fd = open(f->path, O_RDWR);

	assert_int_equal(write(fd, "0123456789", 10), 10);
	lseek(fd, 0, SEEK_SET);
	become_stdin(fd);
	f->room = 4;
	start(f, CONSOLE_STDIO);
	assert_string_equal(f->got, "0123");
	f->room = 100;
	chardev_set_room(&f->c, f->room);
	assert_string_equal(f->got, "0123456789");
	chardev_set_room(&f->c, f->room);
	assert_int_equal(f->c.in_fd, -EBADF);
}

/* A port moves input on into its FIFO, so that room is left after a full read. */
static void regular_file_is_read_on_while_there_is_room(void **state)
{
	struct fixture *f = *state;
	int fd = open(f->path, O_RDWR);
	char text[1000];

	memset(text, 'x', sizeof(text));
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	lseek(fd, 0, SEEK_SET);
	become_stdin(fd);
	f->room = 64;
	f->endless = true;
	start(f, CONSOLE_STDIO);
	assert_int_equal(f->n, sizeof(text));
	assert_int_equal(f->c.in_fd, -EBADF);
}

static void dev_null_on_stdin_ends_at_once(void **state)
{
	struct fixture *f = *state;

	become_stdin(open("/dev/null", O_RDONLY));
	start(f, CONSOLE_STDIO);
	turn(f);
	assert_int_equal(f->c.in_fd, -EBADF);
	assert_int_equal(f->inputs, 0);
}

static void closed_stdin_and_stdout_are_survived(void **state)
{
	struct fixture *f = *state;
	ssize_t put_closed;

	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	start(f, CONSOLE_STDIO);
	turn(f);
	put_closed = put(f, "x");
	dup2(f->saved_out, STDOUT_FILENO);
	dup2(f->saved_in, STDIN_FILENO);
	assert_int_equal(put_closed, -EPIPE);
}

static void without_room_nothing_is_read(void **state)
{
	struct fixture *f = *state;
	int p[2];

	assert_int_equal(pipe(p), 0);
	become_stdin(p[0]);
	f->room = 3;
	start(f, CONSOLE_STDIO);
	assert_int_equal(write(p[1], "abcdef", 6), 6);
	turn(f);
	turn(f);
	assert_string_equal(f->got, "abc");
	f->room = 10;
	chardev_set_room(&f->c, f->room);
	turn(f);
	assert_string_equal(f->got, "abcdef");
	close(p[1]);
}

/* The shell's descriptor must not turn non-blocking, not even while we run. */
static void flags_of_shared_pipes_stay(void **state)
{
	struct fixture *f = *state;
	int p[2];

	assert_int_equal(pipe(p), 0);
	become_stdin(p[0]);
	start(f, CONSOLE_STDIO);
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFL) & O_NONBLOCK, 0);
	assert_true(fcntl(f->c.in_fd, F_GETFL) & O_NONBLOCK);
	chardev_stop(&f->c);
	chardev_close(&f->c);
	f->c.ops = NULL;
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFL) & O_NONBLOCK, 0);
	close(p[1]);
}

static void socket_on_stdin_works_without_changed_flags(void **state)
{
	struct fixture *f = *state;
	int s[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	become_stdin(s[0]);
	start(f, CONSOLE_STDIO);
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(write(s[1], "socket", 6), 6);
	turn(f);
	assert_string_equal(f->got, "socket");
	close(s[1]);
	turn(f);
	assert_int_equal(f->inputs, 1);
}

/* Our log lines and the console go to one file: neither may overwrite the other. */
static void regular_stdout_keeps_its_shared_offset(void **state)
{
	struct fixture *f = *state;
	char text[32] = "";
	int fd = open(f->path, O_RDWR);

	assert_int_equal(write(fd, "log\n", 4), 4);
	dup2(fd, STDOUT_FILENO);
	start(f, CONSOLE_STDIO);
	assert_int_equal(put(f, "console\n"), 8);
	assert_int_equal(write(fd, "log\n", 4), 4);
	dup2(f->saved_out, STDOUT_FILENO);
	assert_int_equal(pread(fd, text, sizeof(text) - 1, 0), 16);
	assert_string_equal(text, "log\nconsole\nlog\n");
	close(fd);
}

static void full_pipe_says_eagain_and_then_writable(void **state)
{
	struct fixture *f = *state;
	char text[4097] = { 0 };
	int p[2];
	ssize_t ret = 1;

	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(pipe(p), 0);
	dup2(p[1], STDOUT_FILENO);
	start(f, CONSOLE_STDIO);
	while (ret > 0)
		ret = put(f, text);
	dup2(f->saved_out, STDOUT_FILENO);
	assert_int_equal(ret, -EAGAIN);
	turn(f);
	assert_int_equal(f->writables, 0);
	assert_int_equal(read(p[0], text, 4096), 4096);
	turn(f);
	assert_int_equal(f->writables, 1);
	close(p[0]);
	close(p[1]);
}

static void file_is_appended_to(void **state)
{
	struct fixture *f = *state;
	char text[8] = "";
	int fd = open(f->path, O_RDWR);

	assert_int_equal(write(fd, "old", 3), 3);
	start(f, CONSOLE_FILE);
	assert_int_equal(f->c.in_fd, -EBADF);
	assert_int_equal(put(f, "new"), 3);
	assert_int_equal(pread(fd, text, 7, 0), 6);
	assert_string_equal(text, "oldnew");
	close(fd);
}

static void new_file_is_private(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	unlink(f->path);
	start(f, CONSOLE_FILE);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void pty_carries_both_ways_raw(void **state)
{
	struct fixture *f = *state;
	char name[64], text[8] = "";
	int fd;

	start(f, CONSOLE_PTY);
	assert_int_equal(ptsname_r(f->c.out_fd, name, sizeof(name)), 0);
	fd = open(name, O_RDWR | O_NOCTTY);
	assert_int_equal(put(f, "a\nb"), 3);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	assert_string_equal(text, "a\nb");
	assert_int_equal(write(fd, "\x03q\r", 3), 3);
	turn(f);
	assert_string_equal(f->got, "\x03q\r");
	close(fd);
}

static void pty_peer_may_come_and_go(void **state)
{
	struct fixture *f = *state;
	char name[64];
	unsigned i;

	start(f, CONSOLE_PTY);
	assert_int_equal(ptsname_r(f->c.out_fd, name, sizeof(name)), 0);
	for (i = 0; i < 3; i++) {
		int fd = open(name, O_RDWR | O_NOCTTY);

		assert_int_equal(write(fd, "x", 1), 1);
		turn(f);
		close(fd);
		turn(f);
	}
	assert_string_equal(f->got, "xxx");
	assert_int_equal(f->inputs, 3);
}

static void none_takes_no_output_and_has_no_input(void **state)
{
	struct fixture *f = *state;

	start(f, CONSOLE_NONE);
	assert_int_equal(put(f, "x"), -EPIPE);
	assert_false(chardev_awaits_peer(&f->c));
}

/* Runs as the foreground job of a terminal of its own. Exit status 0: all as expected. */
static int raw_mode_child(const char *name)
{
	const struct serial_config config = { .console = CONSOLE_STDIO };
	struct termios before, raw, after;
	struct chardev c;
	int fd;

	setsid();
	fd = open(name, O_RDWR);
	dup2(fd, STDIN_FILENO);
	if (ioctl(fd, TIOCSCTTY, 0) < 0 || tcgetattr(fd, &before) < 0)
		return 1;
	if (chardev_open(&c, &config, NULL) < 0 || tcgetattr(fd, &raw) < 0)
		return 2;
	if ((raw.c_lflag & (ICANON | ECHO | ISIG)) || raw.c_oflag != before.c_oflag)
		return 3;
	chardev_close(&c);
	if (tcgetattr(fd, &after) < 0 || after.c_lflag != before.c_lflag)
		return 4;
	return 0;
}

static void terminal_is_raw_meanwhile_and_put_back(void **state)
{
	char name[64];
	int status = -1, master = posix_openpt(O_RDWR | O_NOCTTY);
	pid_t pid;

	assert_true(grantpt(master) == 0 && unlockpt(master) == 0);
	assert_int_equal(ptsname_r(master, name, sizeof(name)), 0);
	pid = fork();
	if (pid == 0)
		_exit(raw_mode_child(name));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(master);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(pipe_on_stdin_is_read_to_its_end),
		T(regular_file_on_stdin_is_read_by_room),
		T(regular_file_is_read_on_while_there_is_room),
		T(dev_null_on_stdin_ends_at_once),
		T(closed_stdin_and_stdout_are_survived),
		T(without_room_nothing_is_read),
		T(flags_of_shared_pipes_stay),
		T(socket_on_stdin_works_without_changed_flags),
		T(regular_stdout_keeps_its_shared_offset),
		T(full_pipe_says_eagain_and_then_writable),
		T(file_is_appended_to),
		T(new_file_is_private),
		T(pty_carries_both_ways_raw),
		T(pty_peer_may_come_and_go),
		T(none_takes_no_output_and_has_no_input),
		T(terminal_is_raw_meanwhile_and_put_back),
	};

	log_init("test");
	return cmocka_run_group_tests_name("chardev", tests, NULL, NULL);
}
