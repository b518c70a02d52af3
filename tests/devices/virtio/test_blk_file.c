/* Opening, locking and using the files of drives. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "devices/virtio/blk_file.h"
#include "tests/devices/virtio/blk_fixture.h"
#include "vmm/base/log.h"

static char path[64];

static int setup(void **state)
{
	int fd;

	log_set_level(LOG_LEVEL_OFF);
	snprintf(path, sizeof(path), "/tmp/lull-drive-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8 * 512), 0);
	close(fd);
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	return 0;
}

static int open_drive(const char *id, const char *at, bool read_only, struct blk_file **f)
{
	struct drive_config c;
	struct error err;
	int ret;

	blk_config(&c);
	c.is_read_only = read_only;
	snprintf(c.drive_id, sizeof(c.drive_id), "%s", id);
	snprintf(c.path_on_host, sizeof(c.path_on_host), "%s", at);
	ret = blk_file_open(&c, f, &err);
	if (ret < 0) {
		assert_int_equal(err.code, ret);
		assert_non_null(strstr(err.text, id));
		assert_non_null(strstr(err.text, at));
	}
	return ret;
}

static void an_open_file_has_its_size(void **state)
{
	struct blk_file *f;

	assert_int_equal(open_drive("a", path, false, &f), 0);
	assert_int_equal(f->size, 8 * 512);
	blk_file_close(f);
}

static void an_odd_size_is_accepted(void **state)
{
	struct blk_file *f;

	assert_int_equal(truncate(path, 1000), 0);
	assert_int_equal(open_drive("a", path, false, &f), 0);
	assert_int_equal(f->size, 1000);
	blk_file_close(f);
}

static void an_empty_file_is_accepted(void **state)
{
	struct blk_file *f;

	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(open_drive("a", path, false, &f), 0);
	assert_int_equal(f->size, 0);
	blk_file_close(f);
}

static void the_null_device_is_an_empty_drive(void **state)
{
	struct blk_file *f, *g;
	struct blk_io io = { .op = BLK_FLUSH };

	assert_int_equal(open_drive("a", "/dev/null", false, &f), 0);
	assert_int_equal(open_drive("b", "/dev/null", false, &g), 0);
	assert_int_equal(f->size, 0);
	assert_int_equal(blk_file_transfer(f, &io), 0);
	blk_file_close(f);
	blk_file_close(g);
}

static void other_character_devices_are_refused(void **state)
{
	struct blk_file *f;

	assert_int_equal(open_drive("a", "/dev/zero", true, &f), -EINVAL);
}

static void a_directory_is_refused(void **state)
{
	struct blk_file *f;

	assert_int_equal(open_drive("a", "/tmp", true, &f), -EISDIR);
	assert_int_equal(open_drive("a", "/tmp", false, &f), -EISDIR);
}

static void a_missing_file_is_refused(void **state)
{
	struct blk_file *f;

	assert_int_equal(open_drive("a", "/tmp/lull-no-such-file", true, &f), -ENOENT);
}

static void a_fifo_is_refused_without_waiting(void **state)
{
	struct blk_file *f;

	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(open_drive("a", path, false, &f), -EINVAL);
}

static void two_drives_cannot_write_one_file(void **state)
{
	struct blk_file *f, *g;

	assert_int_equal(open_drive("a", path, false, &f), 0);
	assert_int_equal(open_drive("b", path, false, &g), -EBUSY);
	assert_int_equal(open_drive("b", path, true, &g), -EBUSY);
	blk_file_close(f);
	assert_int_equal(open_drive("b", path, false, &g), 0);
	blk_file_close(g);
}

static void two_drives_can_read_one_file(void **state)
{
	struct blk_file *f, *g, *h;

	assert_int_equal(open_drive("a", path, true, &f), 0);
	assert_int_equal(open_drive("b", path, true, &g), 0);
	assert_int_equal(open_drive("c", path, false, &h), -EBUSY);
	blk_file_close(f);
	blk_file_close(g);
}

/* The lock stays until the last one of the same drive is closed. */
static void a_drive_opens_its_own_file_again(void **state)
{
	struct blk_file *f, *g, *h;

	assert_int_equal(open_drive("a", path, false, &f), 0);
	assert_int_equal(open_drive("a", path, false, &g), 0);
	blk_file_close(f);
	assert_int_equal(open_drive("b", path, true, &h), -EBUSY);
	blk_file_close(g);
	assert_int_equal(open_drive("b", path, true, &h), 0);
	blk_file_close(h);
}

static void a_drive_changes_its_own_access(void **state)
{
	struct blk_file *f, *g, *h;

	assert_int_equal(open_drive("a", path, true, &f), 0);
	assert_int_equal(open_drive("a", path, false, &g), 0);
	blk_file_close(f);
	assert_int_equal(open_drive("b", path, true, &h), -EBUSY);
	blk_file_close(g);
}

/* Another process stands for another VM. */
static void another_process_is_kept_out(void **state)
{
	struct blk_file *f, *g;
	int status;
	pid_t child;

	assert_int_equal(open_drive("a", path, false, &f), 0);
	child = fork();
	if (child == 0)
		_exit(open_drive("other", path, false, &g) == -EBUSY ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	blk_file_close(f);
}

static void a_full_disk_is_an_error_of_the_request(void **state)
{
	struct blk_file *f;
	uint8_t sector[512] = { 0 };
	struct iovec iov = { sector, sizeof(sector) };
	struct blk_io io = { .op = BLK_WRITE, .bytes = 512, .iov = &iov, .iov_count = 1 };

	assert_int_equal(open_drive("a", path, false, &f), 0);
	close(f->fd);
	f->fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	assert_int_equal(blk_file_transfer(f, &io), -ENOSPC);
	blk_file_close(f);
}

/* The kernel reports a lost write once; every flush afterwards must fail too. */
static void a_failed_flush_is_not_forgotten(void **state)
{
	struct blk_file *f, *g;
	struct blk_io io = { .op = BLK_FLUSH };
	int fd;

	assert_int_equal(open_drive("a", path, false, &f), 0);
	fd = f->fd;
	f->fd = -EBADF;
	assert_int_equal(blk_file_transfer(f, &io), -EBADF);
	f->fd = fd;
	assert_int_equal(blk_file_transfer(f, &io), -EIO);
	assert_int_equal(open_drive("a", path, false, &g), 0);
	assert_int_equal(blk_file_transfer(g, &io), -EIO);
	blk_file_close(f);
	blk_file_close(g);
	assert_int_equal(open_drive("a", path, false, &f), 0);
	assert_int_equal(blk_file_transfer(f, &io), 0);
	blk_file_close(f);
}

/* A drive is given its own file again, and then the first one's flush fails. */
static void a_failed_flush_reaches_files_that_are_open(void **state)
{
	struct blk_file *f, *g, *other;
	struct blk_io io = { .op = BLK_FLUSH };

	assert_int_equal(open_drive("a", path, false, &f), 0);
	assert_int_equal(open_drive("a", path, false, &g), 0);
	assert_int_equal(open_drive("n", "/dev/null", false, &other), 0);
	close(f->fd);
	f->fd = -EBADF;
	assert_int_equal(blk_file_transfer(f, &io), -EBADF);
	assert_int_equal(blk_file_transfer(g, &io), -EIO);
	assert_int_equal(blk_file_transfer(other, &io), 0);
	blk_file_close(f);
	blk_file_close(g);
	blk_file_close(other);
}

static useconds_t flush_delay;

static void *flush_late(void *file)
{
	struct blk_io io = { .op = BLK_FLUSH };

	usleep(flush_delay);
	assert_true(blk_file_transfer(file, &io) < 0);
	return NULL;
}

/* The device's thread has a flush fail while main opens the file again and again. */
static void open_while_a_flush_fails(void)
{
	struct blk_io io = { .op = BLK_FLUSH };
	struct blk_file *f, *g = NULL;
	bool failed = false;
	pthread_t thread;

	assert_int_equal(open_drive("a", path, true, &f), 0);
	close(f->fd);
	f->fd = -EBADF;
	assert_int_equal(pthread_create(&thread, NULL, flush_late, f), 0);
	while (!failed) {
		failed = f->flush_failed;
		blk_file_close(g);
		assert_int_equal(open_drive("a", path, false, &g), 0);
	}
	pthread_join(thread, NULL);
	assert_int_equal(blk_file_transfer(g, &io), -EIO);
	blk_file_close(f);
	blk_file_close(g);
}

static void no_file_is_opened_past_a_failing_flush(void **state)
{
	for (flush_delay = 0; flush_delay < 2000; flush_delay += 100)
		open_while_a_flush_fails();
}

static void a_write_past_the_file_size_limit_is_an_error(void **state)
{
	struct rlimit old, tight = { 4 * 512, RLIM_INFINITY };
	uint8_t sector[1024] = { 0 };
	struct iovec iov = { sector, sizeof(sector) };
	struct blk_io io = { .op = BLK_WRITE, .offset = 7 * 512, .bytes = 1024, .iov = &iov,
			     .iov_count = 1 };
	struct blk_file *f;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	tight.rlim_max = old.rlim_max;
	assert_int_equal(open_drive("a", path, false, &f), 0);
	setrlimit(RLIMIT_FSIZE, &tight);
	assert_int_equal(blk_file_transfer(f, &io), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	blk_file_close(f);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(an_open_file_has_its_size),
		T(an_odd_size_is_accepted),
		T(an_empty_file_is_accepted),
		T(the_null_device_is_an_empty_drive),
		T(other_character_devices_are_refused),
		T(a_directory_is_refused),
		T(a_missing_file_is_refused),
		T(a_fifo_is_refused_without_waiting),
		T(two_drives_cannot_write_one_file),
		T(two_drives_can_read_one_file),
		T(a_drive_opens_its_own_file_again),
		T(a_drive_changes_its_own_access),
		T(another_process_is_kept_out),
		T(a_full_disk_is_an_error_of_the_request),
		T(a_failed_flush_is_not_forgotten),
		T(a_failed_flush_reaches_files_that_are_open),
		T(no_file_is_opened_past_a_failing_flush),
		T(a_write_past_the_file_size_limit_is_an_error),
	};

	return cmocka_run_group_tests_name("drive files", tests, NULL, NULL);
}
