/*
 * What clients may ask about the spin policy. Threads: main. Locks: none.
 */
#include "vmm/control.h"

#include "vmm/vm.h"

void control_get_spin(const struct vm *vm, struct control_spin_info *ret)
{
	const struct spin *s = &vm->spin;

	*ret = (struct control_spin_info){
		.mode = s->mode,
		.why = s->why,
		.controls = s->controls,
		.control_count = s->control_count,
		.halt_poll_ns = s->halt_poll_ns,
	};
}
