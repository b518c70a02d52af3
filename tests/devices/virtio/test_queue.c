/* The split ring: taking, giving back, suppression of kicks and interrupts. */
#include "tests/devices/virtio/queue_fixture.h"

#include <linux/virtio_ring.h>

#include "vmm/base/bits.h"

static void an_empty_ring_gives_nothing(void **state)
{
	struct queue_fixture *f = *state;
	uint16_t head;

	assert_int_equal(queue_pop(&f->q, &head), 0);
}

static void heads_come_in_the_order_of_the_ring(void **state)
{
	struct queue_fixture *f = *state;

	rig_avail(f->r, 0, 5);
	rig_avail(f->r, 0, 2);
	assert_int_equal(pop(f), 5);
	assert_int_equal(pop(f), 2);
}

static void put_is_seen_only_after_publish(void **state)
{
	struct queue_fixture *f = *state;

	rig_avail(f->r, 0, 3);
	queue_put(&f->q, pop(f), 77);
	assert_int_equal(rig_used_idx(f->r, 0), 0);
	queue_publish(&f->q);
	assert_int_equal(rig_used_idx(f->r, 0), 1);
	assert_int_equal(rig_used_id(f->r, 0, 0), 3);
	assert_int_equal(rig_used_len(f->r, 0, 0), 77);
}

static void a_head_may_come_again_after_it_was_given_back(void **state)
{
	struct queue_fixture *f = *state;
	int i;

	for (i = 0; i < 20; i++) {
		rig_avail(f->r, 0, 1);
		queue_put(&f->q, pop(f), 0);
		queue_publish(&f->q);
	}
	assert_int_equal(rig_used_idx(f->r, 0), 20);
}

static void indexes_wrap_at_65536(void **state)
{
	struct queue_fixture *f = *state;
	uint32_t i;

	for (i = 0; i < 65536 + 9; i++) {
		rig_avail(f->r, 0, (uint16_t)(i % 8));
		assert_int_equal(pop(f), i % 8);
		queue_put(&f->q, (uint16_t)(i % 8), i);
		queue_publish(&f->q);
	}
	assert_int_equal(rig_used_idx(f->r, 0), 9);
	assert_int_equal(rig_used_len(f->r, 0, 8), 65536 + 8);
}

static void a_full_queue_of_heads_can_be_out(void **state)
{
	struct queue_fixture *f = *state;
	uint16_t i, head;

	for (i = 0; i < 8; i++)
		rig_avail(f->r, 0, i);
	for (i = 0; i < 8; i++)
		assert_int_equal(pop(f), i);
	assert_int_equal(queue_pop(&f->q, &head), 0);
	assert_int_equal(f->q.in_flight, 8);
}

static void giving_back_what_is_not_out_does_nothing(void **state)
{
	struct queue_fixture *f = *state;

	queue_put(&f->q, 4, 1);
	queue_put(&f->q, 60000, 1);
	queue_publish(&f->q);
	assert_int_equal(rig_used_idx(f->r, 0), 0);
}

/* Takes and gives back `n` heads. */
static void turn(struct queue_fixture *f, unsigned n)
{
	while (n--) {
		rig_avail(f->r, 0, 0);
		queue_put(&f->q, pop(f), 0);
	}
	queue_publish(&f->q);
}

static void without_event_index_the_flag_suppresses_interrupts(void **state)
{
	struct queue_fixture *f = *state;

	turn(f, 1);
	assert_true(queue_should_interrupt(&f->q));
	put16(f->r, f->r->q[0].avail, VRING_AVAIL_F_NO_INTERRUPT);
	turn(f, 1);
	assert_false(queue_should_interrupt(&f->q));
}

static void nothing_new_interrupts_nobody(void **state)
{
	struct queue_fixture *f = *state;

	assert_false(queue_should_interrupt(&f->q));
	turn(f, 2);
	assert_true(queue_should_interrupt(&f->q));
	assert_false(queue_should_interrupt(&f->q));
}

static void without_event_index_the_flag_suppresses_kicks(void **state)
{
	struct queue_fixture *f = *state;

	queue_disable_kicks(&f->q);
	assert_int_equal(get16(f->r, f->r->q[0].used), VRING_USED_F_NO_NOTIFY);
	assert_false(queue_enable_kicks(&f->q));
	assert_int_equal(get16(f->r, f->r->q[0].used), 0);
}

static void enabling_kicks_sees_what_came_meanwhile(void **state)
{
	struct queue_fixture *f = *state;

	queue_disable_kicks(&f->q);
	rig_avail(f->r, 0, 0);
	assert_true(queue_enable_kicks(&f->q));
}

static void with_event_index_the_next_entry_asks_for_a_kick(void **state)
{
	struct queue_fixture *f = *state;

	assert_int_equal(queue_open(f, 8, F_EVENT_IDX), 0);
	turn(f, 3);
	queue_disable_kicks(&f->q);
	assert_int_equal(get16(f->r, f->r->q[0].used), 0);
	assert_false(queue_enable_kicks(&f->q));
	assert_int_equal(rig_avail_event(f->r, 0), 3);
}

/*
 * All of a small world: every old and new position and every used_event around
 * them and around the wrap. Interrupt exactly if used_event is in [old, new).
 */
static void used_event_decides_as_a_modular_interval(void **state)
{
	static const uint16_t bases[] = { 0, 1, 32767, 65528, 65535 };
	struct queue_fixture *f = *state;
	unsigned b, n, e;

	assert_int_equal(queue_open(f, 8, F_EVENT_IDX), 0);
	for (b = 0; b < ARRAY_SIZE(bases); b++) {
		for (n = 1; n <= 8; n++) {
			for (e = 0; e < 24; e++) {
				uint16_t event = (uint16_t)(bases[b] - 8 + e);

				f->q.signalled = bases[b];
				f->q.published = (uint16_t)(bases[b] + n);
				rig_set_used_event(f->r, 0, event);
				assert_int_equal(queue_should_interrupt(&f->q),
						 e >= 8 && e < 8 + n);
			}
		}
	}
}

/* For each size, the event words lie right behind their rings. */
static void event_words_follow_the_rings_for_every_size(void **state)
{
	struct queue_fixture *f = *state;
	uint32_t size;

	for (size = 1; size <= 256; size *= 2) {
		assert_int_equal(queue_open(f, size, F_EVENT_IDX), 0);
		rig_avail(f->r, 0, 0);
		queue_put(&f->q, pop(f), 0);
		queue_publish(&f->q);
		queue_enable_kicks(&f->q);
		assert_int_equal(rig_avail_event(f->r, 0), 1);
		rig_set_used_event(f->r, 0, 1);
		assert_false(queue_should_interrupt(&f->q));
	}
}

static void sizes_are_powers_of_two_up_to_the_maximum(void **state)
{
	uint32_t size;

	for (size = 0; size < 1024; size++)
		assert_int_equal(queue_size_valid(size, 256), is_power_of_two(size) && size <= 256);
	assert_false(queue_size_valid(0x80000000u, 256));
	assert_false(queue_size_valid(0x10008, 256));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, queue_setup_8, queue_teardown)
	const struct CMUnitTest tests[] = {
		T(an_empty_ring_gives_nothing),
		T(heads_come_in_the_order_of_the_ring),
		T(put_is_seen_only_after_publish),
		T(a_head_may_come_again_after_it_was_given_back),
		T(indexes_wrap_at_65536),
		T(a_full_queue_of_heads_can_be_out),
		T(giving_back_what_is_not_out_does_nothing),
		T(without_event_index_the_flag_suppresses_interrupts),
		T(nothing_new_interrupts_nobody),
		T(without_event_index_the_flag_suppresses_kicks),
		T(enabling_kicks_sees_what_came_meanwhile),
		T(with_event_index_the_next_entry_asks_for_a_kick),
		T(used_event_decides_as_a_modular_interval),
		T(event_words_follow_the_rings_for_every_size),
		T(sizes_are_powers_of_two_up_to_the_maximum),
	};

	return cmocka_run_group_tests_name("virtio queue", tests, NULL, NULL);
}
