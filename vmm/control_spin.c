/*
 * What clients may ask about the spin policy. Threads: main. Locks: none.
 */
#include "vmm/control.h"

#include <errno.h>

#include "vmm/kvm_stats.h"
#include "vmm/spin_observe.h"
#include "vmm/vcpu.h"
#include "vmm/vm.h"

void control_get_spin(const struct vm *vm, struct control_spin_info *ret)
{
	const struct spin *s = &vm->spin;
	uint32_t i;

	*ret = (struct control_spin_info){
		.mode = s->mode,
		.why = s->why,
		.controls = s->controls,
		.control_count = s->control_count,
		.halt_poll_ns = s->halt_poll_ns,
	};
	for (i = 0; i < vm->vcpu_count; i++) {
		ret->polls_parked += metric_read(&vm->vcpus[i]->metrics.polls_parked);
		ret->polls_changed += metric_read(&vm->vcpus[i]->metrics.polls_changed);
	}
}

void control_get_spin_controller(const struct vm *vm, struct control_spin_controller *ret)
{
	const struct spin_controller *c = &vm->controller;
	uint32_t n;

	*ret = (struct control_spin_controller){
		.class = c->state.class,
		.advice = c->advice,
		.halt_poll_ns = c->state.halt_poll_ns,
		.periods = c->periods,
		.blind = c->blind,
	};
	if (c->advice != SPIN_ADVICE_SPREAD)
		return;
	n = spin_host_cpus(ret->host_cpus, vm->vcpu_count);
	ret->host_cpu_count = n < vm->vcpu_count ? n : vm->vcpu_count;
}

const struct spin_event *control_get_spin_event(const struct vm *vm, size_t index)
{
	const struct spin_controller *c = &vm->controller;
	uint64_t kept = c->event_count < LIMIT_SPIN_EVENTS ? c->event_count : LIMIT_SPIN_EVENTS;

	if (index >= kept)
		return NULL;
	return &c->events[(c->event_count - kept + index) % LIMIT_SPIN_EVENTS];
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
