/*
 * Two vCPUs and the device's thread at once: one submits and kicks without a
 * pause, one resets and starts the device again and again, one reads registers.
 * For ThreadSanitizer, and for anything that hangs.
 */
#include "tests/devices/virtio/blk_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define ROUNDS 300

struct race {
	struct blk_fixture *f;
	atomic_bool stop;
};

/* Kicks and notifies whether the device is active or not. */
static void *kicker(void *arg)
{
	struct race *race = arg;

	while (!atomic_load(&race->stop)) {
		rig_kick(race->f->r, 0);
		wr(race->f->r, R_QUEUE_NOTIFY, 0);
	}
	return NULL;
}

/* A driver on another vCPU that writes what it likes. */
static void *meddler(void *arg)
{
	struct race *race = arg;
	uint32_t reg;

	while (!atomic_load(&race->stop)) {
		for (reg = 0; reg <= R_CONFIG; reg += 4)
			(void)rd(race->f->r, reg);
		wr(race->f->r, R_INTERRUPT_ACK, 3);
		wr(race->f->r, R_QUEUE_NUM, 4);
		wr(race->f->r, R_DEVICE_FEATURES_SEL, 1);
	}
	return NULL;
}

/* Requests in flight when the reset comes. */
static void one_round(struct blk_fixture *f, unsigned n)
{
	unsigned i;

	wr(f->r, R_STATUS, 0);
	rig_negotiate(f->r, BLK_FEATURES);
	rig_queue(f->r, 0, 16);
	wr(f->r, R_STATUS, S_ACK | S_DRIVER | S_FEATURES_OK | S_DRIVER_OK);
	for (i = 0; i < n % 5; i++) {
		blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
		rig_avail(f->r, 0, 0);
		rig_kick(f->r, 0);
		rig_wait_used(f->r, 0, (uint16_t)(i + 1));
	}
}

static void kicking_while_resetting(void **state)
{
	struct race race = { .f = *state };
	pthread_t threads[2];
	unsigned i;

	assert_int_equal(pthread_create(&threads[0], NULL, kicker, &race), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, meddler, &race), 0);
	for (i = 0; i < ROUNDS; i++)
		one_round(race.f, i);
	atomic_store(&race.stop, true);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	rig_settle(race.f->r);
	assert_int_equal(lock_order_violations(), 0);
}

static void exchange(void *arg)
{
	struct blk_fixture *f = arg;
	struct fake_backend *new = fake_backend_new(DISK_BYTES);
	struct error err;

	assert_int_equal(f->r->d->ops->exchange(f->r->d, &new->b, &err), 0);
	f->fake = new;
}

static void *exchanger(void *arg)
{
	struct race *race = arg;

	while (!atomic_load(&race->stop))
		rig_call(race->f->r, exchange, race->f);
	return NULL;
}

/* The drive is exchanged while a vCPU freezes the queues, and before, and after. */
static void exchanging_while_starting(void **state)
{
	struct race race = { .f = *state };
	pthread_t thread;
	unsigned i;

	assert_int_equal(pthread_create(&thread, NULL, exchanger, &race), 0);
	for (i = 0; i < ROUNDS; i++)
		one_round(race.f, i);
	atomic_store(&race.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(blk_run(race.f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

static void *resetter(void *arg)
{
	struct race *race = arg;

	while (!atomic_load(&race->stop))
		wr(race->f->r, R_STATUS, 0);
	return NULL;
}

/* Two vCPUs reset at once, while a third starts the device. */
static void resetting_on_two_vcpus(void **state)
{
	struct race race = { .f = *state };
	pthread_t threads[2];
	unsigned i;

	assert_int_equal(pthread_create(&threads[0], NULL, resetter, &race), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, resetter, &race), 0);
	for (i = 0; i < ROUNDS; i++) {
		rig_negotiate(race.f->r, BLK_FEATURES);
		rig_queue_registers(race.f->r, 0);
		wr(race.f->r, R_STATUS, S_ACK | S_DRIVER | S_FEATURES_OK | S_DRIVER_OK);
	}
	atomic_store(&race.stop, true);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	rig_reset(race.f->r);
	rig_boot(race.f->r, BLK_FEATURES, 16);
	assert_int_equal(blk_run(race.f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kicking_while_resetting, blk_setup, blk_teardown),
		cmocka_unit_test_setup_teardown(exchanging_while_starting, blk_setup, blk_teardown),
		cmocka_unit_test_setup_teardown(resetting_on_two_vcpus, blk_setup, blk_teardown),
	};

	return cmocka_run_group_tests_name("virtio reset race", tests, NULL, NULL);
}
