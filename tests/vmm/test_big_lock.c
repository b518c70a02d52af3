/*
 * The big lock around the call-backs of devices, and around no others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "vmm/base/big_lock.h"
#include "vmm/base/fd.h"
#include "vmm/base/lock.h"
#include "vmm/device_thread.h"

#define CALLS 2000

struct fixture {
	struct event_loop *loop;
	struct event_source *source;
	unsigned calls, held; /* call-backs, and those that held the big lock */
	unsigned plain;       /* written by call-backs of several threads */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	big_lock_enable();
	f->loop = event_loop_new();
	*state = f;
	return f->loop ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	event_loop_free(f->loop);
	free(f);
	return lock_order_violations() == 0 ? 0 : -1;
}

static void look(struct fixture *f)
{
	bool held = big_lock_yield();

	f->calls++;
	f->held += held;
	if (held)
		big_lock_take();
}

static void on_call(void *arg)
{
	struct fixture *f = arg;

	look(f);
	event_loop_stop(f->loop);
}

static void on_readable(void *arg, int fd, unsigned events)
{
	struct fixture *f = arg;

	f->source = event_source_free(f->source);
	on_call(arg);
}

static void on_signal(void *arg, int signo)
{
	on_call(arg);
}

/* One call-back of each kind. */
static void run_all_kinds(struct fixture *f)
{
	int fd = fd_eventfd_new();
	struct event_source *timer = event_loop_add_timer(f->loop, on_call, f);
	struct event_source *signals = event_loop_add_signal(f->loop, SIGUSR1, on_signal, f);

	f->source = event_loop_add_fd(f->loop, fd, EVENT_READABLE, on_readable, f);
	fd_eventfd_signal(fd);
	event_loop_run(f->loop);
	event_source_arm(timer, 1);
	event_loop_run(f->loop);
	raise(SIGUSR1);
	event_loop_run(f->loop);
	event_loop_post(f->loop, on_call, f);
	event_loop_run(f->loop);
	event_source_free(timer);
	event_source_free(signals);
	close(fd);
}

static void every_call_back_of_such_a_loop_holds_it(void **state)
{
	struct fixture *f = *state;

	event_loop_set_big_lock(f->loop);
	run_all_kinds(f);
	assert_int_equal(f->calls, 4);
	assert_int_equal(f->held, 4);
	assert_false(big_lock_yield()); /* and nothing holds it behind them */
}

static void the_main_loop_does_without(void **state)
{
	struct fixture *f = *state;

	run_all_kinds(f);
	assert_int_equal(f->calls, 4);
	assert_int_equal(f->held, 0);
}

static void look_on_thread(void *arg)
{
	look(arg);
}

static void calls_of_a_device_hold_it(void **state)
{
	struct fixture *f = *state;
	struct error err;
	struct device_thread *t = device_thread_new("a", &err);

	device_thread_call(t, look_on_thread, f);
	assert_int_equal(f->held, 1);
	device_thread_free(t);
}

/* As a vCPU that resets a device. */
static void who_holds_it_may_wait_for_a_device(void **state)
{
	struct fixture *f = *state;
	struct error err;
	struct device_thread *t = device_thread_new("a", &err);
	int i;

	for (i = 0; i < CALLS; i++) {
		big_lock_take();
		device_thread_call(t, look_on_thread, f);
		assert_true(big_lock_yield());
	}
	assert_int_equal(f->held, CALLS);
	device_thread_free(t);
}

static void count_plainly(void *arg)
{
	struct fixture *f = arg;

	f->plain++;
}

struct caller {
	struct fixture *f;
	struct device_thread *device;
	pthread_t thread;
};

static void *call_many(void *arg)
{
	struct caller *c = arg;
	int i;

	for (i = 0; i < CALLS; i++)
		device_thread_call(c->device, count_plainly, c->f);
	return NULL;
}

static void two_devices_take_turns(void **state)
{
	struct fixture *f = *state;
	struct caller callers[2];
	struct error err;
	int i;

	for (i = 0; i < 2; i++) {
		callers[i] = (struct caller){ f, device_thread_new("a", &err), 0 };
		pthread_create(&callers[i].thread, NULL, call_many, &callers[i]);
	}
	for (i = 0; i < 2; i++) {
		pthread_join(callers[i].thread, NULL);
		device_thread_free(callers[i].device);
	}
	assert_int_equal(f->plain, 2 * CALLS);
}

int main(void)
{
#define WITH_LOOP(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_LOOP(every_call_back_of_such_a_loop_holds_it),
		WITH_LOOP(the_main_loop_does_without),
		WITH_LOOP(calls_of_a_device_hold_it),
		WITH_LOOP(who_holds_it_may_wait_for_a_device),
		WITH_LOOP(two_devices_take_turns),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
