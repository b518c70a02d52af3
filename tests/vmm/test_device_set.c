/*
 * The set of devices: order, failures, the fan-out of a pause.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fake_device.h"
#include "vmm/device_set.h"
#include "vmm/device_thread.h"
#include "vmm/event_loop.h"

struct fixture {
	struct event_loop *loop;
	struct device_set set;
	unsigned destroyed;
	unsigned done;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->loop = event_loop_new();
	device_set_init(&f->set, f->loop);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	device_set_fini(&f->set);
	event_loop_free(f->loop);
	free(f);
	return 0;
}

static struct fake_device *add(struct fixture *f, const char *id, bool own_thread)
{
	struct fake_device *d = fake_device_new(id);
	struct error err;

	d->own_thread = own_thread;
	d->destroyed = &f->destroyed;
	assert_int_equal(device_set_add(&f->set, &d->dev, &err), 0);
	return d;
}

static void on_done(void *arg)
{
	struct fixture *f = arg;

	f->done++;
	event_loop_stop(f->loop);
}

static void pause_all(struct fixture *f)
{
	unsigned wanted = f->done + 1;

	device_set_pause(&f->set, on_done, f);
	while (f->done < wanted)
		event_loop_run(f->loop);
}

static void resume_all(struct fixture *f)
{
	unsigned wanted = f->done + 1;

	device_set_resume(&f->set, on_done, f);
	while (f->done < wanted)
		event_loop_run(f->loop);
}

static void a_device_is_found_by_its_id(void **state)
{
	struct fixture *f = *state;
	struct fake_device *d = add(f, "rootfs", false);

	add(f, "eth0", false);
	assert_ptr_equal(device_set_find(&f->set, "fake", "rootfs"), &d->dev);
	assert_null(device_set_find(&f->set, "other", "rootfs"));
	assert_null(device_set_find(&f->set, "fake", "root"));
}

static void one_device_too_many_is_refused_and_destroyed(void **state)
{
	struct fixture *f = *state;
	struct fake_device *d;
	struct error err;
	int i;

	for (i = 0; i < DEVICE_SET_MAX; i++)
		add(f, "d", false);
	d = fake_device_new("last");
	d->destroyed = &f->destroyed;
	assert_int_equal(device_set_add(&f->set, &d->dev, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "last"));
	assert_int_equal(f->destroyed, 1);
	assert_int_equal(f->set.count, DEVICE_SET_MAX);
}

static void starting_stops_at_the_first_failure(void **state)
{
	struct fixture *f = *state;
	struct fake_device *a = add(f, "a", true), *b = add(f, "b", false), *c = add(f, "c", true);
	struct error err;

	b->start_code = -EIO;
	assert_int_equal(device_set_start(&f->set, &err), -EIO);
	assert_non_null(strstr(err.text, "device b"));
	assert_int_equal(a->started, 1);
	assert_int_equal(c->started, 0);
}

static void an_empty_set_pauses_at_once(void **state)
{
	struct fixture *f = *state;

	device_set_pause(&f->set, on_done, f);
	assert_int_equal(f->done, 1);
	assert_true(f->set.paused);
}

static void each_device_is_quiesced_once_on_its_own_thread(void **state)
{
	struct fixture *f = *state;
	struct fake_device *a = add(f, "a", true), *b = add(f, "b", true), *c = add(f, "c", false);
	struct error err;

	assert_int_equal(device_set_start(&f->set, &err), 0);
	pause_all(f);
	assert_int_equal(a->quiesced, 1);
	assert_int_equal(b->quiesced, 1);
	assert_int_equal(c->quiesced, 1);
	assert_int_equal(a->served_by, device_thread_tid(a->dev.thread));
	assert_int_equal(b->served_by, device_thread_tid(b->dev.thread));
	assert_int_equal(c->served_by, gettid());
}

static void the_answer_waits_for_the_slowest_device(void **state)
{
	struct fixture *f = *state;
	struct fake_device *slow = add(f, "slow", true);
	struct error err;

	add(f, "quick", true);
	slow->dawdle_us = 50000;
	assert_int_equal(device_set_start(&f->set, &err), 0);
	pause_all(f);
	assert_int_equal(slow->quiesced, 1);
	resume_all(f);
	assert_int_equal(slow->unquiesced, 1);
	assert_false(f->set.paused);
}

/* A device without a host side has nothing to quiesce. */
static void devices_without_the_ops_are_passed_over(void **state)
{
	struct fixture *f = *state;
	struct fake_device *plain = add(f, "plain", false), *other = add(f, "other", false);
	struct device_ops ops = *plain->dev.ops;
	const struct device_ops *all = plain->dev.ops;

	ops.start = NULL;
	ops.quiesce = NULL;
	ops.unquiesce = NULL;
	plain->dev.ops = &ops;
	assert_int_equal(device_set_start(&f->set, NULL), 0);
	pause_all(f);
	resume_all(f);
	assert_int_equal(plain->quiesced, 0);
	assert_int_equal(other->quiesced, 1);
	plain->dev.ops = all;
}

static void pause_and_resume_may_alternate_for_long(void **state)
{
	struct fixture *f = *state;
	struct fake_device *a = add(f, "a", true), *b = add(f, "b", true);
	struct error err;
	int i;

	assert_int_equal(device_set_start(&f->set, &err), 0);
	for (i = 0; i < 1000; i++) {
		pause_all(f);
		resume_all(f);
	}
	assert_int_equal(a->quiesced, 1000);
	assert_int_equal(b->unquiesced, 1000);
}

static void all_are_destroyed_also_those_never_started(void **state)
{
	struct fixture *f = *state;

	add(f, "a", true);
	add(f, "b", false);
	device_set_fini(&f->set);
	assert_int_equal(f->destroyed, 2);
	assert_int_equal(f->set.count, 0);
}

/* The end of the VM does not wait for the answer to a pause. */
static void destroying_during_a_pause_is_fine(void **state)
{
	struct fixture *f = *state;
	struct fake_device *slow = add(f, "slow", true);
	struct error err;

	slow->dawdle_us = 30000;
	add(f, "main", false);
	assert_int_equal(device_set_start(&f->set, &err), 0);
	device_set_pause(&f->set, on_done, f);
	device_set_fini(&f->set);
	assert_int_equal(f->destroyed, 2);
	assert_int_equal(f->done, 0);
}

int main(void)
{
#define WITH_SET(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_SET(a_device_is_found_by_its_id),
		WITH_SET(one_device_too_many_is_refused_and_destroyed),
		WITH_SET(starting_stops_at_the_first_failure),
		WITH_SET(an_empty_set_pauses_at_once),
		WITH_SET(each_device_is_quiesced_once_on_its_own_thread),
		WITH_SET(the_answer_waits_for_the_slowest_device),
		WITH_SET(devices_without_the_ops_are_passed_over),
		WITH_SET(pause_and_resume_may_alternate_for_long),
		WITH_SET(all_are_destroyed_also_those_never_started),
		WITH_SET(destroying_during_a_pause_is_fine),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
