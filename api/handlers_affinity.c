/*
 * Handlers of affinity: which CPUs of the host the threads of a VM run on.
 *
 * Threads: main. Locks: none. Not here: what a name means and when it is applied
 * (vmm/vm_cpus).
 */
#include "api/handlers.h"

#include <errno.h>

#include "api/respond.h"
#include "api/router.h"
#include "api/schema.h"
#include "vmm/control.h"

static void respond_cpus(struct api_call *call, const cpu_set_t *cpus)
{
	struct buf body;

	buf_init(&body, LIMIT_API_REPLY);
	buf_printf(&body, "{\"cpus\":");
	fields_print_cpus(cpus, &body);
	buf_append(&body, "}", 1);
	respond_json(call, &body);
	buf_fini(&body);
}

/* Before the start any vCPU that there may be; false if the call has been answered. */
static bool vcpu_in_path(struct api_call *call, size_t *ret)
{
	struct vm *vm = call->api->vm;
	struct control_vm_info info;

	control_get_info(vm, &info);
	if (handle_index(call, info.phase & PHASES_BEFORE ? LIMIT_VCPUS : control_vcpu_count(vm),
			 ret) == 0)
		return true;
	respond_no_route(call, call->target, NULL);
	return false;
}

void handle_v1_get_vcpu_affinity(struct api_call *call)
{
	size_t index;

	if (vcpu_in_path(call, &index))
		respond_cpus(call, control_vcpu_affinity(call->api->vm, (uint32_t)index));
}

void handle_v1_put_vcpu_affinity(struct api_call *call)
{
	const struct affinity_params *p = call->params;
	struct error err;
	size_t index;

	if (vcpu_in_path(call, &index))
		handle_done(call, control_put_vcpu_affinity(call->api->vm, (uint32_t)index,
							    &p->cpus, &err), &err);
}

void handle_v1_get_device_affinity(struct api_call *call)
{
	const cpu_set_t *cpus;
	struct error err;

	if (control_device_affinity(call->api->vm, call->id, &cpus, &err) < 0)
		respond_error(call, &err);
	else
		respond_cpus(call, cpus);
}

void handle_v1_put_device_affinity(struct api_call *call)
{
	const struct affinity_params *p = call->params;
	struct error err;

	handle_done(call, control_put_device_affinity(call->api->vm, call->id, &p->cpus, &err),
		    &err);
}
