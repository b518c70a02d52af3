/*
 * A VM of the fake KVM with nothing in it, and one vCPU that runs a script.
 */
#ifndef LULL_TESTS_KVM_FIXTURE_H
#define LULL_TESTS_KVM_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_kvm.h"
#include "vmm/kvm.h"

#define RAM_BYTES 0x10000u

struct fixture {
	struct kvm_fd kvm, vm, vcpu;
	struct kvm_run *run;
	size_t run_bytes;
	uint8_t *ram;
};

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct error err;

	fake_kvm_reset();
	f->vcpu.fd = -EBADF;
	f->ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*state = f;
	if (kvm_open(&fake_kvm_ops, &f->kvm, &err) < 0)
		return -1;
	return kvm_create_vm(f->kvm, &f->vm);
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	kvm_unmap_run(f->vcpu, f->run, f->run_bytes);
	kvm_close(&f->vcpu);
	kvm_close(&f->vm);
	kvm_close(&f->kvm);
	munmap(f->ram, RAM_BYTES);
	free(f);
	return fake_kvm_open_objects() == 0 ? 0 : -1;
}

/* One vCPU that runs `steps`. */
static inline void make_vcpu(struct fixture *f, const struct fake_step *steps, size_t count)
{
	fake_kvm_set_script(0, steps, count);
	assert_int_equal(kvm_create_vcpu(f->vm, 0, &f->vcpu), 0);
	f->run_bytes = (size_t)kvm_vcpu_mmap_size(f->kvm);
	assert_int_equal(kvm_map_run(f->vcpu, f->run_bytes, &f->run), 0);
}

#define MAKE_VCPU(f, steps) make_vcpu(f, steps, sizeof(steps) / sizeof((steps)[0]))

#define WITH_VM(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
