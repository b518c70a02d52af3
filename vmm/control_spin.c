/*
 * What clients may ask about the spin policy. Threads: main. Locks: none.
 */
#include "vmm/control.h"

#include <errno.h>

#include "vmm/kvm_stats.h"
#include "vmm/spin_observe.h"
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

void control_check_host(const struct vm *vm, struct spin_checks *ret)
{
	spin_check_host(vm, ret);
}

int control_vcpu_sample(struct vm *vm, size_t index, struct spin_sample *ret)
{
	if (index >= vm->vcpu_count)
		return -ENOENT;
	spin_sample_take(vm, (uint32_t)index, ret);
	return 0;
}

static void tell_stats(const struct kvm_stats *s, control_stat_fn fn, void *arg)
{
	uint32_t i;

	for (i = 0; i < s->count; i++)
		fn(arg, s->stats[i].name, &s->values[s->stats[i].first], s->stats[i].count);
}

void control_vcpu_stats(const struct vm *vm, size_t index, control_stat_fn fn, void *arg)
{
	if (index < vm->vcpu_count)
		tell_stats(&vm->observer.vcpus[index], fn, arg);
}

void control_vm_stats(struct vm *vm, control_stat_fn fn, void *arg)
{
	if (kvm_stats_read(&vm->observer.vm) == 0)
		tell_stats(&vm->observer.vm, fn, arg);
}
