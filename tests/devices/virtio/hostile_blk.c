/* Hostile ring suite: requests to a block device. */
#include "tests/devices/virtio/blk_fixture.h"
#include "tests/devices/virtio/hostile_ring.h"
#include "vmm/base/bits.h"

static void request_at(struct blk_fixture *f, unsigned i, uint64_t addr, uint32_t len,
		       uint16_t flags, uint16_t next)
{
	rig_desc(f->r, 0, i, addr, len, flags, next);
}

/* The last chain was given back; the disk is as it was; a good request works. */
static void assert_given_back(struct blk_fixture *f, uint16_t n, uint32_t len)
{
	assert_int_equal(rig_used_idx(f->r, 0), n);
	assert_int_equal(rig_used_len(f->r, 0, n - 1u), len);
	assert_false(rig_needs_reset(f->r));
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

static void assert_recovers(struct blk_fixture *f)
{
	rig_settle(f->r);
	assert_true(rig_needs_reset(f->r));
	f->fake->slow = false;
	rig_reset(f->r);
	rig_boot(f->r, BLK_FEATURES, 16);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

static void header_alone(void **state)
{
	struct blk_fixture *f = *state;

	blk_header(f, VIRTIO_BLK_T_IN, 0);
	request_at(f, 0, B_HEADER, 16, 0, 0);
	rig_submit(f->r, 0, 0);
	assert_given_back(f, 1, 0);
}

static void status_alone(void **state)
{
	struct blk_fixture *f = *state;

	blk_header(f, VIRTIO_BLK_T_IN, 0);
	request_at(f, 0, B_STATUS, 1, D_WRITE, 0);
	rig_submit(f->r, 0, 0);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_IOERR);
	assert_given_back(f, 1, 1);
}

static void header_of_every_short_length(void **state)
{
	struct blk_fixture *f = *state;
	uint32_t len;

	for (len = 1; len < 16; len++) {
		blk_header(f, VIRTIO_BLK_T_IN, 0);
		request_at(f, 0, B_HEADER, len, D_NEXT, 1);
		request_at(f, 1, B_STATUS, 1, D_WRITE, 0);
		rig_submit(f->r, 0, 0);
		assert_int_equal(blk_status(f), VIRTIO_BLK_S_IOERR);
	}
	assert_given_back(f, 15, 1);
}

static void header_without_bytes(void **state)
{
	struct blk_fixture *f = *state;

	request_at(f, 0, B_HEADER, 0, D_NEXT, 1);
	request_at(f, 1, B_STATUS, 1, D_WRITE, 0);
	rig_submit(f->r, 0, 0);
	assert_given_back(f, 1, 0);
}

static void status_is_not_writable(void **state)
{
	struct blk_fixture *f = *state;

	blk_header(f, VIRTIO_BLK_T_OUT, 0);
	request_at(f, 0, B_HEADER, 16, D_NEXT, 1);
	request_at(f, 1, B_DATA, 512, D_NEXT, 2);
	request_at(f, 2, B_STATUS, 1, 0, 0);
	rig_submit(f->r, 0, 0);
	assert_int_equal(blk_status(f), NO_STATUS);
	assert_int_equal(f->fake->submitted, 0);
	assert_given_back(f, 1, 0);
}

static void status_without_bytes(void **state)
{
	struct blk_fixture *f = *state;

	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	request_at(f, 2, B_STATUS, 0, D_WRITE, 0);
	rig_submit(f->r, 0, 0);
	assert_int_equal(f->fake->submitted, 0);
	assert_given_back(f, 1, 0);
}

static void status_in_the_hole(void **state)
{
	struct blk_fixture *f = *state;

	blk_chain(f, VIRTIO_BLK_T_OUT, 0, 512, 0);
	request_at(f, 2, HOLE, 1, D_WRITE, 0);
	rig_submit(f->r, 0, 0);
	assert_int_equal(f->fake->submitted, 0);
	assert_given_back(f, 1, 0);
}

static void header_in_the_hole(void **state)
{
	struct blk_fixture *f = *state;

	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	request_at(f, 0, HOLE, 16, D_NEXT, 1);
	rig_submit(f->r, 0, 0);
	assert_int_equal(blk_status(f), NO_STATUS);
	assert_given_back(f, 1, 0);
}

/* Status is the last byte; what lies between data and it makes a bad length. */
static void status_of_several_bytes(void **state)
{
	struct blk_fixture *f = *state;

	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	request_at(f, 2, B_STATUS, 8, D_WRITE, 0);
	rig_submit(f->r, 0, 0);
	assert_int_equal(*rig_ram(f->r, B_STATUS + 7), VIRTIO_BLK_S_IOERR);
	assert_given_back(f, 1, 1);
}

/* A request that must fail without reaching the engine. */
static void assert_fails(struct blk_fixture *f, uint32_t type, uint64_t sector, uint32_t len)
{
	unsigned before = f->fake->submitted;

	assert_int_equal(blk_run(f, type, sector, len), VIRTIO_BLK_S_IOERR);
	assert_int_equal(f->fake->submitted, before);
}

#define SECTOR_CASE(name, sector, len)                                                         \
	static void name(void **state)                                                         \
	{                                                                                      \
		assert_fails(*state, VIRTIO_BLK_T_IN, sector, len);                            \
		assert_fails(*state, VIRTIO_BLK_T_OUT, sector, len);                           \
		assert_given_back(*state, 2, 1);                                               \
	}

SECTOR_CASE(sector_is_the_capacity, DISK_SECTORS, 512)
SECTOR_CASE(last_sector_and_one_more, DISK_SECTORS - 1, 1024)
SECTOR_CASE(sector_is_the_largest_number, UINT64_MAX, 512)
SECTOR_CASE(sector_and_length_wrap, UINT64_MAX - 7, 4096)
SECTOR_CASE(sector_times_512_wraps_to_zero, 1ull << 55, 512)
SECTOR_CASE(sector_times_512_wraps_into_the_disk, (1ull << 55) + 1, 512)
SECTOR_CASE(sector_makes_a_negative_offset, 1ull << 54, 512)
SECTOR_CASE(length_is_no_multiple_of_a_sector, 0, 511)
SECTOR_CASE(length_is_one_byte_too_long, 0, 513)
SECTOR_CASE(length_is_the_disk_and_one_sector, 0, DISK_BYTES + 512)

static void transfer_of_no_bytes(void **state)
{
	struct blk_fixture *f = *state;

	assert_fails(f, VIRTIO_BLK_T_IN, 0, 0);
	assert_fails(f, VIRTIO_BLK_T_OUT, 0, 0);
}

/* Descriptors over the same memory, on a disk that is large enough: one sector too many. */
static void transfer_above_the_limit(void **state)
{
	struct blk_fixture *f = *state;
	uint64_t table = DATA + 0x8000;
	uint16_t i;

	rig_reset(f->r);
	rig_boot(f->r, BLK_FEATURES, 256);
	f->fake->b.size = 2 * LIMIT_BLK_REQUEST;
	blk_header(f, VIRTIO_BLK_T_OUT, 0);
	rig_desc_at(f->r, table, 0, B_HEADER, 16, D_NEXT, 1);
	for (i = 1; i <= 128; i++)
		rig_desc_at(f->r, table, i, RAM_A, LIMIT_BLK_REQUEST / 128, D_NEXT, (uint16_t)(i + 1));
	rig_desc_at(f->r, table, 129, B_DATA, 512, D_NEXT, 130);
	rig_desc_at(f->r, table, 130, B_STATUS, 1, D_WRITE, 0);
	request_at(f, 0, table, 131 * 16, D_INDIRECT, 0);
	rig_submit(f->r, 0, 0);
	assert_int_equal(f->fake->submitted, 0);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_IOERR);
	assert_given_back(f, 1, 1);
}

static void write_to_a_read_only_drive(void **state)
{
	struct blk_fixture *f = *state;

	assert_fails(f, VIRTIO_BLK_T_OUT, 0, 512);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

static void types_that_do_not_exist(void **state)
{
	static const uint32_t types[] = { 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 16, 18, 20, 22, 24,
					  0x80000000, 0x7fffffff, 0xffffffff };
	struct blk_fixture *f = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		assert_int_equal(blk_run(f, types[i], 0, 512), VIRTIO_BLK_S_UNSUPP);
	assert_int_equal(f->fake->submitted, 0);
}

static void discard_and_write_zeroes_were_not_offered(void **state)
{
	struct blk_fixture *f = *state;

	memset(rig_ram(f->r, B_DATA), 0xff, 512);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_DISCARD, 0, 512), VIRTIO_BLK_S_UNSUPP);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_WRITE_ZEROES, 0, 512), VIRTIO_BLK_S_UNSUPP);
}

/* The upper half of the type's second word is no part of it. */
static void reserved_word_of_the_header(void **state)
{
	struct blk_fixture *f = *state;

	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	put32(f->r, B_HEADER + 4, 0xffffffff);
	rig_submit(f->r, 0, 0);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_OK);
}

static void flush_with_data_and_a_wild_sector(void **state)
{
	struct blk_fixture *f = *state;

	assert_int_equal(blk_run(f, VIRTIO_BLK_T_FLUSH, UINT64_MAX, 512), VIRTIO_BLK_S_OK);
	assert_int_equal(f->fake->flushes, 1);
}

static void id_into_a_short_buffer(void **state)
{
	struct blk_fixture *f = *state;

	memset(rig_ram(f->r, B_DATA), 0xff, 8);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_GET_ID, 0, 3), VIRTIO_BLK_S_OK);
	assert_memory_equal(rig_ram(f->r, B_DATA), "roo\xff", 4);
	assert_int_equal(rig_used_len(f->r, 0, 0), 4);
}

static void id_into_no_buffer(void **state)
{
	assert_int_equal(blk_run(*state, VIRTIO_BLK_T_GET_ID, 0, 0), VIRTIO_BLK_S_IOERR);
}

static void id_into_a_long_buffer(void **state)
{
	struct blk_fixture *f = *state;

	memset(rig_ram(f->r, B_DATA), 0xff, 64);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_GET_ID, 0, 64), VIRTIO_BLK_S_OK);
	assert_int_equal(*rig_ram(f->r, B_DATA + 20), 0xff);
}

/* The data descriptor has the direction of the other type. */
static void read_into_readable_memory(void **state)
{
	struct blk_fixture *f = *state;

	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, 0);
	rig_submit(f->r, 0, 0);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_IOERR);
	assert_int_equal(f->fake->submitted, 0);
}

static void write_from_writable_memory(void **state)
{
	struct blk_fixture *f = *state;

	blk_chain(f, VIRTIO_BLK_T_OUT, 0, 512, D_WRITE);
	rig_submit(f->r, 0, 0);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_IOERR);
	assert_int_equal(f->fake->submitted, 0);
}

/* 256 ranges of 2 bytes make one sector; the kernel's limit is not passed. */
static void data_in_the_smallest_pieces(void **state)
{
	struct blk_fixture *f = *state;
	uint64_t table = DATA + 0x8000;
	uint16_t i;

	rig_reset(f->r);
	rig_boot(f->r, BLK_FEATURES, 256);
	blk_header(f, VIRTIO_BLK_T_IN, 1);
	rig_desc_at(f->r, table, 0, B_HEADER, 16, D_NEXT, 1);
	for (i = 1; i <= 253; i++)
		rig_desc_at(f->r, table, i, B_DATA + 2ull * (i - 1), 2, D_NEXT | D_WRITE,
			    (uint16_t)(i + 1));
	rig_desc_at(f->r, table, 254, B_DATA + 506, 6, D_NEXT | D_WRITE, 255);
	rig_desc_at(f->r, table, 255, B_STATUS, 1, D_WRITE, 0);
	request_at(f, 0, table, 256 * 16, D_INDIRECT, 0);
	rig_submit(f->r, 0, 0);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_OK);
	assert_memory_equal(rig_ram(f->r, B_DATA), f->fake->disk + 512, 512);
}

static void read_over_its_own_header(void **state)
{
	struct blk_fixture *f = *state;

	blk_chain(f, VIRTIO_BLK_T_IN, 1, 512, D_WRITE);
	request_at(f, 1, B_HEADER, 512, D_NEXT | D_WRITE, 2);
	rig_submit(f->r, 0, 0);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_OK);
	assert_given_back(f, 1, 513);
}

/* The guest overwrites its rings: it hurts itself alone. */
static void read_over_the_rings(void **state)
{
	struct blk_fixture *f = *state;

	blk_chain(f, VIRTIO_BLK_T_IN, 0, 0x3000, D_WRITE);
	request_at(f, 1, RING_DESC(0), 0x3000, D_NEXT | D_WRITE, 2);
	rig_submit(f->r, 0, 0);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_OK);
	rig_kick(f->r, 0);
	rig_settle(f->r);
	f->fake->slow = false;
	rig_reset(f->r);
	rig_boot(f->r, BLK_FEATURES, 16);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

static void malformed_head_then_a_good_chain(void **state)
{
	struct blk_fixture *f = *state;

	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	request_at(f, 5, DATA, 16, D_NEXT, 5);
	rig_avail(f->r, 0, 5);
	rig_submit(f->r, 0, 0);
	assert_int_equal(rig_used_idx(f->r, 0), 2);
	assert_int_equal(rig_used_id(f->r, 0, 0), 5);
	assert_int_equal(rig_used_len(f->r, 0, 0), 0);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_OK);
	assert_false(rig_needs_reset(f->r));
}

static void a_queue_full_of_malformed_chains(void **state)
{
	struct blk_fixture *f = *state;
	uint16_t i, round;

	for (round = 0; round < 10; round++) {
		for (i = 0; i < 16; i++) {
			request_at(f, i, HOLE, 16, D_NEXT, i);
			rig_avail(f->r, 0, i);
		}
		rig_kick(f->r, 0);
		rig_wait_used(f->r, 0, (uint16_t)(16 * (round + 1)));
	}
	assert_given_back(f, 160, 0);
}

/* The engine still has the first request when its head comes again. */
static void head_again_while_in_flight(void **state)
{
	struct blk_fixture *f = *state;

	f->fake->slow = true;
	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	rig_submit(f->r, 0, 0);
	rig_submit(f->r, 0, 0);
	assert_int_equal(f->fake->held_count, 1);
	rig_call(f->r, fake_finish, f->fake);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_OK);
	assert_recovers(f);
}

static void avail_idx_jumps_while_in_flight(void **state)
{
	struct blk_fixture *f = *state;

	f->fake->slow = true;
	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	rig_submit(f->r, 0, 0);
	rig_avail_idx(f->r, 0, 5000);
	rig_kick(f->r, 0);
	assert_recovers(f);
}

static void head_out_of_range_behind_good_requests(void **state)
{
	struct blk_fixture *f = *state;

	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	rig_avail(f->r, 0, 0);
	rig_submit(f->r, 0, 16);
	assert_int_equal(rig_used_idx(f->r, 0), 1);
	assert_recovers(f);
}

static void reset_with_a_full_engine(void **state)
{
	struct blk_fixture *f = *state;
	uint16_t i;

	f->fake->slow = true;
	f->fake->capacity = 1;
	blk_chain(f, VIRTIO_BLK_T_OUT, 0, 512, 0);
	for (i = 3; i < 9; i++) {
		request_at(f, i, B_HEADER, 16, D_NEXT, 1);
		rig_submit(f->r, 0, i);
	}
	rig_reset(f->r);
	assert_int_equal(f->fake->held_count, 0);
	f->fake->slow = false;
	rig_boot(f->r, BLK_FEATURES, 16);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

/* The driver frees its memory right after reset: nothing is written any more. */
static void memory_is_quiet_after_reset(void **state)
{
	struct blk_fixture *f = *state;

	f->fake->slow = true;
	blk_chain(f, VIRTIO_BLK_T_IN, 1, 512, D_WRITE);
	rig_submit(f->r, 0, 0);
	rig_reset(f->r);
	memset(rig_ram(f->r, RAM_A), 0xa5, RAM_A_END - RAM_A);
	rig_kick(f->r, 0);
	rig_settle(f->r);
	assert_int_equal(*rig_ram(f->r, B_DATA), 0xa5);
	assert_int_equal(blk_status(f), 0xa5);
	assert_int_equal(rig_used_idx(f->r, 0), 0xa5a5);
}

static void flush_storm(void **state)
{
	struct blk_fixture *f = *state;
	uint16_t i, round;

	blk_chain(f, VIRTIO_BLK_T_FLUSH, 0, 0, 0);
	for (i = 3; i < 16; i++)
		request_at(f, i, B_HEADER, 16, D_NEXT, 2);
	for (round = 0; round < 50; round++) {
		for (i = 3; i < 16; i++)
			rig_avail(f->r, 0, i);
		rig_kick(f->r, 0);
		rig_wait_used(f->r, 0, (uint16_t)(13 * (round + 1)));
	}
	assert_int_equal(f->fake->flushes, 650);
}

/* Everything is beyond the end of an empty drive, and nothing divides by it. */
static void an_empty_drive_has_no_sectors(void **state)
{
	struct blk_fixture *f = *state;

	f->fake->b.size = 0;
	assert_fails(f, VIRTIO_BLK_T_IN, 0, 512);
	assert_fails(f, VIRTIO_BLK_T_OUT, 0, 512);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_FLUSH, 0, 0), VIRTIO_BLK_S_OK);
}

static void the_tail_of_an_odd_drive_is_not_used(void **state)
{
	struct blk_fixture *f = *state;

	f->fake->b.size = 10 * 512 + 511;
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 9, 512), VIRTIO_BLK_S_OK);
	assert_fails(f, VIRTIO_BLK_T_IN, 10, 512);
}

static void every_request_fails_and_the_device_goes_on(void **state)
{
	struct blk_fixture *f = *state;
	int i;

	f->fake->fail = -EIO;
	for (i = 0; i < 100; i++)
		assert_int_equal(blk_run(f, VIRTIO_BLK_T_OUT, 0, 512), VIRTIO_BLK_S_IOERR);
	f->fake->fail = 0;
	assert_given_back(f, 100, 1);
}

/* Queue of one descriptor: only an indirect request fits. */
static void a_queue_of_one_descriptor(void **state)
{
	struct blk_fixture *f = *state;

	rig_reset(f->r);
	rig_boot(f->r, BLK_FEATURES, 1);
	blk_header(f, VIRTIO_BLK_T_IN, 0);
	request_at(f, 0, B_HEADER, 16, D_NEXT, 0);
	rig_submit(f->r, 0, 0);
	assert_int_equal(rig_used_len(f->r, 0, 0), 0);
	rig_submit(f->r, 0, 0);
	assert_int_equal(rig_used_idx(f->r, 0), 2);
	assert_false(rig_needs_reset(f->r));
}

#define T(name) cmocka_unit_test_setup_teardown(name, blk_setup, blk_teardown)
static const struct CMUnitTest tests[] = {
	T(header_alone),
	T(status_alone),
	T(header_of_every_short_length),
	T(header_without_bytes),
	T(status_is_not_writable),
	T(status_without_bytes),
	T(status_in_the_hole),
	T(header_in_the_hole),
	T(status_of_several_bytes),
	T(sector_is_the_capacity),
	T(last_sector_and_one_more),
	T(sector_is_the_largest_number),
	T(sector_and_length_wrap),
	T(sector_times_512_wraps_to_zero),
	T(sector_times_512_wraps_into_the_disk),
	T(sector_makes_a_negative_offset),
	T(length_is_no_multiple_of_a_sector),
	T(length_is_one_byte_too_long),
	T(length_is_the_disk_and_one_sector),
	T(transfer_of_no_bytes),
	T(transfer_above_the_limit),
	cmocka_unit_test_setup_teardown(write_to_a_read_only_drive, blk_setup_read_only,
					blk_teardown),
	T(types_that_do_not_exist),
	T(discard_and_write_zeroes_were_not_offered),
	T(reserved_word_of_the_header),
	T(flush_with_data_and_a_wild_sector),
	T(id_into_a_short_buffer),
	T(id_into_no_buffer),
	T(id_into_a_long_buffer),
	T(read_into_readable_memory),
	T(write_from_writable_memory),
	T(data_in_the_smallest_pieces),
	T(read_over_its_own_header),
	T(read_over_the_rings),
	T(malformed_head_then_a_good_chain),
	T(a_queue_full_of_malformed_chains),
	T(head_again_while_in_flight),
	T(avail_idx_jumps_while_in_flight),
	T(head_out_of_range_behind_good_requests),
	T(reset_with_a_full_engine),
	T(memory_is_quiet_after_reset),
	T(flush_storm),
	T(an_empty_drive_has_no_sectors),
	T(the_tail_of_an_odd_drive_is_not_used),
	T(every_request_fails_and_the_device_goes_on),
	T(a_queue_of_one_descriptor),
};

const struct hostile_group hostile_blk = { "hostile blk", tests, ARRAY_SIZE(tests) };
