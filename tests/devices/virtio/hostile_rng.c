/* Hostile ring suite: requests for entropy. */
#include <pthread.h>
#include <stdatomic.h>

#include "devices/registry.h"
#include "tests/devices/virtio/hostile_ring.h"
#include "vmm/base/bits.h"
#include "vmm/config.h"

static int setup(void **state)
{
	struct entropy_config c = { 0 };
	struct rig *r = rig_new();
	struct error err;

	rig_place(r, virtio_rng_class.create(&r->env, &c, NULL, &err));
	rig_boot(r, F_VERSION_1 | F_INDIRECT, 256);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	rig_free(*state);
	return 0;
}

/* The n-th request was given back with `len`; another one is served. */
static void assert_served(struct rig *r, uint16_t n, uint32_t len)
{
	assert_int_equal(rig_used_idx(r, 0), n);
	assert_int_equal(rig_used_len(r, 0, n - 1u), len);
	assert_false(rig_needs_reset(r));
	rig_desc(r, 0, 200, DATA, 8, D_WRITE, 0);
	rig_submit(r, 0, 200);
	assert_int_equal(rig_used_len(r, 0, n), 8);
}

static void ask(struct rig *r, uint64_t addr, uint32_t len, uint16_t flags)
{
	rig_desc(r, 0, 0, addr, len, flags, 0);
	rig_submit(r, 0, 0);
}

static void request_of_no_bytes(void **state)
{
	ask(*state, DATA, 0, D_WRITE);
	assert_served(*state, 1, 0);
}

static void request_at_the_cap(void **state)
{
	ask(*state, RAM_A + 0x8000, LIMIT_RNG_BYTES, D_WRITE);
	assert_served(*state, 1, LIMIT_RNG_BYTES);
}

static void request_one_above_the_cap(void **state)
{
	struct rig *r = *state;

	*rig_ram(r, RAM_A + 0x8000 + LIMIT_RNG_BYTES) = 0;
	ask(r, RAM_A + 0x8000, LIMIT_RNG_BYTES + 1, D_WRITE);
	assert_served(r, 1, LIMIT_RNG_BYTES);
	assert_int_equal(*rig_ram(r, RAM_A + 0x8000 + LIMIT_RNG_BYTES), 0);
}

static void request_of_four_gigabytes(void **state)
{
	ask(*state, DATA, 0xffffffff, D_WRITE);
	assert_served(*state, 1, 0);
}

/* 200 descriptors of 64 KiB over the same memory. */
static void overlapping_buffers_beyond_any_memory(void **state)
{
	struct rig *r = *state;
	uint16_t i;

	for (i = 0; i < 200; i++)
		rig_desc(r, 0, i, RAM_A + 0x8000, 0x10000, D_WRITE | (i < 199 ? D_NEXT : 0),
			 (uint16_t)(i + 1));
	rig_submit(r, 0, 0);
	assert_served(r, 1, LIMIT_RNG_BYTES);
}

static void request_that_is_readable(void **state)
{
	struct rig *r = *state;

	put32(r, DATA, 0x12345678);
	ask(r, DATA, 64, 0);
	assert_int_equal(get32(r, DATA), 0x12345678);
	assert_served(r, 1, 0);
}

static void request_with_a_readable_head(void **state)
{
	struct rig *r = *state;

	rig_desc(r, 0, 1, DATA + 64, 64, D_WRITE, 0);
	rig_desc(r, 0, 0, DATA, 64, D_NEXT, 1);
	rig_submit(r, 0, 0);
	assert_served(r, 1, 0);
}

static void request_in_the_hole(void **state)
{
	ask(*state, HOLE, 64, D_WRITE);
	assert_served(*state, 1, 0);
}

static void request_that_ends_in_the_hole(void **state)
{
	struct rig *r = *state;

	ask(r, RAM_B_END - 64, 65, D_WRITE);
	assert_int_equal(*rig_ram(r, RAM_B_END - 64), 0);
	assert_served(r, 1, 0);
}

static void request_in_a_loop(void **state)
{
	ask(*state, DATA, 64, D_WRITE | D_NEXT);
	assert_served(*state, 1, 0);
}

/* Random bytes over its own rings: whatever they say, it survives. */
static void request_over_the_rings(void **state)
{
	struct rig *r = *state;
	int i;

	for (i = 0; i < 20; i++) {
		rig_reset(r);
		rig_boot(r, F_VERSION_1 | F_INDIRECT, 256);
		ask(r, RING_DESC(0), 0x3000, D_WRITE);
		rig_kick(r, 0);
		rig_settle(r);
	}
	rig_reset(r);
	rig_boot(r, F_VERSION_1, 256);
	ask(r, DATA, 64, D_WRITE);
	assert_served(r, 1, 64);
}

static void a_whole_queue_of_the_largest_requests(void **state)
{
	struct rig *r = *state;
	uint16_t i;

	for (i = 0; i < 64; i++) {
		rig_desc(r, 0, i, RAM_A + 0x8000, 0x10000, D_WRITE, 0);
		rig_avail(r, 0, i);
	}
	rig_kick(r, 0);
	rig_wait_used(r, 0, 64);
	assert_served(r, 64, LIMIT_RNG_BYTES);
}

static void a_queue_of_one(void **state)
{
	struct rig *r = *state;

	rig_reset(r);
	rig_boot(r, F_VERSION_1, 1);
	ask(r, DATA, 64, D_WRITE);
	ask(r, DATA, 64, D_WRITE);
	assert_int_equal(rig_used_idx(r, 0), 2);
	rig_avail_idx(r, 0, 4);
	rig_kick(r, 0);
	rig_settle(r);
	assert_true(rig_needs_reset(r));
}

static void reset_in_the_middle_of_a_flood(void **state)
{
	struct rig *r = *state;
	uint16_t i, round;

	for (round = 0; round < 20; round++) {
		for (i = 0; i < 64; i++) {
			rig_desc(r, 0, i, RAM_A + 0x8000, 0x10000, D_WRITE, 0);
			rig_avail(r, 0, i);
		}
		rig_kick(r, 0);
		rig_reset(r);
		rig_boot(r, F_VERSION_1, 256);
	}
	ask(r, DATA, 64, D_WRITE);
	assert_served(r, 1, 64);
}

struct pump {
	struct rig *r;
	atomic_bool stop;
};

/* A vCPU that adds requests as fast as they are served, and never stops. */
static void *pump(void *arg)
{
	struct pump *p = arg;
	struct rig *r = p->r;
	uint16_t n = 0;

	while (!atomic_load(&p->stop)) {
		if ((uint16_t)(n - rig_used_idx(r, 0)) >= 128)
			continue;
		put16(r, r->q[0].avail + 4 + 2ull * (n % 256), n % 256);
		guest_store_release16(rig_ram(r, r->q[0].avail + 2), ++n);
		rig_kick(r, 0);
	}
	return NULL;
}

/* The device's thread does nothing else; it answers a call and a reset all the same. */
static void requests_that_never_end(void **state)
{
	struct rig *r = *state;
	struct pump p = { .r = r };
	pthread_t thread;
	uint16_t i;

	for (i = 0; i < 256; i++)
		rig_desc(r, 0, i, DATA, 256, D_WRITE, 0);
	assert_int_equal(pthread_create(&thread, NULL, pump, &p), 0);
	for (i = 0; i < 50; i++)
		rig_settle(r);
	rig_reset(r);
	atomic_store(&p.stop, true);
	pthread_join(thread, NULL);
	rig_boot(r, F_VERSION_1, 256);
	ask(r, DATA, 64, D_WRITE);
	assert_served(r, 1, 64);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
static const struct CMUnitTest tests[] = {
	T(request_of_no_bytes),
	T(request_at_the_cap),
	T(request_one_above_the_cap),
	T(request_of_four_gigabytes),
	T(overlapping_buffers_beyond_any_memory),
	T(request_that_is_readable),
	T(request_with_a_readable_head),
	T(request_in_the_hole),
	T(request_that_ends_in_the_hole),
	T(request_in_a_loop),
	T(request_over_the_rings),
	T(a_whole_queue_of_the_largest_requests),
	T(a_queue_of_one),
	T(reset_in_the_middle_of_a_flood),
	T(requests_that_never_end),
};

const struct hostile_group hostile_rng = { "hostile rng", tests, ARRAY_SIZE(tests) };
