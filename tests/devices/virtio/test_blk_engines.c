/*
 * Both engines on a real file: the same tests, once with system calls and once
 * with io_uring. Where the host has no io_uring, those are skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "devices/registry.h"
#include "devices/virtio/blk_file.h"
#include "tests/devices/virtio/blk_fixture.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"

#define FILE_SECTORS 64u

struct engine_fixture {
	struct blk_fixture f; /* first; its fake is not there */
	char path[64];
	int fd; /* of the same file, for looking */
	struct blk_backend *backend;
};

/* A file whose sectors hold their own number. */
static void make_file(struct engine_fixture *e)
{
	uint8_t sector[512];
	unsigned i;

	snprintf(e->path, sizeof(e->path), "/tmp/lull-engine-XXXXXX");
	e->fd = mkstemp(e->path);
	assert_true(e->fd >= 0);
	for (i = 0; i < FILE_SECTORS; i++) {
		memset(sector, (int)i, sizeof(sector));
		assert_int_equal(fd_write_all(e->fd, sector, sizeof(sector)), 0);
	}
}

static int open_engine(void **state, enum drive_io_engine engine, bool read_only)
{
	struct engine_fixture *e = calloc(1, sizeof(*e));
	struct drive_config c;
	struct error err;
	void *backend;

	assert_non_null(e);
	make_file(e);
	blk_config(&c);
	c.io_engine = engine;
	c.is_read_only = read_only;
	snprintf(c.path_on_host, sizeof(c.path_on_host), "%s", e->path);
	assert_int_equal(virtio_blk_class.open(&c, &backend, &err), 0);
	e->backend = backend;
	e->f.r = rig_new();
	rig_place(e->f.r, virtio_blk_class.create(&e->f.r->env, &c, backend, &err));
	rig_boot(e->f.r, read_only ? F_VERSION_1 : BLK_FEATURES, 256);
	*state = e;
	return 0;
}

static int setup_sync(void **state)
{
	return open_engine(state, DRIVE_IO_SYNC, false);
}

static int setup_async(void **state)
{
	return open_engine(state, DRIVE_IO_ASYNC, false);
}

static int setup_async_read_only(void **state)
{
	return open_engine(state, DRIVE_IO_ASYNC, true);
}

static int teardown(void **state)
{
	struct engine_fixture *e = *state;

	rig_free(e->f.r);
	close(e->fd);
	unlink(e->path);
	free(e);
	return 0;
}

/* As blk_run(), for an engine that takes its time. */
static uint8_t run(struct engine_fixture *e, uint32_t type, uint64_t sector, uint32_t len)
{
	uint16_t before = rig_used_idx(e->f.r, 0);

	blk_chain(&e->f, type, sector, len, type == VIRTIO_BLK_T_OUT ? 0 : D_WRITE);
	rig_avail(e->f.r, 0, 0);
	rig_kick(e->f.r, 0);
	rig_wait_used(e->f.r, 0, (uint16_t)(before + 1));
	return blk_status(&e->f);
}

static void the_engine_is_the_one_asked_for(void **state)
{
	struct engine_fixture *e = *state;

	if (!strcmp(e->backend->ops->name, "Sync"))
		skip(); /* no io_uring here: the fallback is what is tested below */
	assert_string_equal(e->backend->ops->name, "Async");
}

/* A host that forbids io_uring, as containers do: for this process and its child. */
static void forbid_io_uring(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(3);
}

static void without_io_uring_the_engine_is_sync(void **state)
{
	struct drive_config c;
	struct error err;
	void *backend;
	int status;

	blk_config(&c);
	c.io_engine = DRIVE_IO_ASYNC;
	snprintf(c.path_on_host, sizeof(c.path_on_host), "/dev/null");
	if (fork() == 0) {
		log_set_level(LOG_LEVEL_OFF);
		forbid_io_uring();
		if (virtio_blk_class.open(&c, &backend, &err) < 0)
			_exit(1);
		_exit(strcmp(((struct blk_backend *)backend)->ops->name, "Sync") ? 2 : 0);
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
}

static void capacity_is_the_files(void **state)
{
	struct engine_fixture *e = *state;

	assert_int_equal(rig_read(e->f.r, R_CONFIG, 8), FILE_SECTORS);
}

static void sectors_are_read(void **state)
{
	struct engine_fixture *e = *state;

	assert_int_equal(run(e, VIRTIO_BLK_T_IN, 9, 1024), VIRTIO_BLK_S_OK);
	assert_int_equal(*rig_ram(e->f.r, B_DATA), 9);
	assert_int_equal(*rig_ram(e->f.r, B_DATA + 1023), 10);
}

static void sectors_are_written(void **state)
{
	struct engine_fixture *e = *state;
	uint8_t sector[512];

	memset(rig_ram(e->f.r, B_DATA), 0xab, 512);
	assert_int_equal(run(e, VIRTIO_BLK_T_OUT, 3, 512), VIRTIO_BLK_S_OK);
	assert_int_equal(fd_pread_all(e->fd, sector, 512, 3 * 512), 0);
	assert_memory_equal(sector, rig_ram(e->f.r, B_DATA), 512);
}

static void a_flush_succeeds(void **state)
{
	struct engine_fixture *e = *state;

	run(e, VIRTIO_BLK_T_OUT, 3, 512);
	assert_int_equal(run(e, VIRTIO_BLK_T_FLUSH, 0, 0), VIRTIO_BLK_S_OK);
}

/* A driver without FLUSH: each write goes to the disk by itself. */
static void a_stable_write_succeeds(void **state)
{
	struct engine_fixture *e = *state;

	rig_reset(e->f.r);
	rig_boot(e->f.r, F_VERSION_1, 16);
	assert_int_equal(run(e, VIRTIO_BLK_T_OUT, 3, 512), VIRTIO_BLK_S_OK);
}

static void data_across_two_slots(void **state)
{
	struct engine_fixture *e = *state;

	blk_chain(&e->f, VIRTIO_BLK_T_IN, 20, 1024, D_WRITE);
	rig_desc(e->f.r, 0, 1, RAM_A_END - 512, 1024, D_NEXT | D_WRITE, 2);
	rig_avail(e->f.r, 0, 0);
	rig_kick(e->f.r, 0);
	rig_wait_used(e->f.r, 0, 1);
	assert_int_equal(*rig_ram(e->f.r, RAM_A_END - 1), 20);
	assert_int_equal(*rig_ram(e->f.r, RAM_B), 21);
}

static void a_file_that_became_short_is_an_io_error(void **state)
{
	struct engine_fixture *e = *state;

	assert_int_equal(ftruncate(e->fd, 10 * 512 + 100), 0);
	assert_int_equal(run(e, VIRTIO_BLK_T_IN, 9, 512), VIRTIO_BLK_S_OK);
	assert_int_equal(run(e, VIRTIO_BLK_T_IN, 10, 512), VIRTIO_BLK_S_IOERR);
	assert_int_equal(run(e, VIRTIO_BLK_T_IN, 40, 4096), VIRTIO_BLK_S_IOERR);
	assert_int_equal(rig_read(e->f.r, R_CONFIG, 8), FILE_SECTORS);
}

/* Reads of every sector, more at once than the ring takes. */
static void many_requests_at_once(void **state)
{
	struct engine_fixture *e = *state;
	struct rig *r = e->f.r;
	uint16_t i;

	for (i = 0; i < FILE_SECTORS; i++) {
		uint64_t at = DATA + 0x1000 * 2 + 0x400ull * i;

		put32(r, at, VIRTIO_BLK_T_IN);
		put64(r, at + 8, i);
		rig_desc(r, 0, 3 * i, at, 16, D_NEXT, 3 * i + 1);
		rig_desc(r, 0, 3 * i + 1, at + 0x100, 512, D_NEXT | D_WRITE, 3 * i + 2);
		rig_desc(r, 0, 3 * i + 2, at + 0x80, 1, D_WRITE, 0);
		rig_avail(r, 0, 3 * i);
	}
	rig_kick(r, 0);
	rig_wait_used(r, 0, FILE_SECTORS);
	for (i = 0; i < FILE_SECTORS; i++)
		assert_int_equal(*rig_ram(r, DATA + 0x1000 * 2 + 0x400ull * i + 0x100), i);
}

static void reset_with_requests_in_flight(void **state)
{
	struct engine_fixture *e = *state;
	int i;

	for (i = 0; i < 50; i++) {
		blk_chain(&e->f, i & 1 ? VIRTIO_BLK_T_OUT : VIRTIO_BLK_T_IN, 0, 4096,
			  i & 1 ? 0 : D_WRITE);
		rig_avail(e->f.r, 0, 0);
		rig_kick(e->f.r, 0);
		rig_reset(e->f.r);
		rig_boot(e->f.r, BLK_FEATURES, 16);
	}
	assert_int_equal(run(e, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

static void exchange(void *arg)
{
	struct engine_fixture *e = arg;
	struct error err;

	assert_int_equal(e->f.r->d->ops->exchange(e->f.r->d, e->backend, &err), 0);
}

/* The same path once more: the file has grown, and its lock is no hindrance. */
static void the_same_file_again_is_read_anew(void **state)
{
	struct engine_fixture *e = *state;
	struct drive_config c;
	struct error err;
	void *backend;

	assert_int_equal(ftruncate(e->fd, 100 * 512), 0);
	blk_config(&c);
	snprintf(c.path_on_host, sizeof(c.path_on_host), "%s", e->path);
	assert_int_equal(virtio_blk_class.open(&c, &backend, &err), 0);
	e->backend = backend;
	rig_call(e->f.r, exchange, e);
	assert_int_equal(rig_read(e->f.r, R_CONFIG, 8), 100);
	assert_int_equal(run(e, VIRTIO_BLK_T_IN, 99, 512), VIRTIO_BLK_S_OK);
}

static void a_read_only_drive_refuses_writes(void **state)
{
	struct engine_fixture *e = *state;

	assert_int_equal(run(e, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
	assert_int_equal(run(e, VIRTIO_BLK_T_OUT, 0, 512), VIRTIO_BLK_S_IOERR);
}

int main(void)
{
#define T(name)                                                                \
	cmocka_unit_test_setup_teardown(name, setup_sync, teardown),           \
	cmocka_unit_test_setup_teardown(name, setup_async, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_engine_is_the_one_asked_for, setup_async,
						teardown),
		cmocka_unit_test(without_io_uring_the_engine_is_sync),
		T(capacity_is_the_files),
		T(sectors_are_read),
		T(sectors_are_written),
		T(a_flush_succeeds),
		T(a_stable_write_succeeds),
		T(data_across_two_slots),
		T(a_file_that_became_short_is_an_io_error),
		T(many_requests_at_once),
		T(reset_with_requests_in_flight),
		T(the_same_file_again_is_read_anew),
		cmocka_unit_test_setup_teardown(a_read_only_drive_refuses_writes,
						setup_async_read_only, teardown),
	};

	return cmocka_run_group_tests_name("virtio blk engines", tests, NULL, NULL);
}
