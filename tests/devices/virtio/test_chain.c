/* Chains as a driver should make them. What it should not: hostile_chain.c. */
#include "tests/devices/virtio/queue_fixture.h"

static void one_readable_buffer(void **state)
{
	struct queue_fixture *f = *state;

	d(f, 0, DATA, 100, 0, 0);
	assert_int_equal(parse(f, 0), 0);
	assert_int_equal(f->c.readable, 1);
	assert_int_equal(f->c.writable, 0);
	assert_ptr_equal(f->c.iov[0].iov_base, rig_ram(f->r, DATA));
	assert_int_equal(f->c.readable_bytes, 100);
}

static void readable_then_writable(void **state)
{
	struct queue_fixture *f = *state;

	d(f, 3, DATA, 16, D_NEXT, 1);
	d(f, 1, DATA + 512, 512, D_NEXT | D_WRITE, 7);
	d(f, 7, DATA + 2048, 1, D_WRITE, 0);
	assert_int_equal(parse(f, 3), 0);
	assert_int_equal(f->c.readable, 1);
	assert_int_equal(f->c.writable, 2);
	assert_int_equal(f->c.writable_bytes, 513);
	assert_ptr_equal(chain_writable(&f->c)[1].iov_base, rig_ram(f->r, DATA + 2048));
}

static void a_chain_of_the_whole_queue(void **state)
{
	struct queue_fixture *f = *state;
	unsigned i;

	for (i = 0; i < 8; i++)
		d(f, i, DATA + i * 64, 64, i < 7 ? D_NEXT : 0, (uint16_t)(i + 1));
	assert_int_equal(parse(f, 0), 0);
	assert_int_equal(f->c.readable, 8);
}

static void an_indirect_table(void **state)
{
	struct queue_fixture *f = *state;

	rig_desc_at(f->r, DATA, 0, DATA + 0x100, 10, D_NEXT, 2);
	rig_desc_at(f->r, DATA, 2, DATA + 0x200, 20, D_WRITE, 0);
	d(f, 4, DATA, 48, D_INDIRECT, 0);
	assert_int_equal(parse(f, 4), 0);
	assert_int_equal(f->c.readable_bytes, 10);
	assert_int_equal(f->c.writable_bytes, 20);
}

static void an_indirect_table_as_long_as_the_queue(void **state)
{
	struct queue_fixture *f = *state;
	unsigned i;

	for (i = 0; i < 8; i++)
		rig_desc_at(f->r, DATA, i, DATA + 0x1000, 8, i < 7 ? D_NEXT : 0, (uint16_t)(i + 1));
	d(f, 0, DATA, 8 * 16, D_INDIRECT, 0);
	assert_int_equal(parse(f, 0), 0);
	assert_int_equal(f->c.readable, 8);
}

static void direct_descriptors_before_an_indirect_one(void **state)
{
	struct queue_fixture *f = *state;

	rig_desc_at(f->r, DATA, 0, DATA + 0x100, 10, 0, 0);
	d(f, 0, DATA + 0x300, 5, D_NEXT, 1);
	d(f, 1, DATA, 16, D_INDIRECT, 0);
	assert_int_equal(parse(f, 0), 0);
	assert_int_equal(f->c.readable_bytes, 15);
}

static void the_write_flag_of_an_indirect_descriptor_is_ignored(void **state)
{
	struct queue_fixture *f = *state;

	rig_desc_at(f->r, DATA, 0, DATA + 0x100, 10, 0, 0);
	d(f, 0, DATA, 16, D_INDIRECT | D_WRITE, 0);
	assert_int_equal(parse(f, 0), 0);
	assert_int_equal(f->c.readable_bytes, 10);
	assert_int_equal(f->c.writable, 0);
}

/* The table may cross from one slot into the adjoining one. */
static void an_indirect_table_across_two_slots(void **state)
{
	struct queue_fixture *f = *state;
	uint64_t table = RAM_A_END - 16;

	rig_desc_at(f->r, table, 0, DATA, 10, D_NEXT, 1);
	rig_desc_at(f->r, table, 1, DATA, 20, 0, 0);
	d(f, 0, table, 32, D_INDIRECT, 0);
	assert_int_equal(parse(f, 0), 0);
	assert_int_equal(f->c.readable_bytes, 30);
}

static void a_buffer_across_two_slots_is_two_ranges(void **state)
{
	struct queue_fixture *f = *state;

	d(f, 0, RAM_A_END - 100, 300, 0, 0);
	assert_int_equal(parse(f, 0), 0);
	assert_int_equal(f->c.readable, 2);
	assert_int_equal(f->c.iov[0].iov_len, 100);
	assert_ptr_equal(f->c.iov[1].iov_base, rig_ram(f->r, RAM_B));
	assert_int_equal(f->c.iov[1].iov_len, 200);
}

static void a_buffer_that_ends_with_the_ram(void **state)
{
	struct queue_fixture *f = *state;

	d(f, 0, RAM_C_END - 1, 1, 0, 0);
	assert_int_equal(parse(f, 0), 0);
	d(f, 0, RAM_C, (uint32_t)(RAM_C_END - RAM_C), D_WRITE, 0);
	assert_int_equal(parse(f, 0), 0);
}

static void a_malformed_chain_leaves_nothing_for_the_next(void **state)
{
	struct queue_fixture *f = *state;

	d(f, 0, DATA, 64, D_NEXT, 0);
	assert_int_equal(parse(f, 0), -EBADMSG);
	d(f, 1, DATA, 7, D_WRITE, 0);
	assert_int_equal(parse(f, 1), 0);
	assert_int_equal(f->c.readable, 0);
	assert_int_equal(f->c.writable_bytes, 7);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, queue_setup_8, queue_teardown)
	const struct CMUnitTest tests[] = {
		T(one_readable_buffer),
		T(readable_then_writable),
		T(a_chain_of_the_whole_queue),
		T(an_indirect_table),
		T(an_indirect_table_as_long_as_the_queue),
		T(direct_descriptors_before_an_indirect_one),
		T(the_write_flag_of_an_indirect_descriptor_is_ignored),
		T(an_indirect_table_across_two_slots),
		T(a_buffer_across_two_slots_is_two_ranges),
		T(a_buffer_that_ends_with_the_ram),
		T(a_malformed_chain_leaves_nothing_for_the_next),
	};

	return cmocka_run_group_tests_name("virtio chain", tests, NULL, NULL);
}
