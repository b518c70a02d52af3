/* Requests of a block device, over a drive of plain memory. */
#include "tests/devices/virtio/blk_fixture.h"

#include <stdlib.h>

#include "devices/registry.h"
#include "vmm/base/bits.h"

static void read_gives_the_sectors(void **state)
{
	struct blk_fixture *f = *state;

	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 5, 1024), VIRTIO_BLK_S_OK);
	assert_memory_equal(rig_ram(f->r, B_DATA), f->fake->disk + 5 * 512, 1024);
	assert_int_equal(rig_used_len(f->r, 0, 0), 1025);
}

static void write_changes_the_sectors(void **state)
{
	struct blk_fixture *f = *state;

	memset(rig_ram(f->r, B_DATA), 0x5a, 512);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_OUT, 7, 512), VIRTIO_BLK_S_OK);
	assert_memory_equal(f->fake->disk + 7 * 512, rig_ram(f->r, B_DATA), 512);
	assert_int_equal(rig_used_len(f->r, 0, 0), 1);
}

static void the_last_sector_can_be_used(void **state)
{
	struct blk_fixture *f = *state;

	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, DISK_SECTORS - 1, 512), VIRTIO_BLK_S_OK);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_OUT, DISK_SECTORS - 1, 512), VIRTIO_BLK_S_OK);
}

static void flush_reaches_the_engine(void **state)
{
	struct blk_fixture *f = *state;

	assert_int_equal(blk_run(f, VIRTIO_BLK_T_FLUSH, 0, 0), VIRTIO_BLK_S_OK);
	assert_int_equal(f->fake->flushes, 1);
}

static void the_id_is_the_drives(void **state)
{
	struct blk_fixture *f = *state;

	memset(rig_ram(f->r, B_DATA), 0xff, 21);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_GET_ID, 0, 20), VIRTIO_BLK_S_OK);
	assert_memory_equal(rig_ram(f->r, B_DATA), "rootfs\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff", 21);
	assert_int_equal(rig_used_len(f->r, 0, 0), 21);
}

/* A driver that negotiated flushes gets a write-back cache, any other one none. */
static void writes_are_stable_when_the_driver_does_not_flush(void **state)
{
	struct blk_fixture *f = *state;

	blk_run(f, VIRTIO_BLK_T_OUT, 0, 512);
	assert_int_equal(f->fake->stable, 0);
	rig_reset(f->r);
	rig_boot(f->r, F_VERSION_1, 16);
	blk_run(f, VIRTIO_BLK_T_OUT, 0, 512);
	assert_int_equal(f->fake->stable, 1);
}

static void without_write_back_flush_is_not_offered(void **state)
{
	struct drive_config c;
	struct blk_fixture *f;

	blk_config(&c);
	c.cache_type = DRIVE_CACHE_UNSAFE;
	f = blk_fixture_new(&c);
	assert_false(rd(f->r, R_DEVICE_FEATURES) & (1u << VIRTIO_BLK_F_FLUSH));
	rig_boot(f->r, F_VERSION_1, 16);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_FLUSH, 0, 0), VIRTIO_BLK_S_UNSUPP);
	blk_run(f, VIRTIO_BLK_T_OUT, 0, 512);
	assert_int_equal(f->fake->stable, 0);
	*state = f;
	blk_teardown(state);
}

static void a_read_only_drive_says_so_and_can_be_read(void **state)
{
	struct blk_fixture *f = *state;

	assert_true(rd(f->r, R_DEVICE_FEATURES) & (1u << VIRTIO_BLK_F_RO));
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

static void an_indirect_request(void **state)
{
	struct blk_fixture *f = *state;
	uint64_t table = DATA + 0x4000;

	blk_header(f, VIRTIO_BLK_T_IN, 2);
	rig_desc_at(f->r, table, 0, B_HEADER, 16, D_NEXT, 1);
	rig_desc_at(f->r, table, 1, B_DATA, 512, D_NEXT | D_WRITE, 2);
	rig_desc_at(f->r, table, 2, B_STATUS, 1, D_WRITE, 0);
	rig_desc(f->r, 0, 9, table, 48, D_INDIRECT, 0);
	rig_submit(f->r, 0, 9);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_OK);
	assert_int_equal(rig_used_id(f->r, 0, 0), 9);
	assert_memory_equal(rig_ram(f->r, B_DATA), f->fake->disk + 1024, 512);
}

/* Header in three pieces, data in two, status at the end of a data descriptor. */
static void a_request_may_be_cut_in_any_way(void **state)
{
	struct blk_fixture *f = *state;

	blk_header(f, VIRTIO_BLK_T_IN, 3);
	rig_desc(f->r, 0, 0, B_HEADER, 3, D_NEXT, 1);
	rig_desc(f->r, 0, 1, B_HEADER + 3, 9, D_NEXT, 2);
	rig_desc(f->r, 0, 2, B_HEADER + 12, 4, D_NEXT, 3);
	rig_desc(f->r, 0, 3, B_DATA, 100, D_NEXT | D_WRITE, 4);
	rig_desc(f->r, 0, 4, B_DATA + 100, 413, D_WRITE, 0);
	*rig_ram(f->r, B_DATA + 512) = NO_STATUS;
	rig_submit(f->r, 0, 0);
	assert_int_equal(*rig_ram(f->r, B_DATA + 512), VIRTIO_BLK_S_OK);
	assert_memory_equal(rig_ram(f->r, B_DATA), f->fake->disk + 3 * 512, 512);
}

/* Data behind the header in one descriptor. */
static void a_write_may_follow_its_header(void **state)
{
	struct blk_fixture *f = *state;

	blk_header(f, VIRTIO_BLK_T_OUT, 1);
	memset(rig_ram(f->r, B_HEADER + 16), 0x77, 512);
	rig_desc(f->r, 0, 0, B_HEADER, 16 + 512, D_NEXT, 1);
	rig_desc(f->r, 0, 1, B_STATUS, 1, D_WRITE, 0);
	rig_submit(f->r, 0, 0);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_OK);
	assert_int_equal(f->fake->disk[512], 0x77);
	assert_int_equal(f->fake->disk[1023], 0x77);
}

static void segments_are_bounded_in_number_and_not_in_length(void **state)
{
	struct blk_fixture *f = *state;

	assert_true(rd(f->r, R_DEVICE_FEATURES) & (1u << VIRTIO_BLK_F_SEG_MAX));
	assert_false(rd(f->r, R_DEVICE_FEATURES) & (1u << VIRTIO_BLK_F_SIZE_MAX));
	assert_int_equal(rig_read(f->r, R_CONFIG + 12, 4), 128);
}

/* As many segments as are offered, of `len` bytes each, and all of one memory. */
static uint8_t run_segments(struct blk_fixture *f, uint32_t len)
{
	uint16_t i, before;

	rig_reset(f->r);
	rig_boot(f->r, BLK_FEATURES, 256);
	free(f->fake->disk);
	f->fake->b.size = 128ull * len;
	f->fake->disk = calloc(1, f->fake->b.size);
	before = rig_used_idx(f->r, 0);
	blk_header(f, VIRTIO_BLK_T_OUT, 0);
	rig_desc(f->r, 0, 0, B_HEADER, 16, D_NEXT, 1);
	for (i = 1; i <= 128; i++)
		rig_desc(f->r, 0, i, RAM_A, len, D_NEXT, (uint16_t)(i + 1));
	rig_desc(f->r, 0, 129, B_STATUS, 1, D_WRITE, 0);
	rig_submit(f->r, 0, 0);
	assert_int_equal(rig_used_idx(f->r, 0), before + 1);
	return blk_status(f);
}

static void segments_of_large_pages_are_served(void **state)
{
	assert_int_equal(run_segments(*state, 65536), VIRTIO_BLK_S_OK);
}

static void the_largest_request_is_served(void **state)
{
	assert_int_equal(run_segments(*state, LIMIT_BLK_REQUEST / 128), VIRTIO_BLK_S_OK);
}

/* The engine takes two; the others wait for it, and none is lost. */
static void a_full_engine_is_waited_for(void **state)
{
	struct blk_fixture *f = *state;
	uint16_t i;

	f->fake->slow = true;
	f->fake->capacity = 2;
	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	for (i = 3; i < 8; i++)
		rig_desc(f->r, 0, i, B_HEADER, 16, D_NEXT, 1);
	for (i = 3; i < 8; i++)
		rig_submit(f->r, 0, i);
	assert_int_equal(f->fake->held_count, 2);
	for (i = 0; i < 3; i++)
		rig_call(f->r, fake_finish, f->fake);
	rig_settle(f->r);
	assert_int_equal(rig_used_idx(f->r, 0), 5);
	assert_int_equal(f->fake->submitted, 5);
}

static void an_error_of_the_engine_is_an_io_error(void **state)
{
	static const int errors[] = { -EIO, -ENOSPC, -EDQUOT, -EROFS };
	struct blk_fixture *f = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		f->fake->fail = errors[i];
		assert_int_equal(blk_run(f, VIRTIO_BLK_T_OUT, 0, 512), VIRTIO_BLK_S_IOERR);
	}
	f->fake->fail = 0;
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_OUT, 0, 512), VIRTIO_BLK_S_OK);
}

struct exchange {
	struct blk_fixture *f;
	struct fake_backend *new;
	int code;
	struct error err;
};

static void exchange(void *arg)
{
	struct exchange *x = arg;
	struct device *dev = x->f->r->d;

	x->code = dev->ops->exchange(dev, &x->new->b, &x->err);
}

static void exchange_takes_a_new_drive_over(void **state)
{
	struct blk_fixture *f = *state;
	struct exchange x = { .f = f, .new = fake_backend_new(DISK_BYTES * 2) };
	uint32_t generation = rd(f->r, R_GENERATION);
	bool destroyed = false;

	f->fake->destroyed = &destroyed;
	rig_call(f->r, exchange, &x);
	assert_int_equal(x.code, 0);
	assert_true(destroyed);
	assert_true(x.new->attached);
	f->fake = x.new;
	assert_int_equal(rig_read(f->r, R_CONFIG, 8), DISK_SECTORS * 2);
	assert_int_not_equal(rd(f->r, R_GENERATION), generation);
	assert_int_equal(rd(f->r, R_INTERRUPT_STATUS), 2);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, DISK_SECTORS, 512), VIRTIO_BLK_S_OK);
}

/* What the old drive has in flight ends there. */
static void exchange_drains_the_old_drive(void **state)
{
	struct blk_fixture *f = *state;
	struct exchange x = { .f = f, .new = fake_backend_new(DISK_BYTES) };

	f->fake->slow = true;
	blk_chain(f, VIRTIO_BLK_T_IN, 4, 512, D_WRITE);
	rig_submit(f->r, 0, 0);
	assert_int_equal(rig_used_idx(f->r, 0), 0);
	rig_call(f->r, exchange, &x);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_OK);
	assert_int_equal(*rig_ram(f->r, B_DATA), 4);
	assert_int_equal(x.new->submitted, 0);
	f->fake = x.new;
}

/* The old engine is full: what was accepted for the old file does not go to the new one. */
static void exchange_ends_a_stalled_request(struct blk_fixture *f, uint32_t type, uint64_t sector)
{
	struct exchange x = { .f = f, .new = fake_backend_new(512) };

	f->fake->slow = true;
	f->fake->capacity = 1;
	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	rig_submit(f->r, 0, 0);
	blk_chain(f, type, sector, 512, 0);
	rig_desc(f->r, 0, 5, B_HEADER, 16, D_NEXT, 1);
	rig_submit(f->r, 0, 5);
	assert_int_equal(f->fake->submitted, 1);
	rig_call(f->r, exchange, &x);
	rig_settle(f->r);
	f->fake = x.new;
	assert_int_equal(rig_used_idx(f->r, 0), 2);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_OK);
	assert_int_equal(x.new->submitted, 0);
}

static void exchange_ends_a_stalled_flush_on_the_old_drive(void **state)
{
	exchange_ends_a_stalled_request(*state, VIRTIO_BLK_T_FLUSH, 0);
	assert_int_equal(blk_run(*state, VIRTIO_BLK_T_FLUSH, 0, 0), VIRTIO_BLK_S_OK);
}

static void exchange_ends_a_stalled_write_on_the_old_drive(void **state)
{
	exchange_ends_a_stalled_request(*state, VIRTIO_BLK_T_OUT, DISK_SECTORS - 1);
	assert_int_equal(blk_run(*state, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

/* The old drive's request does not end: it may not reach the guest any more. */
static void exchange_that_cannot_wait_needs_a_reset(void **state)
{
	struct blk_fixture *f = *state;
	struct exchange x = { .f = f, .new = fake_backend_new(512) };

	f->fake->slow = true;
	f->fake->stuck = true;
	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	rig_submit(f->r, 0, 0);
	rig_call(f->r, exchange, &x);
	assert_int_equal(x.code, -EIO);
	assert_false(x.new->attached);
	assert_true(rig_needs_reset(f->r));
	rig_call(f->r, fake_finish, f->fake);
	assert_int_equal(rig_used_idx(f->r, 0), 0);
	assert_int_equal(blk_status(f), NO_STATUS);
	virtio_blk_class.close(&x.new->b);
}

static void exchange_refuses_other_access(void **state)
{
	struct blk_fixture *f = *state;
	struct exchange x = { .f = f, .new = fake_backend_new(DISK_BYTES) };

	x.new->b.read_only = true;
	rig_call(f->r, exchange, &x);
	assert_int_equal(x.code, -EINVAL);
	virtio_blk_class.close(&x.new->b);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

static void exchange_of_an_inactive_device(void **state)
{
	struct blk_fixture *f = *state;
	struct exchange x = { .f = f, .new = fake_backend_new(512) };

	rig_reset(f->r);
	rig_call(f->r, exchange, &x);
	assert_int_equal(x.code, 0);
	assert_int_equal(rd(f->r, R_INTERRUPT_STATUS), 0);
	f->fake = x.new;
	assert_int_equal(rig_read(f->r, R_CONFIG, 8), 1);
	rig_boot(f->r, BLK_FEATURES, 16);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

/* Ten operations a second: the bucket's ten go at once, the eleventh owes. */
static void a_rate_limit_delays_requests(void **state)
{
	struct drive_config c;
	struct blk_fixture *f;
	uint16_t i;

	blk_config(&c);
	c.rate_limiter.ops = (struct token_bucket_config){ .size = 10, .refill_time_ms = 1000,
							   .present = true };
	f = blk_fixture_new(&c);
	rig_boot(f->r, BLK_FEATURES, 16);
	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	for (i = 3; i < 16; i++) {
		rig_desc(f->r, 0, i, B_HEADER, 16, D_NEXT, 1);
		rig_submit(f->r, 0, i);
	}
	assert_in_range(rig_used_idx(f->r, 0), 11, 12);
	rig_wait_used(f->r, 0, 13);
	*state = f;
	blk_teardown(state);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, blk_setup, blk_teardown)
	const struct CMUnitTest tests[] = {
		T(read_gives_the_sectors),
		T(write_changes_the_sectors),
		T(the_last_sector_can_be_used),
		T(flush_reaches_the_engine),
		T(the_id_is_the_drives),
		T(writes_are_stable_when_the_driver_does_not_flush),
		cmocka_unit_test(without_write_back_flush_is_not_offered),
		cmocka_unit_test_setup_teardown(a_read_only_drive_says_so_and_can_be_read,
						blk_setup_read_only, blk_teardown),
		T(an_indirect_request),
		T(a_request_may_be_cut_in_any_way),
		T(a_write_may_follow_its_header),
		T(segments_are_bounded_in_number_and_not_in_length),
		T(segments_of_large_pages_are_served),
		T(the_largest_request_is_served),
		T(a_full_engine_is_waited_for),
		T(an_error_of_the_engine_is_an_io_error),
		T(exchange_takes_a_new_drive_over),
		T(exchange_drains_the_old_drive),
		T(exchange_ends_a_stalled_flush_on_the_old_drive),
		T(exchange_ends_a_stalled_write_on_the_old_drive),
		T(exchange_that_cannot_wait_needs_a_reset),
		T(exchange_refuses_other_access),
		T(exchange_of_an_inactive_device),
		cmocka_unit_test(a_rate_limit_delays_requests),
	};

	return cmocka_run_group_tests_name("virtio blk", tests, NULL, NULL);
}
