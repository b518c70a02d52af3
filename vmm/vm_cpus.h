/*
 * The CPUs of a VM between what was configured, what the host has and what the
 * guest is told. Main thread only.
 */
#ifndef LULL_VM_CPUS_H
#define LULL_VM_CPUS_H

#include "vmm/config.h"
#include "vmm/topology.h"

struct vm;

/* Whether the two agree; -EINVAL with the field named. */
int vm_cpus_check(struct vm *vm, const struct topology_config *c, const struct machine_config *m,
		  struct error *err);
/* The topology that a start would make now. */
void vm_cpus_preview(struct vm *vm, struct topology *ret);
/* Makes vm->topology of what is configured; a step of the start. */
int vm_cpus_make(struct vm *vm, struct error *err);

#endif
