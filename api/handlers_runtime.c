/*
 * Handlers of the life of the VM. Threads: main. Locks: none.
 */
#include "api/handlers.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/respond.h"
#include "api/router.h"
#include "api/schema.h"
#include "vmm/base/log.h"
#include "vmm/base/ratelimit.h"
#include "vmm/control.h"

void handle_done(void *arg, int code, const struct error *err)
{
	struct api_call *call = arg;

	if (code < 0)
		respond_error(call, err);
	else
		respond_empty(call);
}

static const char *client_state(enum control_phase phase)
{
	switch (phase) {
	case CONTROL_NOT_STARTED:
		return "Not started";
	case CONTROL_RUNNING:
		return "Running";
	case CONTROL_PAUSED:
	case CONTROL_ENDED: /* it was started and no vCPU runs; clients know no other word */
		break;
	}
	return "Paused";
}

void handle_get_instance(struct api_call *call)
{
	const struct api_identity *identity = &call->api->identity;
	struct control_vm_info info;
	struct buf body;

	control_get_info(call->api->vm, &info);
	buf_init(&body, LIMIT_API_REPLY);
	buf_printf(&body, "{\"id\":");
	buf_append_json_string(&body, info.id);
	buf_printf(&body, ",\"state\":\"%s\",\"vmm_version\":\"%s\",\"app_name\":\"%s\"}",
		   client_state(info.phase), identity->version, identity->app_name);
	respond_json(call, &body);
	buf_fini(&body);
}

void handle_get_version(struct api_call *call)
{
	struct buf body;

	buf_init(&body, LIMIT_API_REPLY);
	buf_printf(&body, "{\"firecracker_version\":\"%s\"}", call->api->identity.version);
	respond_json(call, &body);
	buf_fini(&body);
}

static void start_done(void *arg, int code, const struct error *err)
{
	if (code < 0)
		respond_error_as(arg, "Start microvm error: ", err);
	else
		respond_empty(arg);
}

/* Each action has phases of its own, which its route cannot know. */
static bool check_action_phase(struct api_call *call, enum api_action action)
{
	unsigned phases = action == ACTION_INSTANCE_START ? PHASES_BEFORE : PHASES_AFTER;
	struct control_vm_info info;

	control_get_info(call->api->vm, &info);
	if (info.phase & phases)
		return true;
	respond_phase(call, &info);
	return false;
}

void handle_put_actions(struct api_call *call)
{
	const struct action_params *p = call->params;
	struct vm *vm = call->api->vm;
	struct error err;

	if (!check_action_phase(call, p->action_type))
		return;
	switch (p->action_type) {
	case ACTION_INSTANCE_START:
		control_start(vm, start_done, call);
		break;
	case ACTION_FLUSH_METRICS:
		handle_done(call, control_flush_metrics(vm, &err), &err);
		break;
	case ACTION_SEND_CTRL_ALT_DEL:
		handle_done(call, control_send_ctrl_alt_del(vm, &err), &err);
		break;
	}
}

static void patch_drive_done(void *arg, int code, const struct error *err)
{
	struct error full;

	if (code == 0) {
		respond_empty(arg);
		return;
	}
	error_set(&full, code, "%.400s Please verify the request arguments.", err->text);
	respond_error_as(arg, "Drive config error: Unable to patch the block device: ", &full);
}

/* A drive has no other backend to refresh, so a path must be there. */
void handle_patch_drive(struct api_call *call)
{
	const struct drive_patch *p = call->params;
	struct error err;

	if (p->rate_limiter.present) {
		error_set(&err, -EINVAL, "this version cannot change the rate_limiter of a drive "
					 "while the guest runs.");
		patch_drive_done(call, err.code, &err);
	} else if (!p->path_on_host[0]) {
		error_set(&err, -EINVAL, "Block: Running method expected different backend.");
		patch_drive_done(call, err.code, &err);
	} else {
		control_patch_drive(call->api->vm, p->drive_id, p->path_on_host,
				    patch_drive_done, call);
	}
}

void handle_patch_net(struct api_call *call)
{
	const struct net_patch *p = call->params;
	struct error err;

	if (config_find_net(control_get_config(call->api->vm), p->iface_id) < 0)
		error_set(&err, -EINVAL, "Unable to update the net device: Failed perform action "
					 "on device: Device not found");
	else if (p->rx_rate_limiter.present || p->tx_rate_limiter.present)
		error_set(&err, -EINVAL, "Unable to update the net device: this version cannot "
					 "change the rate limiters of a network interface while "
					 "the guest runs");
	else
		err.code = 0; /* nothing is asked for */
	handle_done(call, err.code, &err);
}

/* How long the VM took, for the log and the metrics. */
static void note_latency(const struct api_call *call, const char *what, metric *m)
{
	uint64_t us = (ratelimit_now() - call->started_ns) / 1000;

	atomic_store_explicit(m, us, memory_order_relaxed);
	log_always("'%s' API request took %" PRIu64 " us.", what, us);
}

static void pause_done(void *arg, int code, const struct error *err)
{
	struct api_call *call = arg;

	if (code == 0 && call->api)
		note_latency(call, "pause vm", &call->api->metrics.latency.pause_vm);
	handle_done(arg, code, err);
}

static void resume_done(void *arg, int code, const struct error *err)
{
	struct api_call *call = arg;

	if (code == 0 && call->api)
		note_latency(call, "resume vm", &call->api->metrics.latency.resume_vm);
	handle_done(arg, code, err);
}

void handle_patch_vm(struct api_call *call)
{
	const struct vm_params *p = call->params;

	if (p->state == VM_TARGET_PAUSED)
		control_pause(call->api->vm, pause_done, call);
	else
		control_resume(call->api->vm, resume_done, call);
}
