/* Activation, pause, reset and removal of a device, with I/O in flight. */
#include "tests/devices/virtio/blk_fixture.h"

#include <stdlib.h>

#include "devices/registry.h"
#include "vmm/device_thread.h"

static void quiesce(void *arg)
{
	struct device *dev = arg;

	dev->ops->quiesce(dev);
}

static void unquiesce(void *arg)
{
	struct device *dev = arg;

	dev->ops->unquiesce(dev);
}

static int setup_slow(void **state)
{
	struct blk_fixture *f;

	blk_setup(state);
	f = *state;
	f->fake->slow = true;
	return 0;
}

static void kicks_before_driver_ok_are_served_after_it(void **state)
{
	struct drive_config c;
	struct blk_fixture *f;

	blk_config(&c);
	f = blk_fixture_new(&c);
	rig_negotiate(f->r, BLK_FEATURES);
	rig_queue(f->r, 0, 16);
	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	rig_submit(f->r, 0, 0);
	assert_int_equal(blk_status(f), NO_STATUS);
	rig_driver_ok(f->r);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_OK);
	*state = f;
	blk_teardown(state);
}

static void reset_cancels_what_is_in_flight(void **state)
{
	struct blk_fixture *f = *state;

	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	rig_submit(f->r, 0, 0);
	assert_int_equal(f->fake->held_count, 1);
	rig_reset(f->r);
	assert_int_equal(f->fake->held_count, 0);
	assert_int_equal(f->fake->cancels, 1);
	assert_int_equal(blk_status(f), NO_STATUS);
	assert_int_equal(rig_used_idx(f->r, 0), 0);
}

static void a_device_works_again_after_reset(void **state)
{
	struct blk_fixture *f = *state;
	int i;

	for (i = 0; i < 5; i++) {
		rig_reset(f->r);
		rig_boot(f->r, BLK_FEATURES, 16);
		assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 1, 512), VIRTIO_BLK_S_OK);
		assert_int_equal(rig_used_idx(f->r, 0), 1);
	}
}

static void pause_waits_for_what_is_in_flight(void **state)
{
	struct blk_fixture *f = *state;

	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	rig_submit(f->r, 0, 0);
	rig_call(f->r, quiesce, f->r->d);
	assert_int_equal(f->fake->held_count, 0);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_OK);
	assert_int_equal(rig_used_idx(f->r, 0), 1);
}

static void a_paused_device_serves_no_kick_until_it_goes_on(void **state)
{
	struct blk_fixture *f = *state;

	rig_call(f->r, quiesce, f->r->d);
	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	rig_submit(f->r, 0, 0);
	assert_int_equal(blk_status(f), NO_STATUS);
	rig_call(f->r, unquiesce, f->r->d);
	rig_settle(f->r);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_OK);
}

static void pausing_twice_and_going_on_twice_is_harmless(void **state)
{
	struct blk_fixture *f = *state;

	rig_call(f->r, quiesce, f->r->d);
	rig_call(f->r, quiesce, f->r->d);
	rig_call(f->r, unquiesce, f->r->d);
	rig_call(f->r, unquiesce, f->r->d);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

static void an_inactive_device_can_be_paused(void **state)
{
	struct blk_fixture *f = *state;

	rig_reset(f->r);
	rig_call(f->r, quiesce, f->r->d);
	rig_call(f->r, unquiesce, f->r->d);
	rig_boot(f->r, BLK_FEATURES, 16);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

static void a_device_that_was_never_started_is_destroyed(void **state)
{
	struct rig *r = rig_new();
	struct entropy_config c = { 0 };
	struct error err;
	struct device *dev = virtio_rng_class.create(&r->env, &c, NULL, &err);

	assert_non_null(dev);
	assert_string_equal(dev->ops->status(dev), "inactive");
	dev->ops->destroy(dev);
	rig_free(r);
}

static void a_device_with_io_in_flight_is_destroyed(void **state)
{
	struct blk_fixture *f = *state;
	bool destroyed = false;

	f->fake->destroyed = &destroyed;
	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	rig_submit(f->r, 0, 0);
	f->r->d->ops->destroy(f->r->d);
	f->r->d = NULL;
	assert_true(destroyed);
}

static void starting_twice_keeps_the_thread(void **state)
{
	struct blk_fixture *f = *state;
	struct device_thread *thread = f->r->d->thread;
	struct error err;

	assert_int_equal(f->r->d->ops->start(f->r->d, &err), 0);
	assert_ptr_equal(f->r->d->thread, thread);
	assert_true(device_thread_tid(thread) >= 0);
}

/* More requests than one batch: the rest is served without another kick. */
static void a_long_queue_is_served_in_turns(void **state)
{
	struct blk_fixture *f = *state;
	uint16_t i;

	rig_reset(f->r);
	rig_boot(f->r, BLK_FEATURES, 256);
	blk_header(f, VIRTIO_BLK_T_GET_ID, 0);
	for (i = 0; i < 200; i++) {
		rig_desc(f->r, 0, i, B_HEADER, 16, D_NEXT, 255);
		rig_avail(f->r, 0, i);
	}
	rig_desc(f->r, 0, 255, B_DATA, 21, D_WRITE, 0);
	rig_kick(f->r, 0);
	rig_wait_used(f->r, 0, 200);
	assert_false(rig_needs_reset(f->r));
}

static void with_event_index_only_the_asked_entry_interrupts(void **state)
{
	struct blk_fixture *f = *state;

	rig_set_used_event(f->r, 0, 2);
	blk_run(f, VIRTIO_BLK_T_GET_ID, 0, 20);
	blk_run(f, VIRTIO_BLK_T_GET_ID, 0, 20);
	assert_int_equal(f->r->edges, 0);
	blk_run(f, VIRTIO_BLK_T_GET_ID, 0, 20);
	assert_int_equal(f->r->edges, 1);
}

static void no_lock_is_taken_out_of_order(void **state)
{
	assert_int_equal(lock_order_violations(), 0);
}

static void pause_ends_a_stalled_request(void **state)
{
	struct blk_fixture *f = *state;

	f->fake->capacity = 1;
	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	rig_desc(f->r, 0, 5, B_HEADER, 16, D_NEXT, 1);
	rig_submit(f->r, 0, 0);
	rig_submit(f->r, 0, 5);
	rig_call(f->r, quiesce, f->r->d);
	assert_int_equal(rig_used_idx(f->r, 0), 2);
	rig_avail(f->r, 0, 0);
	rig_call(f->r, unquiesce, f->r->d);
	assert_int_equal(f->fake->held_count, 1);
}

/* The driver reads 0 only when its memory is its own again. */
static void reset_is_not_done_while_io_may_be_in_flight(void **state)
{
	struct blk_fixture *f = *state;

	f->fake->stuck = true;
	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	rig_submit(f->r, 0, 0);
	wr(f->r, R_STATUS, 0);
	assert_int_not_equal(rd(f->r, R_STATUS), 0);
	assert_true(rig_needs_reset(f->r));
	rig_call(f->r, fake_finish, f->fake);
	assert_int_equal(rig_used_idx(f->r, 0), 0);
	assert_int_equal(blk_status(f), NO_STATUS);
	f->fake->slow = false;
	rig_reset(f->r);
	rig_boot(f->r, BLK_FEATURES, 16);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

/* A pause that could not wait either: what comes afterwards does not reach the guest. */
static void pause_with_io_that_does_not_end_needs_a_reset(void **state)
{
	struct blk_fixture *f = *state;

	f->fake->stuck = true;
	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	rig_submit(f->r, 0, 0);
	rig_call(f->r, quiesce, f->r->d);
	assert_true(rig_needs_reset(f->r));
	rig_call(f->r, fake_finish, f->fake);
	assert_int_equal(blk_status(f), NO_STATUS);
	rig_call(f->r, unquiesce, f->r->d);
	f->fake->slow = false;
	rig_reset(f->r);
	rig_boot(f->r, BLK_FEATURES, 16);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

int main(void)
{
#define T(name, setup) cmocka_unit_test_setup_teardown(name, setup, blk_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kicks_before_driver_ok_are_served_after_it),
		T(reset_cancels_what_is_in_flight, setup_slow),
		T(a_device_works_again_after_reset, blk_setup),
		T(pause_waits_for_what_is_in_flight, setup_slow),
		T(a_paused_device_serves_no_kick_until_it_goes_on, blk_setup),
		T(pausing_twice_and_going_on_twice_is_harmless, blk_setup),
		T(pause_ends_a_stalled_request, setup_slow),
		T(pause_with_io_that_does_not_end_needs_a_reset, setup_slow),
		T(reset_is_not_done_while_io_may_be_in_flight, setup_slow),
		T(an_inactive_device_can_be_paused, blk_setup),
		cmocka_unit_test(a_device_that_was_never_started_is_destroyed),
		T(a_device_with_io_in_flight_is_destroyed, setup_slow),
		T(starting_twice_keeps_the_thread, blk_setup),
		T(a_long_queue_is_served_in_turns, blk_setup),
		T(with_event_index_only_the_asked_entry_interrupts, blk_setup),
		cmocka_unit_test(no_lock_is_taken_out_of_order),
	};

	return cmocka_run_group_tests_name("virtio device", tests, NULL, NULL);
}
