/* The register page, as a well-behaved driver sees it. */
#include "tests/devices/virtio/blk_fixture.h"

#include "devices/virtio/mmio.h"
#include "vmm/base/fd.h"

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

static void identity_registers(void **state)
{
	struct rig *r = rig_of(state);

	assert_int_equal(rd(r, R_MAGIC), 0x74726976);
	assert_int_equal(rd(r, R_VERSION), 2);
	assert_int_equal(rd(r, R_DEVICE_ID), 2);
	assert_int_not_equal(rd(r, R_VENDOR_ID), 0);
}

static void features_are_read_in_two_words(void **state)
{
	struct rig *r = rig_of(state);

	wr(r, R_DEVICE_FEATURES_SEL, 1);
	assert_int_equal(rd(r, R_DEVICE_FEATURES), 1);
	wr(r, R_DEVICE_FEATURES_SEL, 0);
	assert_true(rd(r, R_DEVICE_FEATURES) & F_EVENT_IDX);
	assert_true(rd(r, R_DEVICE_FEATURES) & (1u << VIRTIO_BLK_F_FLUSH));
	wr(r, R_DEVICE_FEATURES_SEL, 2);
	assert_int_equal(rd(r, R_DEVICE_FEATURES), 0);
}

static void the_status_is_walked_step_by_step(void **state)
{
	struct rig *r = rig_of(state);

	wr(r, R_STATUS, 1);
	assert_int_equal(rd(r, R_STATUS), 1);
	wr(r, R_STATUS, 3);
	assert_int_equal(rd(r, R_STATUS), 3);
	assert_true(rig_negotiate(r, F_VERSION_1));
	rig_queue(r, 0, 8);
	wr(r, R_STATUS, 15);
	assert_int_equal(rd(r, R_STATUS), 15);
	assert_string_equal(r->d->ops->status(r->d), "active");
}

/* Some firmware writes the first two bits at once. */
static void acknowledge_and_driver_may_come_together(void **state)
{
	struct rig *r = rig_of(state);

	wr(r, R_STATUS, 3);
	assert_int_equal(rd(r, R_STATUS), 3);
}

static void the_queue_of_a_device_has_a_maximum(void **state)
{
	struct rig *r = rig_of(state);

	wr(r, R_QUEUE_SEL, 0);
	assert_int_equal(rd(r, R_QUEUE_NUM_MAX), 256);
	assert_int_equal(rd(r, R_QUEUE_READY), 0);
}

static void a_queue_can_be_taken_back_before_driver_ok(void **state)
{
	struct rig *r = rig_of(state);

	rig_negotiate(r, F_VERSION_1);
	rig_queue(r, 0, 8);
	assert_int_equal(rd(r, R_QUEUE_READY), 1);
	wr(r, R_QUEUE_READY, 0);
	assert_int_equal(rd(r, R_QUEUE_READY), 0);
	rig_queue(r, 0, 16);
	assert_int_equal(rd(r, R_QUEUE_READY), 1);
}

static void capacity_is_in_configuration_space(void **state)
{
	struct rig *r = rig_of(state);

	assert_int_equal(rig_read(r, R_CONFIG, 8), DISK_SECTORS);
	assert_int_equal(rig_read(r, R_CONFIG, 4), DISK_SECTORS);
	assert_int_equal(rig_read(r, R_CONFIG + 4, 4), 0);
	assert_int_equal(rig_read(r, R_CONFIG, 1), DISK_SECTORS & 0xff);
	assert_int_equal(rig_read(r, R_CONFIG + 1, 2), (DISK_SECTORS >> 8) & 0xffff);
}

static void there_are_no_shared_memory_regions(void **state)
{
	struct rig *r = rig_of(state);

	assert_int_equal(rd(r, R_SHM_LEN_LOW), 0xffffffff);
	assert_int_equal(rd(r, R_SHM_LEN_LOW + 4), 0xffffffff);
}

static void an_interrupt_is_pending_until_it_is_acknowledged(void **state)
{
	struct blk_fixture *f = *state;

	rig_boot(f->r, F_VERSION_1, 16);
	blk_run(f, VIRTIO_BLK_T_IN, 0, 512);
	assert_int_equal(rd(f->r, R_INTERRUPT_STATUS), 1);
	wr(f->r, R_INTERRUPT_ACK, 2);
	assert_int_equal(rd(f->r, R_INTERRUPT_STATUS), 1);
	wr(f->r, R_INTERRUPT_ACK, 1);
	assert_int_equal(rd(f->r, R_INTERRUPT_STATUS), 0);
}

/* Only the first edge tells anything while a reason is pending. */
static void one_edge_per_acknowledge(void **state)
{
	struct blk_fixture *f = *state;

	rig_boot(f->r, F_VERSION_1, 16);
	blk_run(f, VIRTIO_BLK_T_IN, 0, 512);
	blk_run(f, VIRTIO_BLK_T_IN, 0, 512);
	assert_int_equal(f->r->edges, 1);
	wr(f->r, R_INTERRUPT_ACK, 1);
	blk_run(f, VIRTIO_BLK_T_IN, 0, 512);
	assert_int_equal(f->r->edges, 2);
}

/* Where the kernel does not catch the write, the register is the doorbell. */
static void queue_notify_kicks(void **state)
{
	struct blk_fixture *f = *state;

	rig_boot(f->r, F_VERSION_1, 16);
	blk_chain(f, VIRTIO_BLK_T_IN, 0, 512, D_WRITE);
	rig_avail(f->r, 0, 0);
	wr(f->r, R_QUEUE_NOTIFY, 0);
	rig_settle(f->r);
	assert_int_equal(blk_status(f), VIRTIO_BLK_S_OK);
}

static void reset_clears_everything_the_driver_wrote(void **state)
{
	struct rig *r = rig_of(state);

	rig_boot(r, F_VERSION_1, 16);
	wr(r, R_QUEUE_SEL, 0);
	rig_reset(r);
	assert_int_equal(rd(r, R_QUEUE_READY), 0);
	assert_int_equal(rd(r, R_INTERRUPT_STATUS), 0);
	assert_string_equal(r->d->ops->status(r->d), "inactive");
	assert_false(rig_negotiate(r, 0));
}

static void a_failed_driver_can_start_again(void **state)
{
	struct rig *r = rig_of(state);

	wr(r, R_STATUS, 1);
	wr(r, R_STATUS, 1 | S_FAILED);
	assert_int_equal(rd(r, R_STATUS), 1 | S_FAILED);
	wr(r, R_STATUS, 3 | S_FAILED);
	assert_int_equal(rd(r, R_STATUS), 1 | S_FAILED);
	rig_reset(r);
	assert_true(rig_negotiate(r, F_VERSION_1));
}

static int refuse(void *vm, enum bus_kind kind, uint64_t address, unsigned width, uint64_t value,
		  int fd, bool on)
{
	return -ENOSPC;
}

static void attaching_fails_whole_without_doorbells(void **state)
{
	static const struct doorbell_ops ops = { .assign = refuse };
	struct rig *r = rig_of(state);
	struct doorbells none = { .ops = &ops };
	struct device_env env = r->env;
	struct error err;

	doorbell_fini(&r->v->doorbells[0]);
	env.doorbells = &none;
	assert_int_equal(virtio_mmio_attach(r->d, &env, 0xd0000000, &r->irq, &err), -ENOSPC);
	assert_int_equal(r->v->doorbells[0].fd, -EBADF);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, blk_teardown)
	const struct CMUnitTest tests[] = {
		T(identity_registers),
		T(features_are_read_in_two_words),
		T(the_status_is_walked_step_by_step),
		T(acknowledge_and_driver_may_come_together),
		T(the_queue_of_a_device_has_a_maximum),
		T(a_queue_can_be_taken_back_before_driver_ok),
		T(capacity_is_in_configuration_space),
		T(there_are_no_shared_memory_regions),
		T(an_interrupt_is_pending_until_it_is_acknowledged),
		T(one_edge_per_acknowledge),
		T(queue_notify_kicks),
		T(reset_clears_everything_the_driver_wrote),
		T(a_failed_driver_can_start_again),
		T(attaching_fails_whole_without_doorbells),
	};

	return cmocka_run_group_tests_name("virtio mmio", tests, NULL, NULL);
}
