/*
 * The CPUs of a VM between what was configured, what the host has and what the
 * guest is told. Main thread only.
 */
#ifndef LULL_VM_CPUS_H
#define LULL_VM_CPUS_H

#include "vmm/config.h"
#include "vmm/topology.h"

struct device;
struct vm;

/* Whether the two agree; -EINVAL with the field named. */
int vm_cpus_check(struct vm *vm, const struct topology_config *c, const struct machine_config *m,
		  struct error *err);
/* The topology that a start would make now. */
void vm_cpus_preview(struct vm *vm, struct topology *ret);
/* Makes vm->topology of what is configured; a step of the start. */
int vm_cpus_make(struct vm *vm, struct error *err);

/*
 * Affinity. What is configured holds it, in any phase; once threads are there, a
 * change is made to the thread as well, or not at all. Before that devices that do
 * not exist, or names that fit two, are not noticed: they fail the start.
 * -EINVAL with the field `cpus`; -ENODEV, -EEXIST for a device's name that fits none
 * or two, -ENOTSUP if it has no thread.
 */
int vm_cpus_pin_vcpu(struct vm *vm, uint32_t index, const cpu_set_t *cpus, struct error *err);
int vm_cpus_pin_device(struct vm *vm, const char *name, const cpu_set_t *cpus,
		       struct error *err);
/* All that is configured; a step of the start, threads wait. */
int vm_cpus_pin_all(struct vm *vm, struct error *err);
/* What was asked for; NULL if nothing was. */
const cpu_set_t *vm_cpus_of_vcpu(const struct vm *vm, uint32_t index);
const cpu_set_t *vm_cpus_of_device(const struct vm *vm, const struct device *d);
/* By a name as clients give it. */
int vm_cpus_of_named(const struct vm *vm, const char *name, const cpu_set_t **ret,
		     struct error *err);

#endif
