/*
 * The VM that benchmarks run: the x86 board with its devices over the KVM that
 * replays, as lulld makes it. Its kernel is a few bytes, which nobody executes.
 *
 * Threads: the main thread's, as vm_rig.h.
 */
#ifndef LULL_BENCH_VM_H
#define LULL_BENCH_VM_H

#include <stdint.h>

#include "vm_rig.h"

struct bench_vm {
	struct vm_rig rig;
};

/*
 * Makes it, with so many vCPUs and drives, then entropy; replay_kvm_set() may
 * follow. Ends the process if it cannot.
 */
void bench_vm_init(struct bench_vm *b, uint32_t vcpus, uint32_t drives);
void bench_vm_fini(struct bench_vm *b);

void bench_vm_start(struct bench_vm *b);
/* Runs the main loop until each vCPU has made `exits` exits. */
void bench_vm_run_each(struct bench_vm *b, uint64_t exits);
/* Runs it until all together have; returns how many they have, which may be more. */
uint64_t bench_vm_run_all(struct bench_vm *b, uint64_t exits);
void bench_vm_end(struct bench_vm *b);

#endif
