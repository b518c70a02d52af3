/*
 * Doorbells, over ops of the test and over the fake KVM.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fake_arch.h"
#include "vm_rig.h"
#include "vmm/base/fd.h"
#include "vmm/doorbell.h"

#define ADDRESS 0xd0000050ull

struct owner {
	unsigned assigned, taken;
	uint64_t address, value;
	unsigned width;
	int code;
};

static int assign(void *vm, enum bus_kind kind, uint64_t address, unsigned width, uint64_t value,
		  int fd, bool on)
{
	struct owner *o = vm;

	if (o->code < 0)
		return o->code;
	o->address = address;
	o->width = width;
	o->value = value;
	*(on ? &o->assigned : &o->taken) += 1;
	return 0;
}

static const struct doorbell_ops ops = { .assign = assign };

static void it_is_assigned_as_asked(void **state)
{
	struct owner o = { 0 };
	struct doorbells all = { &ops, &o };
	struct doorbell d;
	struct error err;

	assert_int_equal(doorbell_init(&d, &all, BUS_MMIO, ADDRESS, 4, 1, &err), 0);
	assert_int_equal(o.assigned, 1);
	assert_int_equal(o.address, ADDRESS);
	assert_int_equal(o.width, 4);
	assert_int_equal(o.value, 1);
	assert_true(d.fd >= 0);
	doorbell_fini(&d);
	assert_int_equal(o.taken, 1);
	assert_int_equal(d.fd, -EBADF);
}

static void a_refused_one_leaves_no_descriptor(void **state)
{
	struct owner o = { .code = -ENOSPC };
	struct doorbells all = { &ops, &o };
	struct doorbell d;
	struct error err;
	unsigned before = vm_rig_open_fds();

	assert_int_equal(doorbell_init(&d, &all, BUS_MMIO, ADDRESS, 4, 1, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "0xd0000050"));
	assert_int_equal(vm_rig_open_fds(), before);
	doorbell_fini(&d);
}

static void fini_twice_and_of_one_never_made_is_fine(void **state)
{
	struct owner o = { 0 };
	struct doorbells all = { &ops, &o };
	struct doorbell d = { 0 };
	struct error err;

	doorbell_fini(&d);
	assert_int_equal(doorbell_init(&d, &all, BUS_PIO, 0x10, 1, 0, &err), 0);
	doorbell_fini(&d);
	doorbell_fini(&d);
	assert_int_equal(o.taken, 1);
}

/* Two queues of one device share the register and differ in the value. */
static void doorbells_of_one_address_differ_by_value(void **state)
{
	struct vm_rig r;
	struct doorbell a, b, c;
	struct error err;

	vm_rig_init(&r, 1, 16);
	assert_int_equal(vm_rig_start(&r), 0);
	assert_int_equal(doorbell_init(&a, &r.vm->doorbells, BUS_MMIO, ADDRESS, 4, 0, &err), 0);
	assert_int_equal(doorbell_init(&b, &r.vm->doorbells, BUS_MMIO, ADDRESS, 4, 1, &err), 0);
	assert_int_equal(doorbell_init(&c, &r.vm->doorbells, BUS_MMIO, ADDRESS, 4, 1, &err),
			 -EEXIST);
	assert_int_equal(fake_kvm_ioeventfd_count(), 2);
	doorbell_fini(&a);
	doorbell_fini(&b);
	assert_int_equal(fake_kvm_ioeventfd_count(), 0);
	vm_rig_end(&r);
	vm_rig_fini(&r);
}

static struct doorbell bell;

static int build_bell(struct vm *vm, struct error *err)
{
	return doorbell_init(&bell, &vm->doorbells, BUS_MMIO, ADDRESS, 4, 7, err);
}

static const struct fake_step two_rings[] = {
	FAKE_MMIO_W(ADDRESS, 4, 7),
	FAKE_MMIO_W(ADDRESS, 4, 7),
	FAKE_MMIO_W(ADDRESS, 4, 8), /* another value */
	FAKE_MMIO_W(ADDRESS, 2, 7), /* another width */
	FAKE_MMIO_W(ADDRESS + 4, 4, 7),
	FAKE_OUT(FAKE_POWER_PORT, 1, FAKE_POWER_OFF),
};

static void a_matching_write_signals_without_an_exit(void **state)
{
	struct fake_vcpu_counts counts;
	struct vm_rig r;

	vm_rig_init(&r, 1, 16);
	fake_arch.build = build_bell;
	FAKE_SCRIPT(0, two_rings);
	assert_int_equal(vm_rig_start(&r), 0);
	assert_int_equal(vm_rig_wait_end(&r), VM_END_GUEST_POWEROFF);
	fake_kvm_get_counts(0, &counts);
	assert_int_equal(counts.doorbells, 2);
	assert_int_equal(counts.exits, 4);
	assert_int_equal(fd_eventfd_drain(bell.fd), 2);
	doorbell_fini(&bell);
	fake_arch_reset();
	vm_rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_assigned_as_asked),
		cmocka_unit_test(a_refused_one_leaves_no_descriptor),
		cmocka_unit_test(fini_twice_and_of_one_never_made_is_fine),
		cmocka_unit_test(doorbells_of_one_address_differ_by_value),
		cmocka_unit_test(a_matching_write_signals_without_an_exit),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
