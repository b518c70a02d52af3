/*
 * The rig as a fixture of cmocka, with fake_arch; apart from the rig itself,
 * which tests of an architecture use too.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fake_arch.h"
#include "fake_device.h"
#include "vm_rig.h"
#include "vmm/base/lock.h"

int vm_rig_setup(void **state)
{
	struct vm_rig *r = calloc(1, sizeof(*r));

	if (!r)
		return -1;
	vm_rig_init(r, VM_RIG_VCPUS, 16);
	fake_arch_reset();
	fake_arch.build = fake_devices_build;
	fake_devices_destroyed = 0;
	*state = r;
	return 0;
}

int vm_rig_teardown(void **state)
{
	struct vm_rig *r = *state;

	if (!r->ended)
		vm_rig_end(r);
	vm_rig_fini(r);
	fake_arch_reset();
	free(r);
	if (fake_kvm_mismatches())
		fprintf(stderr, "fake KVM: %s\n", fake_kvm_mismatch());
	return fake_kvm_open_objects() || lock_order_violations() || fake_kvm_mismatches() ? -1 : 0;
}
