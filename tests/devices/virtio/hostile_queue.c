/* Hostile ring suite: available and used rings, and where they lie. */
#include "tests/devices/virtio/hostile_ring.h"
#include "tests/devices/virtio/queue_fixture.h"
#include "vmm/base/bits.h"

static void assert_broken(struct queue_fixture *f)
{
	uint16_t head, before = f->q.next_avail;

	assert_int_equal(queue_pop(&f->q, &head), -EPROTO);
	assert_int_equal(f->q.next_avail, before);
}

static void avail_idx_one_more_than_the_queue(void **state)
{
	rig_avail_idx(((struct queue_fixture *)*state)->r, 0, 9);
	assert_broken(*state);
}

static void avail_idx_goes_backwards(void **state)
{
	rig_avail_idx(((struct queue_fixture *)*state)->r, 0, 65535);
	assert_broken(*state);
}

static void avail_idx_jumps_half_the_range(void **state)
{
	rig_avail_idx(((struct queue_fixture *)*state)->r, 0, 32768);
	assert_broken(*state);
}

static void avail_idx_jumps_after_the_wrap(void **state)
{
	struct queue_fixture *f = *state;

	f->q.next_avail = 65530;
	rig_avail_idx(f->r, 0, 3); /* nine ahead */
	assert_broken(f);
	rig_avail_idx(f->r, 0, 2); /* eight ahead: all heads 0, so one is taken */
	assert_int_equal(pop(f), 0);
	assert_broken(f);
}

/* Every index that is not 0 to 8 ahead, from several positions. */
static void avail_idx_every_value(void **state)
{
	static const uint16_t from[] = { 0, 7, 32767, 65535 };
	struct queue_fixture *f = *state;
	uint32_t ahead;
	uint16_t head;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(from); i++) {
		for (ahead = 9; ahead < 65536; ahead++) {
			f->q.next_avail = from[i];
			rig_avail_idx(f->r, 0, (uint16_t)(from[i] + ahead));
			assert_int_equal(queue_pop(&f->q, &head), -EPROTO);
		}
	}
}

static void avail_head_is_the_queue_size(void **state)
{
	rig_avail(((struct queue_fixture *)*state)->r, 0, 8);
	assert_broken(*state);
}

static void avail_head_is_the_largest_number(void **state)
{
	rig_avail(((struct queue_fixture *)*state)->r, 0, 0xffff);
	assert_broken(*state);
}

static void avail_heads_are_all_out_of_range(void **state)
{
	struct queue_fixture *f = *state;
	uint16_t i;

	for (i = 0; i < 8; i++)
		rig_avail(f->r, 0, (uint16_t)(8 + i * 1000));
	assert_broken(f);
	assert_broken(f);
}

static void head_is_made_available_twice_in_flight(void **state)
{
	struct queue_fixture *f = *state;

	rig_avail(f->r, 0, 3);
	pop(f);
	rig_avail(f->r, 0, 3);
	assert_broken(f);
	assert_int_equal(f->q.in_flight, 1);
}

static void head_is_there_twice_in_one_batch(void **state)
{
	struct queue_fixture *f = *state;

	rig_avail(f->r, 0, 3);
	rig_avail(f->r, 0, 3);
	assert_int_equal(pop(f), 3);
	assert_broken(f);
}

static void more_heads_than_are_not_in_flight(void **state)
{
	struct queue_fixture *f = *state;
	uint16_t i;

	for (i = 0; i < 8; i++)
		rig_avail(f->r, 0, i);
	for (i = 0; i < 8; i++)
		pop(f);
	rig_avail(f->r, 0, 0);
	assert_broken(f);
}

static void guest_scribbles_over_the_used_index(void **state)
{
	struct queue_fixture *f = *state;

	rig_avail(f->r, 0, 1);
	put16(f->r, f->r->q[0].used + 2, 0x7777);
	queue_put(&f->q, pop(f), 5);
	queue_publish(&f->q);
	assert_int_equal(rig_used_idx(f->r, 0), 1);
	assert_int_equal(rig_used_id(f->r, 0, 0), 1);
}

static void guest_scribbles_over_the_used_ring(void **state)
{
	struct queue_fixture *f = *state;

	memset(rig_ram(f->r, f->r->q[0].used), 0xff, 128);
	rig_avail(f->r, 0, 2);
	queue_put(&f->q, pop(f), 5);
	queue_publish(&f->q);
	assert_int_equal(rig_used_id(f->r, 0, 0), 2);
	assert_int_equal(get32(f->r, f->r->q[0].used + 12), 0xffffffff);
}

static void guest_scribbles_over_the_event_words(void **state)
{
	struct queue_fixture *f = *state;
	uint32_t v;

	assert_int_equal(queue_open(f, 8, F_EVENT_IDX), 0);
	for (v = 0; v < 65536; v++) {
		rig_set_used_event(f->r, 0, (uint16_t)v);
		f->q.published = 1;
		f->q.signalled = 0;
		assert_int_equal(queue_should_interrupt(&f->q), v == 0);
	}
}

/* With everything at one place, each access is still inside it. */
static void rings_lie_on_one_another(void **state)
{
	struct queue_fixture *f = *state;
	struct queue_setup s = { .desc = DATA, .avail = DATA, .used = DATA, .size = 8 };
	uint16_t head;
	int i;

	assert_int_equal(queue_init(&f->q, &f->r->mem, &s, 256, F_EVENT_IDX), 0);
	for (i = 0; i < 100; i++) {
		if (queue_pop(&f->q, &head) == 1) {
			(void)parse(f, head);
			queue_put(&f->q, head, (uint32_t)i);
		}
		queue_publish(&f->q);
		queue_enable_kicks(&f->q);
		(void)queue_should_interrupt(&f->q);
		put16(f->r, DATA + 2, (uint16_t)(f->q.next_avail + 1));
	}
}

static int try_setup(struct queue_fixture *f, uint64_t desc, uint64_t avail, uint64_t used,
		     uint32_t size)
{
	struct queue_setup s = { .desc = desc, .avail = avail, .used = used, .size = size };

	return queue_init(&f->q, &f->r->mem, &s, 256, 0);
}

#define SETUP_CASE(name, desc, avail, used, size, expected)                                    \
	static void name(void **state)                                                         \
	{                                                                                      \
		assert_int_equal(try_setup(*state, desc, avail, used, size), expected);        \
	}

#define DESC RING_DESC(0)
#define AVAIL RING_AVAIL(0)
#define USED RING_USED(0)

SETUP_CASE(size_0, DESC, AVAIL, USED, 0, -EINVAL)
SETUP_CASE(size_3, DESC, AVAIL, USED, 3, -EINVAL)
SETUP_CASE(size_above_the_maximum, DESC, AVAIL, USED, 512, -EINVAL)
SETUP_CASE(size_of_65536, DESC, AVAIL, USED, 65536, -EINVAL)
SETUP_CASE(size_of_32768, DESC, AVAIL, USED, 32768, -EINVAL)
SETUP_CASE(size_of_65544_is_not_8, DESC, AVAIL, USED, 65544, -EINVAL)
SETUP_CASE(descriptors_unaligned, DESC + 8, AVAIL, USED, 8, -EFAULT)
SETUP_CASE(available_ring_unaligned, DESC, AVAIL + 1, USED, 8, -EFAULT)
SETUP_CASE(used_ring_unaligned, DESC, AVAIL, USED + 2, 8, -EFAULT)
SETUP_CASE(descriptors_in_the_hole, HOLE, AVAIL, USED, 8, -EFAULT)
SETUP_CASE(available_ring_in_the_hole, DESC, HOLE + 64, USED, 8, -EFAULT)
SETUP_CASE(used_ring_in_the_hole, DESC, AVAIL, HOLE + 64, 8, -EFAULT)
SETUP_CASE(descriptors_below_all_ram, 0, AVAIL, USED, 8, -EFAULT)
SETUP_CASE(descriptors_at_the_top_of_the_address_space, 0xfffffffffffffff0ull, AVAIL, USED, 8,
	   -EFAULT)
SETUP_CASE(available_ring_wraps, DESC, 0xfffffffffffffffeull, USED, 8, -EFAULT)
SETUP_CASE(used_ring_wraps, DESC, AVAIL, 0xfffffffffffffffcull, 8, -EFAULT)
SETUP_CASE(descriptors_end_at_the_end_of_ram, RAM_C_END - 128, AVAIL, USED, 8, 0)
SETUP_CASE(descriptors_end_one_entry_behind_ram, RAM_C_END - 112, AVAIL, USED, 8, -EFAULT)
SETUP_CASE(available_ring_ends_at_the_end_of_ram, DESC, RAM_C_END - 22, USED, 8, 0)
SETUP_CASE(only_the_event_word_is_behind_ram, DESC, RAM_C_END - 20, USED, 8, -EFAULT)
SETUP_CASE(used_ring_ends_two_bytes_before_ram, DESC, AVAIL, RAM_C_END - 72, 8, 0)
SETUP_CASE(used_ring_ends_behind_ram, DESC, AVAIL, RAM_C_END - 68, 8, -EFAULT)
SETUP_CASE(ring_across_two_slots, RAM_A_END - 64, AVAIL, USED, 8, -EFAULT)

#define T(name) cmocka_unit_test_setup_teardown(name, queue_setup_8, queue_teardown)
static const struct CMUnitTest tests[] = {
	T(avail_idx_one_more_than_the_queue),
	T(avail_idx_goes_backwards),
	T(avail_idx_jumps_half_the_range),
	T(avail_idx_jumps_after_the_wrap),
	T(avail_idx_every_value),
	T(avail_head_is_the_queue_size),
	T(avail_head_is_the_largest_number),
	T(avail_heads_are_all_out_of_range),
	T(head_is_made_available_twice_in_flight),
	T(head_is_there_twice_in_one_batch),
	T(more_heads_than_are_not_in_flight),
	T(guest_scribbles_over_the_used_index),
	T(guest_scribbles_over_the_used_ring),
	T(guest_scribbles_over_the_event_words),
	T(rings_lie_on_one_another),
	T(size_0),
	T(size_3),
	T(size_above_the_maximum),
	T(size_of_65536),
	T(size_of_32768),
	T(size_of_65544_is_not_8),
	T(descriptors_unaligned),
	T(available_ring_unaligned),
	T(used_ring_unaligned),
	T(descriptors_in_the_hole),
	T(available_ring_in_the_hole),
	T(used_ring_in_the_hole),
	T(descriptors_below_all_ram),
	T(descriptors_at_the_top_of_the_address_space),
	T(available_ring_wraps),
	T(used_ring_wraps),
	T(descriptors_end_at_the_end_of_ram),
	T(descriptors_end_one_entry_behind_ram),
	T(available_ring_ends_at_the_end_of_ram),
	T(only_the_event_word_is_behind_ram),
	T(used_ring_ends_two_bytes_before_ram),
	T(used_ring_ends_behind_ram),
	T(ring_across_two_slots),
};

const struct hostile_group hostile_queue = { "hostile queue", tests, ARRAY_SIZE(tests) };
