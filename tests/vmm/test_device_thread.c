/*
 * Device threads: names, calls that are waited for, the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/lock.h"
#include "vmm/device_thread.h"

#define CALLERS 4
#define CALLS 500

struct fixture {
	struct device_thread *thread;
	_Atomic unsigned calls;
	pid_t tid;
	char comm[32];
	bool all_masked;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct error err;

	f->thread = device_thread_new("rootfs", &err);
	*state = f;
	return f->thread ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	device_thread_free(f->thread);
	free(f);
	return 0;
}

static void look_around(void *arg)
{
	struct fixture *f = arg;
	sigset_t set;

	f->tid = gettid();
	pthread_getname_np(pthread_self(), f->comm, sizeof(f->comm));
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	f->all_masked = sigismember(&set, SIGTERM) == 1 && sigismember(&set, SIGRTMIN) == 1;
	f->calls++;
}

static void a_call_runs_on_the_thread_and_is_waited_for(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(device_thread_call(f->thread, look_around, f), 0);
	assert_int_equal(f->calls, 1);
	assert_int_not_equal(f->tid, gettid());
	assert_int_equal(f->tid, device_thread_tid(f->thread));
}

/* Who pins the thread asks as soon as the VM has started. */
static void its_tid_is_known_at_once(void **state)
{
	struct error err;
	int i;

	for (i = 0; i < 100; i++) {
		struct device_thread *t = device_thread_new("quick", &err);

		assert_true(device_thread_tid(t) > 0);
		device_thread_free(t);
	}
}

static void it_is_named_after_the_device(void **state)
{
	struct fixture *f = *state;

	device_thread_call(f->thread, look_around, f);
	assert_string_equal(f->comm, "dev rootfs");
}

static void it_lets_no_signal_in(void **state)
{
	struct fixture *f = *state;

	device_thread_call(f->thread, look_around, f);
	assert_true(f->all_masked);
}

static void a_long_id_is_cut_to_what_a_thread_name_holds(void **state)
{
	struct fixture f = { 0 };
	struct error err;

	f.thread = device_thread_new("a-name-of-more-than-fifteen-characters", &err);
	device_thread_call(f.thread, look_around, &f);
	assert_string_equal(f.comm, "dev a-name-of-m");
	device_thread_free(f.thread);
}

/* A counter without a lock: only because all calls run on one thread. */
struct caller {
	struct fixture *f;
	unsigned *plain;
	pthread_t thread;
	bool each_waited_for;
};

static void count_plainly(void *arg)
{
	struct caller *c = arg;

	++*c->plain;
	c->f->calls++;
}

static void *call_many(void *arg)
{
	struct caller *c = arg;
	int i;

	for (i = 0; i < CALLS; i++) {
		unsigned before = c->f->calls;

		device_thread_call(c->f->thread, count_plainly, c);
		c->each_waited_for = c->each_waited_for && c->f->calls > before;
	}
	return NULL;
}

static void calls_of_many_threads_run_one_at_a_time(void **state)
{
	struct fixture *f = *state;
	struct caller callers[CALLERS];
	unsigned plain = 0;
	int i;

	for (i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){ f, &plain, 0, true };
		pthread_create(&callers[i].thread, NULL, call_many, &callers[i]);
	}
	for (i = 0; i < CALLERS; i++) {
		pthread_join(callers[i].thread, NULL);
		assert_true(callers[i].each_waited_for);
	}
	assert_int_equal(plain, CALLERS * CALLS);
}

static void count(void *arg)
{
	struct fixture *f = arg;

	f->calls++;
}

static void a_call_comes_after_what_was_posted_before(void **state)
{
	struct fixture *f = *state;
	int i;

	for (i = 0; i < 10; i++)
		event_loop_post(device_thread_loop(f->thread), count, f);
	device_thread_call(f->thread, look_around, f);
	assert_int_equal(f->calls, 11);
}

/* The call has returned before its frame goes; the address sanitizer looks on. */
static void calls_in_a_row_leave_nothing_behind(void **state)
{
	struct fixture *f = *state;
	int i;

	for (i = 0; i < 2000; i++)
		device_thread_call(f->thread, count, f);
	assert_int_equal(f->calls, 2000);
	assert_int_equal(lock_order_violations(), 0);
}

static void take_a_while(void *arg)
{
	usleep(2000);
}

/* The row of a wait for a call; count 0 if there was none. */
static struct lock_report_wait wait_for_calls(void)
{
	struct lock_report_wait rows[4];
	size_t i, count = lock_report_waits(rows, 4);

	for (i = 0; i < count && i < 4; i++) {
		if (rows[i].is_condition)
			return rows[i];
	}
	return (struct lock_report_wait){ 0 };
}

/* It outlives the call. A busy host may let a call end before it is waited for. */
static void a_wait_is_charged_to_the_thread_and_the_call_site(void **state)
{
	struct fixture *f = *state;
	struct lock_report_wait row;
	uint32_t line;

	lock_report_reset();
	line = __LINE__ + 2;
	do
		device_thread_call(f->thread, take_a_while, NULL);
	while (wait_for_calls().count < 3);
	row = wait_for_calls();
	assert_string_equal(row.type, "device call");
	assert_string_equal(row.object, "rootfs");
	assert_string_equal(row.file, "tests/vmm/test_device_thread.c");
	assert_int_equal(row.line, line);
}

static void it_can_be_freed_at_once(void **state)
{
	struct error err;
	int i;

	for (i = 0; i < 200; i++)
		assert_null(device_thread_free(device_thread_new("quick", &err)));
}

static void free_of_null_is_fine(void **state)
{
	assert_null(device_thread_free(NULL));
}

int main(void)
{
#define WITH_THREAD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_THREAD(a_call_runs_on_the_thread_and_is_waited_for),
		cmocka_unit_test(its_tid_is_known_at_once),
		WITH_THREAD(it_is_named_after_the_device),
		WITH_THREAD(it_lets_no_signal_in),
		cmocka_unit_test(a_long_id_is_cut_to_what_a_thread_name_holds),
		WITH_THREAD(calls_of_many_threads_run_one_at_a_time),
		WITH_THREAD(a_call_comes_after_what_was_posted_before),
		WITH_THREAD(calls_in_a_row_leave_nothing_behind),
		WITH_THREAD(a_wait_is_charged_to_the_thread_and_the_call_site),
		cmocka_unit_test(it_can_be_freed_at_once),
		cmocka_unit_test(free_of_null_is_fine),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
