/* Hostile ring suite: registers, status, features, configuration space, kicks. */
#include <sys/resource.h>
#include <time.h>

#include "tests/devices/virtio/blk_fixture.h"
#include "tests/devices/virtio/hostile_ring.h"
#include "vmm/base/bits.h"

static int setup(void **state)
{
	struct drive_config c;

	blk_config(&c);
	*state = blk_fixture_new(&c);
	return 0;
}

static struct rig *rig_of(void **state)
{
	return ((struct blk_fixture *)*state)->r;
}

/* The device still does its work, at the latest after a reset. */
static void assert_alive(void **state)
{
	struct blk_fixture *f = *state;

	rig_reset(f->r);
	rig_boot(f->r, BLK_FEATURES, 16);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

static void registers_read_with_a_wrong_width(void **state)
{
	static const unsigned widths[] = { 1, 2, 8 };
	struct rig *r = rig_of(state);
	uint32_t offset;
	size_t i;

	for (offset = 0; offset < R_CONFIG; offset++) {
		for (i = 0; i < ARRAY_SIZE(widths); i++)
			assert_int_equal(rig_read(r, offset, widths[i]), UINT64_MAX);
		if (offset % 4)
			assert_int_equal(rig_read(r, offset, 4), UINT64_MAX);
	}
}

static void registers_written_with_a_wrong_width(void **state)
{
	struct rig *r = rig_of(state);
	uint32_t offset;

	for (offset = 0; offset < R_CONFIG; offset++) {
		rig_write(r, offset, 1, 1);
		rig_write(r, offset, 2, 1);
		rig_write(r, offset, 8, 1);
	}
	assert_int_equal(rd(r, R_STATUS), 0);
	assert_alive(state);
}

static void every_offset_is_written_and_read(void **state)
{
	struct rig *r = rig_of(state);
	uint32_t offset;

	for (offset = 0; offset < 0x1000; offset += 4) {
		rig_write(r, offset, 4, 0xffffffff);
		(void)rd(r, offset);
	}
	assert_int_equal(rd(r, R_STATUS), 0);
	assert_alive(state);
}

static void reserved_registers_read_zero(void **state)
{
	static const uint32_t reserved[] = { 0x18, 0x1c, 0x28, 0x2c, 0x3c, 0x40, 0x48, 0x4c, 0x54,
					     0x68, 0x6c, 0x74, 0x88, 0x98, 0xa8, 0xc0, 0xf8 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(reserved); i++)
		assert_int_equal(rd(rig_of(state), reserved[i]), 0);
}

static void write_only_registers_read_zero(void **state)
{
	static const uint32_t write_only[] = { R_DEVICE_FEATURES_SEL, R_DRIVER_FEATURES,
					       R_DRIVER_FEATURES_SEL, R_QUEUE_SEL, R_QUEUE_NUM,
					       R_QUEUE_NOTIFY, R_INTERRUPT_ACK, R_DESC_LOW,
					       R_USED_HIGH };
	struct rig *r = rig_of(state);
	size_t i;

	rig_negotiate(r, F_VERSION_1);
	for (i = 0; i < ARRAY_SIZE(write_only); i++)
		assert_int_equal(rd(r, write_only[i]), 0);
}

static void read_only_registers_are_written(void **state)
{
	struct rig *r = rig_of(state);

	wr(r, R_MAGIC, 0);
	wr(r, R_DEVICE_ID, 99);
	wr(r, R_DEVICE_FEATURES, 0);
	wr(r, R_INTERRUPT_STATUS, 3);
	wr(r, R_GENERATION, 7);
	assert_int_equal(rd(r, R_MAGIC), 0x74726976);
	assert_int_equal(rd(r, R_DEVICE_ID), 2);
	assert_int_equal(rd(r, R_INTERRUPT_STATUS), 0);
	assert_int_equal(rd(r, R_GENERATION), 0);
}

/* The whole page behind the registers, every width that a bus has. */
static void configuration_space_is_read_everywhere(void **state)
{
	struct rig *r = rig_of(state);
	uint32_t offset, width;

	for (width = 1; width <= 8; width *= 2) {
		for (offset = R_CONFIG + 16; offset < 0x1000; offset++)
			assert_int_equal(rig_read(r, offset, width), 0);
	}
}

static void configuration_space_is_written_everywhere(void **state)
{
	struct rig *r = rig_of(state);
	uint32_t offset, width;

	for (width = 1; width <= 8; width *= 2) {
		for (offset = R_CONFIG; offset < 0x1000; offset++)
			rig_write(r, offset, width, UINT64_MAX);
	}
	assert_int_equal(rig_read(r, R_CONFIG, 8), DISK_SECTORS);
}

static void configuration_space_offset_wraps(void **state)
{
	assert_int_equal(rig_read(rig_of(state), UINT64_MAX, 8), 0);
	assert_int_equal(rig_read(rig_of(state), UINT64_MAX - 3, 4), 0);
	rig_write(rig_of(state), UINT64_MAX - 3, 4, 1);
}

/* The states a driver can be in, short of an active device. */
static void enter(struct rig *r, uint32_t status)
{
	rig_reset(r);
	if (status & S_FEATURES_OK)
		assert_true(rig_negotiate(r, F_VERSION_1));
	else if (status & S_ACK)
		wr(r, R_STATUS, status & (S_ACK | S_DRIVER));
	if (status & S_DRIVER_OK) {
		rig_queue(r, 0, 16);
		wr(r, R_STATUS, S_ACK | S_DRIVER | S_FEATURES_OK | S_DRIVER_OK);
	}
	if (status & S_FAILED)
		wr(r, R_STATUS, status);
	assert_int_equal(rd(r, R_STATUS), status);
}

static bool step_is_legal(uint32_t from, uint32_t to)
{
	if (to == 0 || to == from || (from && to == (from | S_FAILED)))
		return true;
	return (from == 0 && (to == 1 || to == 3)) || (from == 1 && to == 3) ||
	       (from == 3 && to == 11) || (from == 11 && to == 15);
}

/* From every state that can be reached, every byte is written. */
static void every_status_from_every_state(void **state)
{
	static const uint32_t from[] = { 0, 1, 3, 11, 15, 1 | S_FAILED, 3 | S_FAILED,
					 11 | S_FAILED, 15 | S_FAILED };
	struct rig *r = rig_of(state);
	uint32_t to, expected;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(from); i++) {
		for (to = 0; to < 256; to++) {
			enter(r, from[i]);
			if (from[i] == 3)
				wr(r, R_DRIVER_FEATURES_SEL, 1);
			if (from[i] == 3)
				wr(r, R_DRIVER_FEATURES, 1);
			wr(r, R_STATUS, to);
			expected = step_is_legal(from[i], to) ? to : from[i];
			/* no queue is ready in state 11 */
			if (from[i] == 11 && to == 15)
				expected |= S_NEEDS_RESET;
			assert_int_equal(rd(r, R_STATUS), expected);
		}
	}
}

static void status_with_bits_above_the_byte(void **state)
{
	struct rig *r = rig_of(state);

	wr(r, R_STATUS, 0x101);
	assert_int_equal(rd(r, R_STATUS), 0);
	wr(r, R_STATUS, 1);
	wr(r, R_STATUS, 0xffffff00);
	assert_int_equal(rd(r, R_STATUS), 1);
}

static void features_that_were_not_offered(void **state)
{
	struct rig *r = rig_of(state);
	unsigned bit;

	for (bit = 0; bit < 64; bit++) {
		uint64_t features = F_VERSION_1 | (1ull << bit);
		bool offered;

		rig_reset(r);
		wr(r, R_DEVICE_FEATURES_SEL, bit / 32);
		offered = rd(r, R_DEVICE_FEATURES) >> (bit % 32) & 1;
		assert_int_equal(rig_negotiate(r, features), offered);
	}
}

static void features_without_version_1(void **state)
{
	assert_false(rig_negotiate(rig_of(state), F_EVENT_IDX));
	rig_reset(rig_of(state));
	assert_false(rig_negotiate(rig_of(state), 0));
}

static void features_are_changed_after_features_ok(void **state)
{
	struct blk_fixture *f = *state;

	rig_negotiate(f->r, F_VERSION_1);
	wr(f->r, R_DRIVER_FEATURES_SEL, 0);
	wr(f->r, R_DRIVER_FEATURES, 0xffffffff);
	rig_queue(f->r, 0, 16);
	rig_driver_ok(f->r);
	assert_int_equal(f->r->v->negotiated, F_VERSION_1);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

static void features_of_a_word_that_does_not_exist(void **state)
{
	struct rig *r = rig_of(state);

	wr(r, R_STATUS, 3);
	wr(r, R_DRIVER_FEATURES_SEL, 2);
	wr(r, R_DRIVER_FEATURES, 0xffffffff);
	wr(r, R_DRIVER_FEATURES_SEL, 0xffffffff);
	wr(r, R_DRIVER_FEATURES, 0xffffffff);
	assert_true(rig_negotiate(r, F_VERSION_1));
}

static void driver_ok_without_a_queue(void **state)
{
	struct rig *r = rig_of(state);

	rig_negotiate(r, F_VERSION_1);
	rig_driver_ok(r);
	assert_true(rig_needs_reset(r));
	assert_int_equal(rd(r, R_INTERRUPT_STATUS), 2);
	assert_string_equal(r->d->ops->status(r->d), "needs-reset");
	assert_alive(state);
}

/* A queue with one address changed; the device must not start on it. */
static void assert_refused(void **state, uint64_t desc, uint64_t avail, uint64_t used)
{
	struct rig *r = rig_of(state);

	rig_negotiate(r, F_VERSION_1);
	r->q[0] = (struct rig_queue){ .size = 16, .desc = desc, .avail = avail, .used = used };
	rig_queue_registers(r, 0);
	rig_driver_ok(r);
	assert_true(rig_needs_reset(r));
	rig_kick(r, 0);
	rig_settle(r);
	assert_alive(state);
}

static void queue_in_the_hole(void **state)
{
	assert_refused(state, HOLE, RING_AVAIL(0), RING_USED(0));
}

static void queue_unaligned(void **state)
{
	assert_refused(state, RING_DESC(0), RING_AVAIL(0) + 1, RING_USED(0));
}

static void queue_at_the_top_of_the_address_space(void **state)
{
	assert_refused(state, RING_DESC(0), RING_AVAIL(0), 0xfffffffffffffffcull);
}

static void queue_on_a_device(void **state)
{
	assert_refused(state, 0xc0001000, 0xc0001000, 0xc0001000);
}

static void queue_sizes_that_are_wrong(void **state)
{
	static const uint32_t sizes[] = { 0, 3, 12, 255, 512, 65536, 65552, 0x80000000, 0xffffffff };
	struct rig *r = rig_of(state);
	size_t i;

	rig_negotiate(r, F_VERSION_1);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		wr(r, R_QUEUE_NUM, sizes[i]);
		wr(r, R_QUEUE_READY, 1);
		assert_int_equal(rd(r, R_QUEUE_READY), 0);
	}
}

static void a_wrong_size_does_not_replace_a_right_one(void **state)
{
	struct rig *r = rig_of(state);

	rig_negotiate(r, F_VERSION_1);
	rig_queue(r, 0, 8);
	wr(r, R_QUEUE_READY, 0);
	wr(r, R_QUEUE_NUM, 1000);
	wr(r, R_QUEUE_READY, 1);
	rig_driver_ok(r);
	assert_int_equal(r->v->queues[0].size, 8);
}

static void queue_ready_with_another_value(void **state)
{
	struct rig *r = rig_of(state);

	rig_negotiate(r, F_VERSION_1);
	rig_queue(r, 0, 8);
	wr(r, R_QUEUE_READY, 2);
	assert_int_equal(rd(r, R_QUEUE_READY), 0);
}

static void queue_registers_before_features_ok(void **state)
{
	struct rig *r = rig_of(state);

	wr(r, R_STATUS, 3);
	rig_queue(r, 0, 8);
	assert_int_equal(rd(r, R_QUEUE_READY), 0);
}

static void queue_select_out_of_range(void **state)
{
	static const uint32_t selectors[] = { 1, 2, 3, 0x7fffffff, 0x80000000, 0xffffffff };
	struct rig *r = rig_of(state);
	size_t i;

	rig_negotiate(r, F_VERSION_1);
	for (i = 0; i < ARRAY_SIZE(selectors); i++) {
		wr(r, R_QUEUE_SEL, selectors[i]);
		assert_int_equal(rd(r, R_QUEUE_NUM_MAX), 0);
		wr(r, R_QUEUE_NUM, 8);
		wr(r, R_DESC_LOW, 0xffffffff);
		wr(r, R_QUEUE_READY, 1);
		assert_int_equal(rd(r, R_QUEUE_READY), 0);
	}
	assert_alive(state);
}

static void queue_size_is_changed_when_ready(void **state)
{
	struct blk_fixture *f = *state;

	rig_negotiate(f->r, F_VERSION_1);
	rig_queue(f->r, 0, 16);
	wr(f->r, R_QUEUE_NUM, 256);
	rig_driver_ok(f->r);
	assert_int_equal(f->r->v->queues[0].size, 16);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

static void queue_is_changed_after_activation(void **state)
{
	struct blk_fixture *f = *state;

	rig_boot(f->r, F_VERSION_1, 16);
	wr(f->r, R_QUEUE_READY, 0);
	wr(f->r, R_QUEUE_NUM, 2);
	wr(f->r, R_DESC_LOW, (uint32_t)HOLE);
	wr(f->r, R_USED_HIGH, 0xffffffff);
	wr(f->r, R_QUEUE_READY, 1);
	assert_int_equal(rd(f->r, R_QUEUE_READY), 1);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
	assert_false(rig_needs_reset(f->r));
}

static void driver_ok_twice(void **state)
{
	struct blk_fixture *f = *state;

	rig_boot(f->r, BLK_FEATURES, 16);
	blk_run(f, VIRTIO_BLK_T_IN, 0, 512);
	rig_driver_ok(f->r);
	assert_int_equal(f->r->v->queues[0].next_avail, 1);
	assert_int_equal(blk_run(f, VIRTIO_BLK_T_IN, 0, 512), VIRTIO_BLK_S_OK);
}

static void notify_of_a_queue_that_does_not_exist(void **state)
{
	static const uint32_t queues[] = { 1, 2, 64, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(queues); i++)
		wr(rig_of(state), R_QUEUE_NOTIFY, queues[i]);
	assert_alive(state);
}

static void acknowledge_of_nothing(void **state)
{
	wr(rig_of(state), R_INTERRUPT_ACK, 0xffffffff);
	wr(rig_of(state), R_INTERRUPT_ACK, 0);
	assert_int_equal(rd(rig_of(state), R_INTERRUPT_STATUS), 0);
}

static void interrupts_are_never_acknowledged(void **state)
{
	struct blk_fixture *f = *state;
	int i;

	rig_boot(f->r, F_VERSION_1, 16);
	for (i = 0; i < 300; i++)
		assert_int_equal(blk_run(f, VIRTIO_BLK_T_GET_ID, 0, 20), VIRTIO_BLK_S_OK);
	assert_int_equal(f->r->edges, 1);
}

/* CPU time of the device's thread while nothing should happen. */
static uint64_t busy_ns(void)
{
	const struct timespec wait = { .tv_nsec = 50000000 };
	struct rusage a, b;

	getrusage(RUSAGE_SELF, &a);
	nanosleep(&wait, NULL);
	getrusage(RUSAGE_SELF, &b);
	return (uint64_t)(b.ru_utime.tv_sec - a.ru_utime.tv_sec + b.ru_stime.tv_sec -
			  a.ru_stime.tv_sec) * 1000000000ull +
	       (uint64_t)(b.ru_utime.tv_usec - a.ru_utime.tv_usec + b.ru_stime.tv_usec -
			  a.ru_stime.tv_usec) * 1000ull;
}

static void kick_storm_before_driver_ok(void **state)
{
	int i;

	for (i = 0; i < 1000; i++)
		rig_kick(rig_of(state), 0);
	assert_true(busy_ns() < 25000000);
	assert_alive(state);
}

static void kick_storm_after_reset(void **state)
{
	int i;

	assert_alive(state);
	rig_reset(rig_of(state));
	for (i = 0; i < 1000; i++)
		rig_kick(rig_of(state), 0);
	assert_true(busy_ns() < 25000000);
	assert_alive(state);
}

static void kick_storm_on_an_empty_queue(void **state)
{
	int i;

	rig_boot(rig_of(state), BLK_FEATURES, 16);
	for (i = 0; i < 1000; i++)
		rig_kick(rig_of(state), 0);
	rig_settle(rig_of(state));
	assert_true(busy_ns() < 25000000);
	assert_int_equal(rig_used_idx(rig_of(state), 0), 0);
}

static void kick_storm_on_a_broken_queue(void **state)
{
	struct rig *r = rig_of(state);
	int i;

	rig_boot(r, BLK_FEATURES, 16);
	rig_avail_idx(r, 0, 1000);
	for (i = 0; i < 1000; i++)
		rig_kick(r, 0);
	rig_settle(r);
	assert_true(rig_needs_reset(r));
	assert_true(busy_ns() < 25000000);
	assert_alive(state);
}

static void reset_storm(void **state)
{
	struct rig *r = rig_of(state);
	int i;

	for (i = 0; i < 200; i++) {
		rig_boot(r, BLK_FEATURES, 16);
		rig_kick(r, 0);
		rig_reset(r);
		rig_reset(r);
	}
	assert_alive(state);
}

static void writes_after_it_needs_a_reset(void **state)
{
	struct rig *r = rig_of(state);

	rig_negotiate(r, F_VERSION_1);
	rig_driver_ok(r);
	wr(r, R_QUEUE_NUM, 8);
	wr(r, R_QUEUE_READY, 1);
	wr(r, R_STATUS, rd(r, R_STATUS));
	assert_true(rig_needs_reset(r));
	wr(r, R_STATUS, rd(r, R_STATUS) | S_FAILED);
	assert_int_equal(rd(r, R_STATUS), 15 | S_NEEDS_RESET | S_FAILED);
	assert_alive(state);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, blk_teardown)
static const struct CMUnitTest tests[] = {
	T(registers_read_with_a_wrong_width),
	T(registers_written_with_a_wrong_width),
	T(every_offset_is_written_and_read),
	T(reserved_registers_read_zero),
	T(write_only_registers_read_zero),
	T(read_only_registers_are_written),
	T(configuration_space_is_read_everywhere),
	T(configuration_space_is_written_everywhere),
	T(configuration_space_offset_wraps),
	T(every_status_from_every_state),
	T(status_with_bits_above_the_byte),
	T(features_that_were_not_offered),
	T(features_without_version_1),
	T(features_are_changed_after_features_ok),
	T(features_of_a_word_that_does_not_exist),
	T(driver_ok_without_a_queue),
	T(queue_in_the_hole),
	T(queue_unaligned),
	T(queue_at_the_top_of_the_address_space),
	T(queue_on_a_device),
	T(queue_sizes_that_are_wrong),
	T(a_wrong_size_does_not_replace_a_right_one),
	T(queue_ready_with_another_value),
	T(queue_registers_before_features_ok),
	T(queue_select_out_of_range),
	T(queue_size_is_changed_when_ready),
	T(queue_is_changed_after_activation),
	T(driver_ok_twice),
	T(notify_of_a_queue_that_does_not_exist),
	T(acknowledge_of_nothing),
	T(interrupts_are_never_acknowledged),
	T(kick_storm_before_driver_ok),
	T(kick_storm_after_reset),
	T(kick_storm_on_an_empty_queue),
	T(kick_storm_on_a_broken_queue),
	T(reset_storm),
	T(writes_after_it_needs_a_reset),
};

const struct hostile_group hostile_mmio = { "hostile mmio", tests, ARRAY_SIZE(tests) };
