/*
 * A VM on the fake KVM with an event loop, as main.c has it, for tests of the
 * core: each call runs the loop until it is answered. Link with fake_arch or
 * with an architecture.
 */
#ifndef LULL_VM_RIG_H
#define LULL_VM_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "fake_kvm.h"
#include "vmm/event_loop.h"
#include "vmm/metrics.h"
#include "vmm/vm.h"

struct vm_rig {
	struct event_loop *loop;
	struct metrics *metrics;
	struct vm *vm;
	struct device_classes classes;
	unsigned answers;  /* so far */
	int code;          /* of the last answer */
	struct error err;  /* of the last failure */
	bool ended;
	unsigned backends_open; /* of the fake block and net classes */
	int open_code;          /* what their open returns next */
};

/* Resets the fake KVM; `vcpus` vCPUs and `mem_mib` of RAM. */
void vm_rig_init(struct vm_rig *r, uint32_t vcpus, uint64_t mem_mib);
void vm_rig_fini(struct vm_rig *r);

/*
 * For cmocka: *state is a rig of VM_RIG_VCPUS vCPUs whose architecture is
 * fake_arch with the fake devices. The tear-down ends the VM and fails if
 * anything was left open, or locks were taken out of order, or a script found
 * other than it expected.
 */
#define VM_RIG_VCPUS 4
int vm_rig_setup(void **state);
int vm_rig_teardown(void **state);

/* Exits of all vCPUs so far. */
uint64_t vm_rig_exits(const struct vm_rig *r);

/* Each gives the code of the answer. */
int vm_rig_start(struct vm_rig *r);
int vm_rig_pause(struct vm_rig *r);
int vm_rig_resume(struct vm_rig *r);
/* Asks for the end and waits for it; the reason that the VM ended for. */
enum vm_end_reason vm_rig_end(struct vm_rig *r);
/* Waits for the guest to end it. */
enum vm_end_reason vm_rig_wait_end(struct vm_rig *r);

/* As a client's call-back: counts the answer and stops the loop. */
void vm_rig_done(void *arg, int code, const struct error *err);
/* Runs the loop until `answers` have come. */
void vm_rig_run_until(struct vm_rig *r, unsigned answers);
/* Runs the loop for a while. */
void vm_rig_run_for(struct vm_rig *r, unsigned ms);

/* Descriptors of this process that are open now. */
unsigned vm_rig_open_fds(void);

#endif
