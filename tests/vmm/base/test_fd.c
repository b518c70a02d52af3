/*
 * Descriptors: whole transfers, event counters, and files that a client named.
 */
#include "tests/vmm/base/base_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "vmm/base/fd.h"

struct fixture {
	char dir[64];
	char path[96];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "/tmp/lull-fd-XXXXXX");
	*state = f;
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/file", f->dir);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	rmdir(f->dir);
	free(f);
	return 0;
}

static int make_file(struct fixture *f, const char *text)
{
	int fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	return fd;
}

static void read_all_wants_every_byte(void **state)
{
	int fd = make_file(*state, "0123456789");
	char text[11] = "";

	lseek(fd, 0, SEEK_SET);
	assert_int_equal(fd_read_all(fd, text, 10), 0);
	assert_string_equal(text, "0123456789");
	assert_int_equal(fd_read_all(fd, text, 1), -ENODATA);
	assert_int_equal(fd_pread_all(fd, text, 2, 8), 0);
	assert_memory_equal(text, "89", 2);
	assert_int_equal(fd_pread_all(fd, text, 3, 8), -ENODATA);
	assert_int_equal(fd_pread_all(fd, text, 0, 1000), 0);
	close(fd);
}

static void transfers_report_errors(void **state)
{
	char byte = 0;

	assert_int_equal(fd_read_all(-1, &byte, 1), -EBADF);
	assert_int_equal(fd_write_all(-1, &byte, 1), -EBADF);
	assert_int_equal(fd_pread_all(-1, &byte, 1, 0), -EBADF);
	assert_int_equal(fd_set_nonblocking(-1, true), -EBADF);
}

static void eventfd_counts_and_drains(void **state)
{
	int fd = fd_eventfd_new();

	assert_true(fd >= 0);
	assert_int_equal(fd_eventfd_drain(fd), 0);
	fd_eventfd_signal(fd);
	fd_eventfd_signal(fd);
	assert_int_equal(fd_eventfd_drain(fd), 2);
	assert_int_equal(fd_eventfd_drain(fd), 0);
	close(fd);
}

/* A counter at its maximum must not make the signaller wait. */
static void full_eventfd_is_signalled_without_waiting(void **state)
{
	uint64_t almost = UINT64_MAX - 1;
	int fd = fd_eventfd_new();

	assert_int_equal(write(fd, &almost, sizeof(almost)), sizeof(almost));
	fd_eventfd_signal(fd);
	assert_true(fd_eventfd_drain(fd) == almost);
	close(fd);
}

static void nonblocking_is_set_and_cleared(void **state)
{
	int fd = make_file(*state, "");

	assert_int_equal(fd_set_nonblocking(fd, true), 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_set_nonblocking(fd, false), 0);
	assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
	close(fd);
}

static void regular_file_opens_blocking_and_close_on_exec(void **state)
{
	struct fixture *f = *state;
	struct error err = { 0 };
	int fd;

	close(make_file(f, "x"));
	fd = fd_open_file(f->path, false, false, "kernel", &err);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFL) & (O_NONBLOCK | O_ACCMODE), O_RDONLY);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

static void missing_file_is_named_in_the_error(void **state)
{
	struct fixture *f = *state;
	struct error err = { 0 };

	assert_int_equal(fd_open_file(f->path, false, false, "kernel", &err), -ENOENT);
	assert_non_null(strstr(err.text, "kernel: No such file or directory (os error 2) /tmp/"));
}

static void directory_is_refused(void **state)
{
	struct fixture *f = *state;
	struct error err = { 0 };

	assert_int_equal(fd_open_file(f->dir, false, false, "initrd", &err), -EISDIR);
	assert_int_equal(fd_open_file(f->dir, true, true, "drive a", &err), -EISDIR);
	assert_non_null(strstr(err.text, "drive a"));
}

/* Opening a FIFO without a writer would wait for ever. */
static void fifo_is_refused_without_waiting(void **state)
{
	struct fixture *f = *state;
	struct error err = { 0 };
	time_t begin = time(NULL);

	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_int_equal(fd_open_file(f->path, false, true, "drive a", &err), -EINVAL);
	assert_int_equal(fd_open_file(f->path, true, true, "drive a", &err), -EINVAL);
	assert_true(time(NULL) - begin < 2);
	assert_non_null(strstr(err.text, "is not a regular file or block device"));
}

static void character_device_and_socket_are_refused(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct error err = { 0 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(fd_open_file("/dev/zero", false, true, "kernel", &err), -EINVAL);
	memcpy(addr.sun_path, f->path, strlen(f->path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(fd_open_file(f->path, false, false, "kernel", &err), -ENXIO);
	close(fd);
}

static void size_is_that_of_the_file(void **state)
{
	int fd = make_file(*state, "12345");
	uint64_t size = 0;

	assert_int_equal(fd_size(fd, &size), 0);
	assert_int_equal(size, 5);
	close(fd);
	assert_int_equal(fd_size(fd, &size), -EBADF);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd_size(fd, &size), -EINVAL);
	assert_int_equal(size, 5);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(read_all_wants_every_byte),
		T(transfers_report_errors),
		T(eventfd_counts_and_drains),
		T(full_eventfd_is_signalled_without_waiting),
		T(nonblocking_is_set_and_cleared),
		T(regular_file_opens_blocking_and_close_on_exec),
		T(missing_file_is_named_in_the_error),
		T(directory_is_refused),
		T(fifo_is_refused_without_waiting),
		T(character_device_and_socket_are_refused),
		T(size_is_that_of_the_file),
	};

	return cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}
