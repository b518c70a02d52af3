/*
 * Changes of the buses while vCPUs run.
 */
#ifndef LULL_VM_BUS_H
#define LULL_VM_BUS_H

#include "vmm/bus.h"
#include "vmm/event_loop.h"
#include "vmm/vcpu_work.h"

struct vm;

/* Lies in the owner's struct until it is done. */
struct vm_bus_change {
	struct vm_safepoint safepoint;
	struct event_post post;
	struct bus_map *replaced;
	event_fn done;
	void *arg;
};

/*
 * Main thread, after bus_add() or bus_remove() on vm->bus: every access that
 * begins from then on finds the new maps. `done(arg)` is called on the main
 * thread when no access is left that may have found the old ones, so that what
 * was removed may be freed. NULL if nobody needs to know.
 */
void vm_bus_changed(struct vm *vm, struct vm_bus_change *c, event_fn done, void *arg);

#endif
