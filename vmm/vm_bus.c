/*
 * Changes of the buses while vCPUs run. Threads: asked for on the main thread,
 * finished on whichever thread runs the safepoint. Locks: none.
 */
#include "vmm/vm_bus.h"

#include "vmm/vm.h"

/* All vCPUs are outside their exits. */
static void forget_replaced(struct vm *vm, void *arg)
{
	struct vm_bus_change *c = arg;

	bus_free_maps(c->replaced);
	if (c->done)
		event_loop_post_node(vm->loop, &c->post, c->done, c->arg);
}

void vm_bus_changed(struct vm *vm, struct vm_bus_change *c, event_fn done, void *arg)
{
	*c = (struct vm_bus_change){
		.replaced = bus_take_replaced(&vm->bus),
		.done = done,
		.arg = arg,
	};
	/* The way to the safepoint also undoes what bus_add() and bus_remove() poisoned. */
	vm_safepoint_async(vm, &c->safepoint, forget_replaced, c);
}
