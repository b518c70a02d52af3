/*
 * Buses that change while vCPUs run, and writes that are carried out late: what
 * a vCPU's next access finds, and when what was removed may go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "fake_arch.h"
#include "vm_rig.h"
#include "vmm/vcpu.h"
#include "vmm/vm_bus.h"

#define OFF FAKE_OUT(FAKE_POWER_PORT, 1, FAKE_POWER_OFF)
#define INDEX 0x700 /* of the test's device: writes to it are coalesced */
#define DATA 0x701
#define MOVED 0x710

static struct {
	_Atomic uint64_t index;
	_Atomic uint64_t index_writes;
	_Atomic uint64_t reads;
	_Atomic uint64_t written[256]; /* by the index they were written at */
	_Atomic bool is_gone;          /* from here on nobody may read or write */
	_Atomic bool used_when_gone;
	bool coalesce;
} port;

static uint64_t port_read(void *device, uint64_t offset, unsigned width)
{
	if (atomic_load(&port.is_gone))
		atomic_store(&port.used_when_gone, true);
	atomic_fetch_add(&port.reads, 1);
	return atomic_load(&port.index);
}

static enum bus_action port_write(void *device, uint64_t offset, unsigned width, uint64_t value)
{
	if (offset == 0) {
		atomic_store(&port.index, value);
		atomic_fetch_add(&port.index_writes, 1);
	} else {
		atomic_fetch_add(&port.written[atomic_load(&port.index) & 255], value);
	}
	return BUS_DONE;
}

static const struct bus_ops port_ops = { port_read, port_write };

static int build(struct vm *vm, struct error *err)
{
	struct bus_region region = { "port", INDEX, 2, 1, 1, &port_ops, NULL };
	int ret = bus_add(&vm->bus, BUS_PIO, &region, err);

	if (ret == 0 && port.coalesce)
		ret = kvm_coalesced_add(&vm->coalesced, BUS_PIO, INDEX, 1);
	return ret;
}

static int setup(void **state)
{
	if (vm_rig_setup(state) < 0)
		return -1;
	memset(&port, 0, sizeof(port));
	port.coalesce = true;
	fake_arch.build = build;
	return 0;
}

static uint64_t exits_of_io(const struct vm_rig *r, unsigned vcpu)
{
	return vcpu_exits(r->vm->vcpus[vcpu], KVM_EXIT_IO);
}

static void run(struct vm_rig *r, uint32_t vcpus)
{
	r->vm->config.machine.vcpu_count = vcpus;
	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(vm_rig_wait_end(r), VM_END_GUEST_POWEROFF);
}

static void a_coalesced_write_is_no_exit_and_done_before_the_next(void **state)
{
	static const struct fake_step steps[] = {
		FAKE_OUT(INDEX, 1, 0x11), FAKE_IN_EXPECT(DATA, 1, 0xff, 0x11),
		FAKE_OUT(INDEX, 1, 0x22), FAKE_IN_EXPECT(DATA, 1, 0xff, 0x22),
		FAKE_OUT(INDEX, 1, 0x33), FAKE_OUT(DATA, 1, 7), OFF,
	};
	struct vm_rig *r = *state;

	FAKE_SCRIPT(0, steps);
	run(r, 1);
	assert_int_equal(exits_of_io(r, 0), 4);
	assert_int_equal(port.index_writes, 3);
	assert_int_equal(port.written[0x33], 7);
}

static void without_the_ring_every_write_is_an_exit(void **state)
{
	static const struct fake_step steps[] = {
		FAKE_OUT(INDEX, 1, 0x11), FAKE_IN_EXPECT(DATA, 1, 0xff, 0x11), OFF,
	};
	struct vm_rig *r = *state;

	fake_kvm_set_cap(KVM_CAP_COALESCED_PIO, 0);
	FAKE_SCRIPT(0, steps);
	run(r, 1);
	fake_kvm_set_cap(KVM_CAP_COALESCED_PIO, 1);
	assert_int_equal(exits_of_io(r, 0), 3);
	assert_int_equal(port.index_writes, 1);
}

/* More than the ring holds: the one that finds it full is an exit, which drains it first. */
static void a_full_ring_loses_no_write_and_keeps_the_order(void **state)
{
	static const struct fake_step steps[] = {
		FAKE_OUT(INDEX, 1, 5), FAKE_LOOP(0, 999), FAKE_OUT(INDEX, 1, 6),
		FAKE_IN_EXPECT(DATA, 1, 0xff, 6), OFF,
	};
	struct vm_rig *r = *state;
	struct fake_vcpu_counts counts;

	FAKE_SCRIPT(0, steps);
	run(r, 1);
	fake_kvm_get_counts(0, &counts);
	assert_true(counts.ring_full > 0);
	assert_int_equal(port.index_writes, 1001);
	assert_int_equal(exits_of_io(r, 0), counts.ring_full + 2);
}

/* When a pause is answered nothing waits in the ring. */
static void a_pause_drains_the_ring(void **state)
{
	static const struct fake_step steps[] = { FAKE_OUT(INDEX, 1, 9), FAKE_WAIT() };
	struct vm_rig *r = *state;
	struct fake_vcpu_counts counts;

	FAKE_SCRIPT(0, steps);
	r->vm->config.machine.vcpu_count = 1;
	assert_int_equal(vm_rig_start(r), 0);
	do {
		vm_rig_run_for(r, 1);
		fake_kvm_get_counts(0, &counts);
	} while (!counts.coalesced);
	assert_int_equal(port.index_writes, 0);
	assert_int_equal(vm_rig_pause(r), 0);
	assert_int_equal(port.index_writes, 1);
	assert_int_equal(port.index, 9);
}

/* Each vCPU writes its own index and data under a guest's lock, played by turns. */
static void writes_of_several_vcpus_are_all_carried_out(void **state)
{
	static const struct fake_step noise[] = { FAKE_OUT(INDEX, 1, 1), FAKE_IN(DATA, 1),
						  FAKE_LOOP(0, 5000), FAKE_WAIT() };
	static const struct fake_step last[] = {
		FAKE_OUT(INDEX, 1, 1), FAKE_IN_EXPECT(DATA, 1, 0xff, 1), FAKE_LOOP(0, 5000), OFF
	};
	struct vm_rig *r = *state;

	fake_kvm_set_default_script(noise, 4);
	FAKE_SCRIPT(0, last);
	run(r, VM_RIG_VCPUS);
	assert_true(port.index_writes >= 5001);
}

static void on_removed(void *arg)
{
	struct vm_rig *r = arg;

	atomic_store(&port.is_gone, true);
	vm_rig_done(r, 0, NULL);
}

static const struct fake_step polling[] = { FAKE_IN(DATA, 1), FAKE_LOOP(0, 0) };

static void start_polling(struct vm_rig *r)
{
	fake_kvm_set_default_script(polling, 2);
	assert_int_equal(vm_rig_start(r), 0);
	while (atomic_load(&port.reads) < 1000)
		vm_rig_run_for(r, 1);
}

static void a_removed_region_is_not_used_once_the_removal_is_done(void **state)
{
	struct vm_rig *r = *state;
	struct vm_bus_change change;
	struct error err;

	start_polling(r);
	assert_int_equal(bus_remove(&r->vm->bus, BUS_PIO, INDEX, &err), 0);
	vm_bus_changed(r->vm, &change, on_removed, r);
	vm_rig_run_until(r, r->answers + 1);
	vm_rig_run_for(r, 30);
	assert_true(atomic_load(&port.is_gone));
	assert_false(atomic_load(&port.used_when_gone));
}

static void a_region_can_come_and_go_while_vcpus_run(void **state)
{
	const struct bus_region moved = { "moved", MOVED, 2, 1, 1, &port_ops, NULL };
	struct vm_rig *r = *state;
	struct vm_bus_change change;
	struct error err;
	unsigned i;

	start_polling(r);
	for (i = 0; i < 200; i++) {
		assert_int_equal(bus_add(&r->vm->bus, BUS_PIO, &moved, &err), 0);
		vm_bus_changed(r->vm, &change, on_removed, r);
		vm_rig_run_until(r, r->answers + 1);
		atomic_store(&port.is_gone, false);
		assert_int_equal(bus_remove(&r->vm->bus, BUS_PIO, MOVED, &err), 0);
		vm_bus_changed(r->vm, &change, on_removed, r);
		vm_rig_run_until(r, r->answers + 1);
		atomic_store(&port.is_gone, false);
	}
	assert_null(bus_take_replaced(&r->vm->bus));
}

/* After a change lookups fill their tables again: no vCPU stays on the slow path. */
static void tables_are_used_again_after_a_change(void **state)
{
	struct vm_rig *r = *state;
	const struct bus_region moved = { "moved", MOVED, 2, 1, 1, &port_ops, NULL };
	struct vm_bus_change change;
	struct error err;
	unsigned i;

	start_polling(r);
	assert_int_equal(bus_add(&r->vm->bus, BUS_PIO, &moved, &err), 0);
	vm_bus_changed(r->vm, &change, on_removed, r);
	vm_rig_run_until(r, r->answers + 1);
	assert_int_equal(vm_rig_pause(r), 0);
	for (i = 0; i < VM_RIG_VCPUS; i++)
		assert_ptr_equal(atomic_load(&r->vm->vcpus[i]->lookup.table),
				 &r->vm->vcpus[i]->lookup.own);
}

static void a_change_of_a_paused_vm_is_done_too(void **state)
{
	struct vm_rig *r = *state;
	struct vm_bus_change change;
	struct error err;

	start_polling(r);
	assert_int_equal(vm_rig_pause(r), 0);
	assert_int_equal(bus_remove(&r->vm->bus, BUS_PIO, INDEX, &err), 0);
	vm_bus_changed(r->vm, &change, on_removed, r);
	vm_rig_run_until(r, r->answers + 1);
	assert_int_equal(vm_rig_resume(r), 0);
	vm_rig_run_for(r, 20);
	assert_false(atomic_load(&port.used_when_gone));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_RIG(name) cmocka_unit_test_setup_teardown(name, setup, vm_rig_teardown)
		WITH_RIG(a_coalesced_write_is_no_exit_and_done_before_the_next),
		WITH_RIG(without_the_ring_every_write_is_an_exit),
		WITH_RIG(a_full_ring_loses_no_write_and_keeps_the_order),
		WITH_RIG(a_pause_drains_the_ring),
		WITH_RIG(writes_of_several_vcpus_are_all_carried_out),
		WITH_RIG(a_removed_region_is_not_used_once_the_removal_is_done),
		WITH_RIG(a_region_can_come_and_go_while_vcpus_run),
		WITH_RIG(tables_are_used_again_after_a_change),
		WITH_RIG(a_change_of_a_paused_vm_is_done_too),
	};

	alarm(120);
	return cmocka_run_group_tests_name("vm_bus", tests, NULL, NULL);
}
