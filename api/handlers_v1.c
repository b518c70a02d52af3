/*
 * Handlers of our own surface, /v1. Threads: main. Locks: none.
 */
#include "api/handlers.h"

#include <errno.h>
#include <inttypes.h>

#include "api/respond.h"
#include "api/router.h"
#include "api/schema.h"
#include "api/spin_print.h"
#include "vmm/control.h"

/* Appends `"key":"value"` after `lead`. */
static void print_text(struct buf *body, const char *lead, const char *key, const char *value)
{
	buf_printf(body, "%s\"%s\":", lead, key);
	buf_append_json_string(body, value);
}

void handle_v1_get_vm(struct api_call *call)
{
	struct control_vm_info info;
	struct buf body;

	control_get_info(call->api->vm, &info);
	buf_init(&body, LIMIT_API_REPLY);
	print_text(&body, "{", "id", info.id);
	print_text(&body, ",", "state", info.state);
	print_text(&body, ",", "reason", info.reason);
	buf_printf(&body, ",\"pid\":%d,\"uptime_ms\":%" PRIu64, (int)info.pid, info.uptime_ms);
	print_text(&body, ",", "app_name", call->api->identity.app_name);
	print_text(&body, ",", "version", LULL_VERSION);
	buf_append(&body, "}", 1);
	respond_json(call, &body);
	buf_fini(&body);
}

/* Stopping is possible in every phase; the others need a guest. */
void handle_v1_patch_vm(struct api_call *call)
{
	const struct vm_params *p = call->params;
	struct vm *vm = call->api->vm;
	struct control_vm_info info;

	control_get_info(vm, &info);
	if (p->state == VM_TARGET_STOPPED) {
		respond_empty(call);
		control_stop(vm, "asked by a client");
	} else if (info.phase & PHASES_AFTER) {
		handle_patch_vm(call);
	} else {
		respond_phase(call, &info);
	}
}

static void print_device(struct buf *body, const struct control_device_info *d)
{
	print_text(body, "{", "id", d->id);
	print_text(body, ",", "type", d->type);
	print_text(body, ",", "status", d->status);
	buf_printf(body, ",\"base\":%" PRIu64 ",\"size\":%" PRIu64, d->base, d->size);
	if (d->gsi >= 0)
		buf_printf(body, ",\"gsi\":%d", (int)d->gsi);
	else
		buf_printf(body, ",\"gsi\":null");
	if (d->tid > 0)
		buf_printf(body, ",\"tid\":%d", (int)d->tid);
	else
		buf_printf(body, ",\"tid\":null");
	buf_printf(body, ",\"affinity\":");
	fields_print_cpus(d->affinity, body);
	buf_append(body, "}", 1);
}

void handle_v1_get_devices(struct api_call *call)
{
	struct vm *vm = call->api->vm;
	size_t i, count = control_device_count(vm);
	struct control_device_info d;
	struct buf body;

	buf_init(&body, LIMIT_API_REPLY);
	buf_printf(&body, "{\"devices\":[");
	for (i = 0; i < count && control_get_device(vm, i, &d) == 0; i++) {
		if (i > 0)
			buf_append(&body, ",", 1);
		print_device(&body, &d);
	}
	buf_printf(&body, "]}");
	respond_json(call, &body);
	buf_fini(&body);
}

struct exits_printer {
	struct buf *body;
	const char *lead;
};

static void print_exit(void *arg, const char *reason, uint64_t count)
{
	struct exits_printer *p = arg;

	buf_append(p->body, p->lead, 1);
	buf_append_json_string(p->body, reason);
	buf_printf(p->body, ":%" PRIu64, count);
	p->lead = ",";
}

/* All members of the object but its end. */
static void print_vcpu(struct buf *body, struct vm *vm, size_t i,
		       const struct control_vcpu_info *v)
{
	struct exits_printer printer = { body, "{" };

	buf_printf(body, "{\"index\":%" PRIu32 ",\"tid\":%d", v->index, (int)v->tid);
	print_text(body, ",", "state", v->state);
	buf_printf(body, ",\"affinity\":");
	fields_print_cpus(v->affinity, body);
	buf_printf(body, ",\"exits\":{\"total\":%" PRIu64 ",\"by_reason\":", v->exits);
	control_vcpu_exits(vm, i, print_exit, &printer);
	buf_printf(body, "%s", printer.lead[0] == '{' ? "{}}" : "}}");
	buf_printf(body, ",\"stats\":");
	spin_print_vcpu(body, vm, i);
}

void handle_v1_get_vcpus(struct api_call *call)
{
	struct vm *vm = call->api->vm;
	size_t i, count = control_vcpu_count(vm);
	struct control_vcpu_info v;
	struct buf body;

	buf_init(&body, LIMIT_API_REPLY);
	buf_printf(&body, "{\"vcpus\":[");
	for (i = 0; i < count && control_get_vcpu(vm, i, &v) == 0; i++) {
		if (i > 0)
			buf_append(&body, ",", 1);
		print_vcpu(&body, vm, i, &v);
		buf_append(&body, "}", 1);
	}
	buf_printf(&body, "]}");
	respond_json(call, &body);
	buf_fini(&body);
}

int handle_index(const struct api_call *call, size_t count, size_t *ret)
{
	size_t i;

	*ret = 0;
	for (i = 0; call->id[i]; i++) {
		if (call->id[i] < '0' || call->id[i] > '9' || (i > 0 && *ret == 0) ||
		    *ret >= LIMIT_VCPUS)
			return -ENOENT;
		*ret = *ret * 10 + (size_t)(call->id[i] - '0');
	}
	return i > 0 && *ret < count ? 0 : -ENOENT;
}

static int vcpu_of(const struct api_call *call, size_t *ret)
{
	return handle_index(call, control_vcpu_count(call->api->vm), ret);
}

static void no_vcpu(struct api_call *call)
{
	respond_no_route(call, call->target, NULL);
}

static void vcpu_described(void *arg, int code, const char *text)
{
	struct api_call *call = arg;
	struct control_vcpu_info v;
	struct error err;
	struct buf body;
	size_t index;

	if (!call->api) { /* nobody waits any more */
		respond_empty(call);
		return;
	}
	if (vcpu_of(call, &index) < 0 || control_get_vcpu(call->api->vm, index, &v) < 0) {
		no_vcpu(call);
		return;
	}
	if (code < 0) {
		error_set_errno(&err, code, "vCPU %zu does not answer", index);
		respond_error(call, &err);
		return;
	}
	buf_init(&body, LIMIT_API_REPLY);
	print_vcpu(&body, call->api->vm, index, &v);
	print_text(&body, ",", "registers", text);
	buf_append(&body, "}", 1);
	respond_json(call, &body);
	buf_fini(&body);
}

void handle_v1_get_vcpu(struct api_call *call)
{
	size_t index;

	if (vcpu_of(call, &index) < 0)
		no_vcpu(call);
	else
		control_describe_vcpu(call->api->vm, index, vcpu_described, call);
}

void handle_v1_put_serial(struct api_call *call)
{
	const struct serial_config *s = call->params;
	bool needs_path = s->console == CONSOLE_FILE || s->console == CONSOLE_SOCKET;
	struct error err;
	int ret;

	if (needs_path == (s->path[0] != '\0'))
		ret = control_put_serial(call->api->vm, s, &err);
	else
		ret = error_set(&err, -EINVAL, needs_path ? "this console needs a path"
							  : "this console has no path");
	handle_done(call, ret, &err);
}

void handle_v1_put_rtc(struct api_call *call)
{
	struct error err;
	int ret = control_put_rtc(call->api->vm, call->params, &err);

	handle_done(call, ret, &err);
}
