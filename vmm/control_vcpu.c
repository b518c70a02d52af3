/*
 * What clients may ask about vCPUs. Threads: main; registers are read on the
 * vCPU's own thread, which answers by a posted call. Locks: none.
 */
#include "vmm/control.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "vmm/arch.h"
#include "vmm/event_loop.h"
#include "vmm/vcpu.h"
#include "vmm/vcpu_work.h"
#include "vmm/vm.h"
#include "vmm/vm_cpus.h"

size_t control_vcpu_count(const struct vm *vm)
{
	return vm->vcpu_count;
}

static const char *vcpu_state_name(const struct vcpu *v)
{
	static const char *const names[] = {
		[VCPU_CREATED] = "created",
		[VCPU_RUNNING] = "running",
		[VCPU_PARKED] = "paused",
		[VCPU_STOPPED] = "stopped",
	};

	return names[atomic_load_explicit(&v->state, memory_order_acquire)];
}

int control_get_vcpu(const struct vm *vm, size_t index, struct control_vcpu_info *ret)
{
	const struct vcpu *v;
	uint32_t reason;

	if (index >= vm->vcpu_count)
		return -ENOENT;
	v = vm->vcpus[index];
	*ret = (struct control_vcpu_info){
		.index = v->index,
		.tid = atomic_load_explicit(&v->tid, memory_order_acquire),
		.state = vcpu_state_name(v),
		.exits = metric_read(&v->interrupted),
		.affinity = vm_cpus_of_vcpu(vm, v->index),
	};
	for (reason = 0; reason < VCPU_EXIT_REASONS; reason++)
		ret->exits += vcpu_exits(v, reason);
	return 0;
}

void control_vcpu_exits(const struct vm *vm, size_t index,
			void (*fn)(void *arg, const char *reason, uint64_t count), void *arg)
{
	const struct vcpu *v;
	uint64_t others = 0;
	uint32_t reason;

	if (index >= vm->vcpu_count)
		return;
	v = vm->vcpus[index];
	for (reason = 0; reason < VCPU_EXIT_REASONS; reason++) {
		uint64_t count = vcpu_exits(v, reason);
		const char *name = vcpu_exit_name(reason);

		if (!name)
			others += count;
		else if (count)
			fn(arg, name, count);
	}
	if (others)
		fn(arg, "other", others);
	if (metric_read(&v->interrupted))
		fn(arg, "interrupted", metric_read(&v->interrupted));
}

/* ---- registers ---------------------------------------------------------------------------- */

struct description {
	struct vcpu_job job;
	struct event_post answer;
	control_text_fn done;
	void *arg;
	char text[512];
};

static void described(void *arg)
{
	struct description *d = arg;

	d->done(d->arg, 0, d->text);
	free(d);
}

/* A vCPU that leaves does this too, before it says so: main is answered before the end. */
static void describe(struct vcpu *v, void *arg)
{
	struct description *d = arg;

	arch_vcpu_describe(v, d->text, sizeof(d->text));
	event_loop_post_node(v->vm->loop, &d->answer, described, d);
}

void control_describe_vcpu(struct vm *vm, size_t index, control_text_fn done, void *arg)
{
	struct description *d;
	int ret;

	if (index >= vm->vcpu_count) {
		done(arg, -ENOENT, NULL);
		return;
	}
	d = calloc(1, sizeof(*d));
	if (!d) {
		done(arg, -ENOMEM, NULL);
		return;
	}
	d->done = done;
	d->arg = arg;
	ret = vcpu_run_async(vm->vcpus[index], &d->job, describe, d);
	if (ret == 0)
		return;
	free(d);
	done(arg, ret, NULL);
}
