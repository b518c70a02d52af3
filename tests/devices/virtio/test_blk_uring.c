/*
 * The io_uring engine by itself. A pipe stands for a disk that takes its time:
 * a read of it is in flight until the test writes, or for ever.
 */
#include "devices/virtio/blk_uring.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "devices/virtio/blk_file.h"
#include "vmm/base/log.h"
#include "vmm/event_loop.h"
#include "vmm/limits.h"

struct transfer {
	struct blk_io io; /* first */
	struct iovec iov;
	uint8_t data[8];
	int result;
	bool done;
};

static struct event_loop *loop;
static struct blk_backend *b;
static struct blk_file *file; /* the engine's */
static int writer;
static int idles;
static struct transfer transfers[LIMIT_BLK_INFLIGHT + 1];

static int refusals; /* of the kernel, when it is short of memory */

/* Stands before the library's. */
int io_uring_submit(struct io_uring *ring)
{
	if (refusals) {
		refusals--;
		return -EAGAIN;
	}
	return io_uring_submit_and_wait(ring, 0);
}

static void on_idle(void *arg)
{
	idles++;
	event_loop_stop(loop);
}

static void on_done(struct blk_io *io, int result)
{
	struct transfer *t = (struct transfer *)io;

	assert_false(t->done);
	t->done = true;
	t->result = result;
}

/* The engine over any descriptor; false where the host has no io_uring. */
static bool open_over(int fd)
{
	struct drive_config c = { .drive_id = "u", .path_on_host = "/dev/null" };
	struct error err;

	log_set_level(LOG_LEVEL_OFF);
	memset(transfers, 0, sizeof(transfers));
	idles = 0;
	assert_int_equal(blk_file_open(&c, &file, &err), 0);
	close(file->fd);
	file->fd = fd;
	if (blk_uring_backend_new(file, &b) < 0) {
		blk_file_close(file);
		b = NULL;
		return false;
	}
	loop = event_loop_new();
	assert_int_equal(b->ops->attach(b, loop, on_idle, NULL), 0);
	return true;
}

static int setup_pipe(void **state)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	writer = fds[1];
	open_over(fds[0]);
	return 0;
}

static int setup_full(void **state)
{
	writer = -1;
	open_over(open("/dev/full", O_RDWR | O_CLOEXEC));
	return 0;
}

static int teardown(void **state)
{
	if (writer >= 0)
		close(writer);
	if (!b)
		return 0;
	b->ops->detach(b);
	b->ops->destroy(b);
	event_loop_free(loop);
	return 0;
}

static int start(unsigned i, enum blk_op op, uint64_t bytes)
{
	struct transfer *t = &transfers[i];

	t->iov = (struct iovec){ t->data, bytes };
	t->io = (struct blk_io){ .op = op, .bytes = bytes, .iov = &t->iov, .iov_count = 1,
				 .done = on_done };
	return b->ops->submit(b, &t->io);
}

static void all_must_be(int result, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		assert_true(transfers[i].done);
		assert_int_equal(transfers[i].result, result);
	}
}

static void what_is_in_flight_is_bounded(void **state)
{
	unsigned i;

	if (!b)
		skip();
	for (i = 0; i < LIMIT_BLK_INFLIGHT; i++)
		assert_int_equal(start(i, BLK_READ, 1), 0);
	b->ops->commit(b);
	assert_int_equal(start(LIMIT_BLK_INFLIGHT, BLK_READ, 1), -EAGAIN);
	assert_true(b->ops->drain(b, true));
	all_must_be(-ECANCELED, LIMIT_BLK_INFLIGHT);
	assert_false(transfers[LIMIT_BLK_INFLIGHT].done);
}

static void cancel_ends_what_would_never_end(void **state)
{
	if (!b)
		skip();
	assert_int_equal(start(0, BLK_READ, 8), 0);
	assert_true(b->ops->drain(b, true));
	all_must_be(-ECANCELED, 1);
	assert_int_equal(idles, 0);
}

static void drain_waits_for_what_is_in_flight(void **state)
{
	unsigned i;

	if (!b)
		skip();
	for (i = 0; i < 8; i++)
		assert_int_equal(start(i, BLK_READ, 1), 0);
	assert_int_equal(write(writer, "abcdefgh", 8), 8);
	assert_true(b->ops->drain(b, false));
	all_must_be(0, 8);
}

/* Three bytes come, then five: the transfer goes on where it stood. */
static void a_short_transfer_is_continued(void **state)
{
	if (!b)
		skip();
	assert_int_equal(write(writer, "abc", 3), 3);
	assert_int_equal(start(0, BLK_READ, 8), 0);
	b->ops->commit(b);
	assert_int_equal(write(writer, "defgh", 5), 5);
	assert_true(b->ops->drain(b, false));
	all_must_be(0, 1);
	assert_memory_equal(transfers[0].data, "abcdefgh", 8);
}

static void the_loop_is_told_of_completions(void **state)
{
	if (!b)
		skip();
	assert_int_equal(start(0, BLK_READ, 1), 0);
	b->ops->commit(b);
	assert_int_equal(write(writer, "a", 1), 1);
	event_loop_run(loop);
	all_must_be(0, 1);
	assert_int_equal(idles, 1);
}

/* Nothing is in flight whose end would bring the loop to look again. */
static void what_the_kernel_did_not_take_is_sent_again(void **state)
{
	if (!b)
		skip();
	assert_int_equal(start(0, BLK_READ, 1), 0);
	refusals = 2;
	b->ops->commit(b);
	assert_int_equal(refusals, 1);
	assert_int_equal(write(writer, "a", 1), 1);
	alarm(10); /* it would wait for ever */
	event_loop_run(loop);
	alarm(0);
	all_must_be(0, 1);
	assert_int_equal(refusals, 0);
}

static void an_early_end_of_file_is_an_error(void **state)
{
	if (!b)
		skip();
	assert_int_equal(write(writer, "abc", 3), 3);
	close(writer);
	writer = -1;
	assert_int_equal(start(0, BLK_READ, 8), 0);
	assert_true(b->ops->drain(b, false));
	all_must_be(-EIO, 1);
}

static void a_full_disk_is_an_error_of_the_request(void **state)
{
	if (!b)
		skip();
	assert_int_equal(start(0, BLK_WRITE, 8), 0);
	assert_true(b->ops->drain(b, false));
	all_must_be(-ENOSPC, 1);
}

static void after_a_failed_flush_all_flushes_fail(void **state)
{
	if (!b)
		skip();
	assert_int_equal(start(0, BLK_FLUSH, 0), 0);
	assert_true(b->ops->drain(b, false));
	all_must_be(0, 1); /* a device that has nothing to flush */
	transfers[0].done = false;
	blk_file_fail_flushes(file); /* no kernel fails here on demand */
	assert_int_equal(start(0, BLK_FLUSH, 0), 0);
	all_must_be(-EIO, 1);
}

int main(void)
{
#define T(name, setup) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(what_is_in_flight_is_bounded, setup_pipe),
		T(cancel_ends_what_would_never_end, setup_pipe),
		T(drain_waits_for_what_is_in_flight, setup_pipe),
		T(a_short_transfer_is_continued, setup_pipe),
		T(the_loop_is_told_of_completions, setup_pipe),
		T(what_the_kernel_did_not_take_is_sent_again, setup_pipe),
		T(an_early_end_of_file_is_an_error, setup_pipe),
		T(a_full_disk_is_an_error_of_the_request, setup_full),
		T(after_a_failed_flush_all_flushes_fail, setup_full),
	};

	return cmocka_run_group_tests_name("io_uring engine", tests, NULL, NULL);
}
