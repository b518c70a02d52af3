/*
 * Locks: order of levels, waits counted, condition variables.
 */
#include "tests/vmm/base/base_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/lock.h"

struct fixture {
	struct lock vm, device, log;
	struct lock_cond cond;
	unsigned counter;
	unsigned waiting; /* under `device` */
	atomic_bool held;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	lock_init(&f->vm, LOCK_LEVEL_VM, "vm", "a");
	lock_init(&f->device, LOCK_LEVEL_DEVICE, "device", "b");
	lock_init(&f->log, LOCK_LEVEL_LOG, "log", "");
	lock_cond_init(&f->cond, "cond", "b");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	lock_cond_fini(&f->cond);
	lock_fini(&f->log);
	lock_fini(&f->device);
	lock_fini(&f->vm);
	free(f);
	return 0;
}

static void ascending_levels_are_in_order(void **state)
{
	struct fixture *f = *state;
	uint64_t before = lock_order_violations();

	lock_take(&f->vm);
	lock_take(&f->device);
	lock_take(&f->log);
	lock_release(&f->log);
	lock_release(&f->device);
	lock_release(&f->vm);
	assert_int_equal(lock_order_violations(), before);
}

#ifndef NDEBUG
static void descending_levels_are_counted(void **state)
{
	struct fixture *f = *state;
	uint64_t before = lock_order_violations();

	lock_take(&f->device);
	lock_take(&f->vm);
	lock_release(&f->vm);
	lock_release(&f->device);
	assert_int_equal(lock_order_violations(), before + 1);
}

static void two_locks_of_one_level_are_counted(void **state)
{
	struct fixture *f = *state;
	uint64_t before = lock_order_violations();
	struct lock other;

	lock_init(&other, LOCK_LEVEL_DEVICE, "other", "");
	lock_take(&f->device);
	lock_take(&other);
	lock_release(&other);
	lock_release(&f->device);
	lock_fini(&other);
	assert_int_equal(lock_order_violations(), before + 1);
}

static void waiting_for_a_condition_gives_the_level_up(void **state)
{
	struct fixture *f = *state;
	uint64_t before = lock_order_violations();

	lock_take(&f->device);
	assert_int_equal(lock_cond_wait_for(&f->cond, &f->device, 1000000), -ETIMEDOUT);
	lock_release(&f->device);
	lock_take(&f->vm);
	lock_take(&f->device);
	lock_release(&f->device);
	lock_release(&f->vm);
	assert_int_equal(lock_order_violations(), before);
}
#endif

static void *add_under_lock(void *arg)
{
	struct fixture *f = arg;
	unsigned i;

	for (i = 0; i < 20000; i++) {
		lock_take(&f->device);
		f->counter++;
		lock_release(&f->device);
	}
	return NULL;
}

static void lock_excludes(void **state)
{
	struct fixture *f = *state;
	pthread_t a, b;

	pthread_create(&a, NULL, add_under_lock, f);
	pthread_create(&b, NULL, add_under_lock, f);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	assert_int_equal(f->counter, 40000);
}

static void lock_excludes_while_the_profiler_goes_on_and_off(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[4];
	unsigned i;

	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, add_under_lock, f);
	for (i = 0; i < 1000; i++)
		lock_set_profiling(i % 2 == 0);
	lock_set_profiling(false);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(f->counter, 80000);
}

static void uncontended_lock_counts_no_wait(void **state)
{
	struct fixture *f = *state;

	add_under_lock(f);
	assert_int_equal(lock_report_waits(NULL, 0), 0);
}

static void *hold_for_a_while(void *arg)
{
	struct fixture *f = arg;

	lock_take(&f->device);
	atomic_store(&f->held, true);
	usleep(20000);
	lock_release(&f->device);
	return NULL;
}

static void a_wait_is_charged_to_its_lock_and_call_site(void **state)
{
	struct fixture *f = *state;
	struct lock_report_wait row;
	pthread_t holder;
	uint32_t line;

	pthread_create(&holder, NULL, hold_for_a_while, f);
	while (!atomic_load(&f->held))
		usleep(100);
	line = __LINE__ + 1;
	lock_take(&f->device);
	lock_release(&f->device);
	pthread_join(holder, NULL);
	assert_int_equal(lock_report_waits(&row, 1), 1);
	assert_string_equal(row.type, "device");
	assert_string_equal(row.object, "b");
	assert_string_equal(row.file, "tests/vmm/base/test_lock.c");
	assert_int_equal(row.line, line);
	assert_false(row.is_condition);
	assert_int_equal(row.level, LOCK_LEVEL_DEVICE);
	assert_int_equal(row.count, 1);
	assert_true(row.wait_ns > 1000000);
	assert_int_equal(row.max_ns, row.wait_ns);
}

static void a_wait_for_a_condition_is_charged_to_it(void **state)
{
	struct fixture *f = *state;
	struct lock_report_wait row;

	lock_take(&f->device);
	while (lock_cond_wait_for(&f->cond, &f->device, 1000000) == 0)
		;
	lock_release(&f->device);
	assert_int_equal(lock_report_waits(&row, 1), 1);
	assert_string_equal(row.type, "cond");
	assert_true(row.is_condition);
	assert_true(row.wait_ns >= 1000000);
}

static void reports_have_the_longest_wait_first_and_say_what_is_left_out(void **state)
{
	struct fixture *f = *state;
	struct lock_report_wait rows[2];

	lock_take(&f->device);
	while (lock_cond_wait_for(&f->cond, &f->device, 1000000) == 0)
		;
	while (lock_cond_wait_for(&f->cond, &f->device, 9000000) == 0)
		;
	while (lock_cond_wait_for(&f->cond, &f->device, 4000000) == 0)
		;
	lock_release(&f->device);
	assert_int_equal(lock_report_waits(rows, 2), 3);
	assert_true(rows[0].wait_ns >= 9000000 && rows[1].wait_ns >= 4000000);
	assert_true(rows[0].wait_ns >= rows[1].wait_ns);
	assert_int_equal(lock_report_waits(rows, 1), 3);
	assert_true(rows[0].wait_ns >= 9000000);
}

static uint64_t takes_of(const char *type)
{
	struct lock_report_lock rows[8];
	size_t i, count = lock_report_locks(rows, 8);

	for (i = 0; i < count && i < 8; i++) {
		if (!strcmp(rows[i].type, type))
			return rows[i].takes;
	}
	return UINT64_MAX;
}

static void takes_are_counted_while_profiling_only(void **state)
{
	struct fixture *f = *state;

	add_under_lock(f);
	assert_int_equal(takes_of("device"), 0);
	lock_set_profiling(true);
	assert_true(lock_is_profiling());
	add_under_lock(f);
	lock_set_profiling(false);
	add_under_lock(f);
	assert_int_equal(takes_of("device"), 20000);
	assert_int_equal(takes_of("vm"), 0);
}

static void a_lock_that_was_waited_for_counts_as_taken(void **state)
{
	struct fixture *f = *state;
	pthread_t holder;

	lock_set_profiling(true);
	pthread_create(&holder, NULL, hold_for_a_while, f);
	while (!atomic_load(&f->held))
		usleep(100);
	lock_take(&f->device);
	lock_release(&f->device);
	pthread_join(holder, NULL);
	lock_set_profiling(false);
	assert_int_equal(takes_of("device"), 2);
}

static bool try_and_let_go(struct lock *l)
{
	if (!lock_try(l))
		return false;
	lock_release(l);
	return true;
}

static void trying_takes_a_free_lock_and_never_waits(void **state)
{
	struct fixture *f = *state;
	pthread_t holder;

	lock_set_profiling(true);
	assert_true(try_and_let_go(&f->device));
	lock_set_profiling(false);
	pthread_create(&holder, NULL, hold_for_a_while, f);
	while (!atomic_load(&f->held))
		usleep(100);
	assert_false(try_and_let_go(&f->device));
	pthread_join(holder, NULL);
	assert_int_equal(takes_of("device"), 1);
	assert_int_equal(lock_report_waits(NULL, 0), 0);
}

static void a_reset_forgets_waits_and_takes(void **state)
{
	struct fixture *f = *state;
	struct lock_report_wait row;

	lock_set_profiling(true);
	lock_take(&f->device);
	while (lock_cond_wait_for(&f->cond, &f->device, 5000000) == 0)
		;
	lock_release(&f->device);
	lock_set_profiling(false);
	lock_report_reset();
	assert_int_equal(lock_report_waits(&row, 1), 0);
	assert_int_equal(takes_of("device"), 0);
}

static void *signal_when_waited_for(void *arg)
{
	struct fixture *f = arg;

	lock_take(&f->device);
	f->counter = 1;
	lock_cond_signal(&f->cond);
	lock_release(&f->device);
	return NULL;
}

static void condition_wakes_its_waiter(void **state)
{
	struct fixture *f = *state;
	pthread_t t;

	lock_take(&f->device);
	pthread_create(&t, NULL, signal_when_waited_for, f);
	while (!f->counter)
		lock_cond_wait(&f->cond, &f->device);
	lock_release(&f->device);
	pthread_join(t, NULL);
	assert_int_equal(f->counter, 1);
}

static void *wait_for_the_counter(void *arg)
{
	struct fixture *f = arg;

	lock_take(&f->device);
	f->waiting++;
	while (!f->counter)
		lock_cond_wait(&f->cond, &f->device);
	f->waiting--;
	lock_release(&f->device);
	return NULL;
}

/* Returns with the lock held. */
static void wait_until_waited_for(struct fixture *f, unsigned waiters) TSA_ACQUIRES(f->device)
{
	lock_take(&f->device);
	while (f->waiting < waiters) {
		lock_release(&f->device);
		usleep(100);
		lock_take(&f->device);
	}
}

static void a_broadcast_wakes_every_waiter(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[4];
	unsigned i;

	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, wait_for_the_counter, f);
	wait_until_waited_for(f, 4);
	f->counter = 1;
	lock_cond_broadcast(&f->cond);
	lock_release(&f->device);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(f->waiting, 0);
}

static void one_signal_wakes_one_waiter_after_the_other(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[2];
	unsigned i;

	for (i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, wait_for_the_counter, f);
	wait_until_waited_for(f, 2);
	f->counter = 1;
	lock_cond_signal(&f->cond);
	lock_cond_signal(&f->cond);
	lock_release(&f->device);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(f->waiting, 0);
}

static void ignore(int signo)
{
}

static void signals_of_the_process_do_not_shorten_a_timed_wait(void **state)
{
	struct sigaction action = { .sa_handler = ignore };
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { 0 };
	struct fixture *f = *state;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	lock_take(&f->device);
	assert_int_equal(lock_cond_wait_for(&f->cond, &f->device, 20000000), -ETIMEDOUT);
	lock_release(&f->device);
	setitimer(ITIMER_REAL, &never, NULL);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void timed_wait_takes_its_time(void **state)
{
	struct fixture *f = *state;
	uint64_t begin = now_ns();

	lock_take(&f->device);
	while (lock_cond_wait_for(&f->cond, &f->device, 20000000) == 0)
		;
	lock_release(&f->device);
	assert_true(now_ns() - begin >= 20000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(ascending_levels_are_in_order),
#ifndef NDEBUG
		T(descending_levels_are_counted),
		T(two_locks_of_one_level_are_counted),
		T(waiting_for_a_condition_gives_the_level_up),
#endif
		T(lock_excludes),
		T(lock_excludes_while_the_profiler_goes_on_and_off),
		T(uncontended_lock_counts_no_wait),
		T(a_wait_is_charged_to_its_lock_and_call_site),
		T(condition_wakes_its_waiter),
		T(a_broadcast_wakes_every_waiter),
		T(one_signal_wakes_one_waiter_after_the_other),
		T(signals_of_the_process_do_not_shorten_a_timed_wait),
		T(timed_wait_takes_its_time),
		T(a_wait_for_a_condition_is_charged_to_it),
		T(reports_have_the_longest_wait_first_and_say_what_is_left_out),
		T(takes_are_counted_while_profiling_only),
		T(a_lock_that_was_waited_for_counts_as_taken),
		T(trying_takes_a_free_lock_and_never_waits),
		T(a_reset_forgets_waits_and_takes),
	};

	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
