/*
 * The big lock: it excludes, comes first in the order, and is given up by who waits.
 */
#include "tests/vmm/base/base_test.h"

#include <pthread.h>

#include "vmm/base/big_lock.h"
#include "vmm/base/lock.h"

static int setup(void **state)
{
	big_lock_enable();
	big_lock_enable(); /* a second time changes nothing */
	return 0;
}

static void it_is_on_once_enabled(void **state)
{
	assert_true(big_lock_is_on());
}

static void *add(void *arg)
{
	unsigned *counter = arg, i;

	for (i = 0; i < 20000; i++) {
		big_lock_take();
		++*counter;
		big_lock_release();
	}
	return NULL;
}

static void it_excludes(void **state)
{
	unsigned counter = 0;
	pthread_t a, b;

	pthread_create(&a, NULL, add, &counter);
	pthread_create(&b, NULL, add, &counter);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	assert_int_equal(counter, 40000);
}

struct pair {
	struct lock lock;
	struct lock_cond cond;
	bool done;
};

static void *finish_under_the_big_lock(void *arg)
{
	struct pair *p = arg;

	big_lock_take();
	lock_take(&p->lock);
	p->done = true;
	lock_cond_signal(&p->cond);
	lock_release(&p->lock);
	big_lock_release();
	return NULL;
}

static void who_waits_for_a_condition_gives_it_up_and_has_it_again(void **state)
{
	uint64_t before = lock_order_violations();
	struct pair p = { .done = false };
	pthread_t t;

	lock_init(&p.lock, LOCK_LEVEL_VM, "pair", "");
	lock_cond_init(&p.cond, "pair", "");
	big_lock_take();
	lock_take(&p.lock);
	pthread_create(&t, NULL, finish_under_the_big_lock, &p);
	while (!p.done)
		lock_cond_wait(&p.cond, &p.lock);
	lock_release(&p.lock);
	assert_true(big_lock_yield());
	assert_false(big_lock_yield());
	pthread_join(t, NULL);
	lock_cond_fini(&p.cond);
	lock_fini(&p.lock);
	assert_int_equal(lock_order_violations(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_on_once_enabled),
		cmocka_unit_test(it_excludes),
		cmocka_unit_test(who_waits_for_a_condition_gives_it_up_and_has_it_again),
	};

	return cmocka_run_group_tests_name("big_lock", tests, setup, NULL);
}
