/* Hostile ring suite: descriptor chains and indirect tables. */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/devices/virtio/hostile_ring.h"
#include "tests/devices/virtio/queue_fixture.h"
#include "vmm/base/bits.h"

#define TABLE (DATA + 0x8000)

static void assert_malformed(void **state)
{
	assert_int_equal(parse(*state, 0), -EBADMSG);
}

static void t(void **state, unsigned i, uint64_t addr, uint32_t len, uint16_t flags, uint16_t next)
{
	rig_desc_at(((struct queue_fixture *)*state)->r, TABLE, i, addr, len, flags, next);
}

static void descriptor_points_at_itself(void **state)
{
	d(*state, 0, DATA, 16, D_NEXT, 0);
	assert_malformed(state);
}

static void two_descriptors_in_a_loop(void **state)
{
	d(*state, 0, DATA, 16, D_NEXT, 1);
	d(*state, 1, DATA, 16, D_NEXT, 0);
	assert_malformed(state);
}

static void loop_that_does_not_pass_the_head(void **state)
{
	d(*state, 0, DATA, 16, D_NEXT, 5);
	d(*state, 5, DATA, 16, D_NEXT, 6);
	d(*state, 6, DATA, 16, D_NEXT, 5);
	assert_malformed(state);
}

static void writable_loop(void **state)
{
	d(*state, 0, DATA, 16, D_NEXT | D_WRITE, 1);
	d(*state, 1, DATA, 16, D_NEXT | D_WRITE, 1);
	assert_malformed(state);
}

/* The whole queue, and the last one goes on. */
static void chain_longer_than_the_queue(void **state)
{
	uint16_t i;

	for (i = 0; i < 8; i++)
		d(*state, i, DATA, 16, D_NEXT, (uint16_t)((i + 1) % 8));
	assert_malformed(state);
}

static void next_is_the_queue_size(void **state)
{
	d(*state, 0, DATA, 16, D_NEXT, 8);
	assert_malformed(state);
}

static void next_is_the_largest_number(void **state)
{
	d(*state, 0, DATA, 16, D_NEXT, 0xffff);
	assert_malformed(state);
}

static void next_without_the_flag_is_not_followed(void **state)
{
	struct queue_fixture *f = *state;

	d(f, 0, DATA, 16, 0, 0xffff);
	assert_int_equal(parse(f, 0), 0);
	assert_int_equal(f->c.readable, 1);
}

/* One descriptor of address and length, readable and writable. */
static void assert_bad_buffer(void **state, uint64_t addr, uint32_t len)
{
	d(*state, 0, addr, len, 0, 0);
	assert_malformed(state);
	d(*state, 0, addr, len, D_WRITE, 0);
	assert_malformed(state);
	t(state, 0, addr, len, D_WRITE, 0);
	d(*state, 0, TABLE, 16, D_INDIRECT, 0);
	assert_malformed(state);
}

#define BUFFER_CASE(name, addr, len)                                                           \
	static void name(void **state)                                                         \
	{                                                                                      \
		assert_bad_buffer(state, addr, len);                                           \
	}

BUFFER_CASE(address_and_length_wrap, 0xffffffffffffff00ull, 512)
BUFFER_CASE(address_and_length_end_at_zero, 0xffffffffffffff00ull, 256)
BUFFER_CASE(address_is_the_last_byte, 0xffffffffffffffffull, 1)
BUFFER_CASE(address_below_all_ram, 0, 16)
BUFFER_CASE(address_one_below_ram, RAM_A - 1, 16)
BUFFER_CASE(address_in_the_hole, HOLE + 0x1000, 16)
BUFFER_CASE(address_at_the_end_of_ram, RAM_C_END, 1)
BUFFER_CASE(address_is_a_device, 0xc0001050ull, 4)
BUFFER_CASE(address_is_the_interrupt_controller, 0xfee00000ull, 4)
BUFFER_CASE(buffer_runs_into_the_hole_by_one, RAM_B_END - 15, 16)
BUFFER_CASE(buffer_runs_out_of_ram_by_one, RAM_C_END - 15, 16)
BUFFER_CASE(buffer_jumps_the_hole, RAM_B_END - 16, 0xa0020)
BUFFER_CASE(buffer_begins_in_the_hole, RAM_C - 1, 16)
BUFFER_CASE(buffer_of_no_bytes, DATA, 0)
BUFFER_CASE(buffer_of_four_gigabytes, DATA, 0xffffffff)
BUFFER_CASE(buffer_of_two_gigabytes, DATA, 0x80000000)

static void no_bytes_in_the_middle_of_a_chain(void **state)
{
	d(*state, 0, DATA, 16, D_NEXT, 1);
	d(*state, 1, DATA, 0, D_NEXT | D_WRITE, 2);
	d(*state, 2, DATA, 1, D_WRITE, 0);
	assert_malformed(state);
}

static void readable_after_writable(void **state)
{
	d(*state, 0, DATA, 16, D_NEXT | D_WRITE, 1);
	d(*state, 1, DATA, 16, 0, 0);
	assert_malformed(state);
}

static void readable_after_writable_in_a_table(void **state)
{
	d(*state, 0, DATA, 16, D_NEXT | D_WRITE, 1);
	d(*state, 1, TABLE, 16, D_INDIRECT, 0);
	t(state, 0, DATA, 16, 0, 0);
	assert_malformed(state);
}

static void indirect_without_the_feature(void **state)
{
	assert_int_equal(queue_open(*state, 8, 0), 0);
	t(state, 0, DATA, 16, 0, 0);
	d(*state, 0, TABLE, 16, D_INDIRECT, 0);
	assert_malformed(state);
}

static void indirect_in_indirect(void **state)
{
	t(state, 0, TABLE + 64, 16, D_INDIRECT, 0);
	t(state, 4, DATA, 16, 0, 0);
	d(*state, 0, TABLE, 16, D_INDIRECT, 0);
	assert_malformed(state);
}

static void indirect_table_that_contains_itself(void **state)
{
	t(state, 0, TABLE, 16, D_INDIRECT, 0);
	d(*state, 0, TABLE, 16, D_INDIRECT, 0);
	assert_malformed(state);
}

static void indirect_later_in_a_table(void **state)
{
	t(state, 0, DATA, 16, D_NEXT, 1);
	t(state, 1, TABLE, 32, D_INDIRECT, 0);
	d(*state, 0, TABLE, 32, D_INDIRECT, 0);
	assert_malformed(state);
}

static void indirect_with_next(void **state)
{
	t(state, 0, DATA, 16, 0, 0);
	d(*state, 0, TABLE, 16, D_INDIRECT | D_NEXT, 1);
	d(*state, 1, DATA, 16, 0, 0);
	assert_malformed(state);
}

#define TABLE_CASE(name, addr, len)                                                            \
	static void name(void **state)                                                         \
	{                                                                                      \
		d(*state, 0, addr, len, D_INDIRECT, 0);                                        \
		assert_malformed(state);                                                       \
	}

TABLE_CASE(table_of_no_bytes, TABLE, 0)
TABLE_CASE(table_of_15_bytes, TABLE, 15)
TABLE_CASE(table_of_17_bytes, TABLE, 17)
TABLE_CASE(table_longer_than_the_queue, TABLE, 9 * 16)
TABLE_CASE(table_of_four_gigabytes, TABLE, 0xfffffff0)
TABLE_CASE(table_in_the_hole, HOLE, 32)
TABLE_CASE(table_below_ram, 0, 32)
TABLE_CASE(table_that_wraps, 0xfffffffffffffff8ull, 32)
TABLE_CASE(table_whose_first_entry_runs_into_the_hole, RAM_B_END - 8, 16)

/* The first entry is RAM, the second is not. */
static void table_that_runs_into_the_hole(void **state)
{
	struct queue_fixture *f = *state;

	rig_desc_at(f->r, RAM_B_END - 16, 0, DATA, 16, D_NEXT, 1);
	d(f, 0, RAM_B_END - 16, 32, D_INDIRECT, 0);
	assert_malformed(state);
}

static void table_next_out_of_range(void **state)
{
	t(state, 0, DATA, 16, D_NEXT, 2);
	d(*state, 0, TABLE, 32, D_INDIRECT, 0);
	assert_malformed(state);
}

/* In range of the queue, not of the table. */
static void table_next_is_an_index_of_the_queue(void **state)
{
	t(state, 0, DATA, 16, D_NEXT, 7);
	t(state, 7, DATA, 16, 0, 0);
	d(*state, 0, TABLE, 32, D_INDIRECT, 0);
	assert_malformed(state);
}

static void loop_in_a_table(void **state)
{
	t(state, 0, DATA, 16, D_NEXT, 1);
	t(state, 1, DATA, 16, D_NEXT, 0);
	d(*state, 0, TABLE, 32, D_INDIRECT, 0);
	assert_malformed(state);
}

/* Three direct ones and eight in the table are more than the queue has. */
static void direct_and_indirect_together_are_too_many(void **state)
{
	uint16_t i;

	for (i = 0; i < 8; i++)
		t(state, i, DATA, 16, i < 7 ? D_NEXT : 0, (uint16_t)(i + 1));
	for (i = 0; i < 3; i++)
		d(*state, i, DATA, 16, D_NEXT, (uint16_t)(i + 1));
	d(*state, 3, TABLE, 8 * 16, D_INDIRECT, 0);
	assert_malformed(state);
}

/* Each of 256 descriptors crosses two slots: more ranges than a chain may have. */
static void more_ranges_than_a_chain_may_have(void **state)
{
	uint16_t i;

	assert_int_equal(queue_open(*state, 256, 0), 0);
	for (i = 0; i < 256; i++)
		d(*state, i, RAM_A_END - 8, 16, i < 255 ? D_NEXT : 0, (uint16_t)(i + 1));
	assert_malformed(state);
}

static void a_full_queue_with_one_crossing_is_the_limit(void **state)
{
	struct queue_fixture *f = *state;
	uint16_t i;

	assert_int_equal(queue_open(f, 256, 0), 0);
	for (i = 0; i < 256; i++)
		d(f, i, i < 2 ? RAM_A_END - 8 : DATA, 16, i < 255 ? D_NEXT : 0, (uint16_t)(i + 1));
	assert_int_equal(parse(f, 0), 0);
	assert_int_equal(f->c.readable, LIMIT_CHAIN_IOV);
	d(f, 2, RAM_A_END - 8, 16, D_NEXT, 3);
	assert_malformed(state);
}

static void unknown_flags_mean_nothing(void **state)
{
	struct queue_fixture *f = *state;

	d(f, 0, DATA, 16, 0xfff8, 0xffff);
	assert_int_equal(parse(f, 0), 0);
	assert_int_equal(f->c.readable, 1);
}

static void table_at_an_odd_address(void **state)
{
	struct queue_fixture *f = *state;

	rig_desc_at(f->r, TABLE + 3, 0, DATA, 16, 0, 0);
	d(f, 0, TABLE + 3, 16, D_INDIRECT, 0);
	assert_int_equal(parse(f, 0), 0);
}

struct mutator {
	struct rig *r;
	atomic_bool stop;
};

/* Turns the table's entries between good and bad, as another vCPU could. */
static __attribute__((no_sanitize("thread"))) void *mutate(void *arg)
{
	struct mutator *m = arg;
	volatile uint32_t *len = (volatile uint32_t *)(void *)rig_ram(m->r, TABLE + 8);
	volatile uint64_t *addr = (volatile uint64_t *)(void *)rig_ram(m->r, TABLE);
	uint32_t n = 0;

	while (!atomic_load(&m->stop)) {
		*len = n++ & 1 ? 0xffffffff : 16;
		*addr = n & 2 ? HOLE : DATA;
	}
	return NULL;
}

/* Whatever is read, the ranges that come out are RAM and as long as they say. */
static void table_changes_while_it_is_walked(void **state)
{
	struct queue_fixture *f = *state;
	struct mutator m = { .r = f->r };
	pthread_t thread;
	int i;

	t(state, 0, DATA, 16, 0, 0);
	d(f, 0, TABLE, 16, D_INDIRECT, 0);
	assert_int_equal(pthread_create(&thread, NULL, mutate, &m), 0);
	for (i = 0; i < 20000; i++) {
		if (parse(f, 0))
			continue;
		assert_int_equal(f->c.iov[0].iov_len, 16);
		assert_ptr_equal(f->c.iov[0].iov_base, rig_ram(f->r, DATA));
	}
	atomic_store(&m.stop, true);
	pthread_join(thread, NULL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, queue_setup_8, queue_teardown)
static const struct CMUnitTest tests[] = {
	T(descriptor_points_at_itself),
	T(two_descriptors_in_a_loop),
	T(loop_that_does_not_pass_the_head),
	T(writable_loop),
	T(chain_longer_than_the_queue),
	T(next_is_the_queue_size),
	T(next_is_the_largest_number),
	T(next_without_the_flag_is_not_followed),
	T(address_and_length_wrap),
	T(address_and_length_end_at_zero),
	T(address_is_the_last_byte),
	T(address_below_all_ram),
	T(address_one_below_ram),
	T(address_in_the_hole),
	T(address_at_the_end_of_ram),
	T(address_is_a_device),
	T(address_is_the_interrupt_controller),
	T(buffer_runs_into_the_hole_by_one),
	T(buffer_runs_out_of_ram_by_one),
	T(buffer_jumps_the_hole),
	T(buffer_begins_in_the_hole),
	T(buffer_of_no_bytes),
	T(buffer_of_four_gigabytes),
	T(buffer_of_two_gigabytes),
	T(no_bytes_in_the_middle_of_a_chain),
	T(readable_after_writable),
	T(readable_after_writable_in_a_table),
	T(indirect_without_the_feature),
	T(indirect_in_indirect),
	T(indirect_table_that_contains_itself),
	T(indirect_later_in_a_table),
	T(indirect_with_next),
	T(table_of_no_bytes),
	T(table_of_15_bytes),
	T(table_of_17_bytes),
	T(table_longer_than_the_queue),
	T(table_of_four_gigabytes),
	T(table_in_the_hole),
	T(table_below_ram),
	T(table_that_wraps),
	T(table_whose_first_entry_runs_into_the_hole),
	T(table_that_runs_into_the_hole),
	T(table_next_out_of_range),
	T(table_next_is_an_index_of_the_queue),
	T(loop_in_a_table),
	T(direct_and_indirect_together_are_too_many),
	T(more_ranges_than_a_chain_may_have),
	T(a_full_queue_with_one_crossing_is_the_limit),
	T(unknown_flags_mean_nothing),
	T(table_at_an_odd_address),
	T(table_changes_while_it_is_walked),
};

const struct hostile_group hostile_chain = { "hostile chain", tests, ARRAY_SIZE(tests) };
