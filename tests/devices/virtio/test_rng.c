/* The entropy device. */
#include <errno.h>
#include <string.h>

#include "devices/registry.h"
#include "tests/devices/virtio/ring_rig.h"
#include "vmm/config.h"

static int create(void **state, const struct entropy_config *c)
{
	struct rig *r = rig_new();
	struct error err;

	rig_place(r, virtio_rng_class.create(&r->env, c, NULL, &err));
	*state = r;
	return 0;
}

static int setup(void **state)
{
	struct entropy_config c = { 0 };

	create(state, &c);
	rig_boot(*state, F_VERSION_1 | F_EVENT_IDX | F_INDIRECT, 8);
	return 0;
}

static int teardown(void **state)
{
	rig_free(*state);
	return 0;
}

static bool all_zero(const uint8_t *p, size_t n)
{
	while (n && !*p) {
		p++;
		n--;
	}
	return n == 0;
}

static void a_buffer_is_filled_to_its_end(void **state)
{
	struct rig *r = *state;

	rig_desc(r, 0, 0, DATA, 256, D_WRITE, 0);
	rig_submit(r, 0, 0);
	assert_int_equal(rig_used_idx(r, 0), 1);
	assert_int_equal(rig_used_len(r, 0, 0), 256);
	assert_false(all_zero(rig_ram(r, DATA), 32));
	assert_false(all_zero(rig_ram(r, DATA + 224), 32));
	assert_true(all_zero(rig_ram(r, DATA + 256), 32));
}

static void several_buffers_are_filled(void **state)
{
	struct rig *r = *state;

	rig_desc(r, 0, 0, DATA, 64, D_NEXT | D_WRITE, 1);
	rig_desc(r, 0, 1, RAM_A_END - 32, 64, D_WRITE, 0);
	rig_submit(r, 0, 0);
	assert_int_equal(rig_used_len(r, 0, 0), 128);
	assert_false(all_zero(rig_ram(r, RAM_B), 32));
}

static void two_requests_differ(void **state)
{
	struct rig *r = *state;

	rig_desc(r, 0, 0, DATA, 64, D_WRITE, 0);
	rig_desc(r, 0, 1, DATA + 64, 64, D_WRITE, 0);
	rig_submit(r, 0, 0);
	rig_submit(r, 0, 1);
	assert_memory_not_equal(rig_ram(r, DATA), rig_ram(r, DATA + 64), 64);
}

static void its_counters_are_in_the_metrics(void **state)
{
	struct rig *r = *state;
	struct buf b;

	buf_init(&b, 65536);
	rig_desc(r, 0, 0, DATA, 256, D_WRITE, 0);
	rig_submit(r, 0, 0);
	assert_int_equal(metrics_format(r->env.metrics, &b), 0);
	assert_non_null(strstr(buf_text(&b), "\"entropy\""));
	assert_non_null(strstr(buf_text(&b), "\"entropy_bytes\":256"));
	buf_fini(&b);
}

/* 64 bytes each 200 ms: the second request of 64 owes, the third waits. */
static void a_rate_limit_delays_requests(void **state)
{
	struct entropy_config c = { .rate_limiter.bandwidth = {
					    .size = 64, .refill_time_ms = 1000, .present = true } };
	struct rig *r;
	uint16_t i;

	create(state, &c);
	r = *state;
	rig_boot(r, F_VERSION_1, 8);
	for (i = 0; i < 3; i++) {
		rig_desc(r, 0, i, DATA + 64 * i, 64, D_WRITE, 0);
		rig_submit(r, 0, i);
	}
	assert_int_equal(rig_used_idx(r, 0), 2);
	rig_wait_used(r, 0, 3);
	rig_free(r);
}

static void reset_while_it_waits(void **state)
{
	struct entropy_config c = { .rate_limiter.ops = {
					    .size = 1, .refill_time_ms = 3600000, .present = true } };
	struct rig *r;
	uint16_t i;

	create(state, &c);
	r = *state;
	rig_boot(r, F_VERSION_1, 8);
	for (i = 0; i < 3; i++) {
		rig_desc(r, 0, i, DATA, 64, D_WRITE, 0);
		rig_submit(r, 0, i);
	}
	assert_int_equal(rig_used_idx(r, 0), 2);
	rig_reset(r);
	rig_free(r);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_buffer_is_filled_to_its_end),
		T(several_buffers_are_filled),
		T(two_requests_differ),
		T(its_counters_are_in_the_metrics),
		cmocka_unit_test(a_rate_limit_delays_requests),
		cmocka_unit_test(reset_while_it_waits),
	};

	return cmocka_run_group_tests_name("virtio rng", tests, NULL, NULL);
}
