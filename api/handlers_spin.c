/*
 * Handlers of the spin policy. Threads: main. Locks: none.
 */
#include "api/handlers.h"

#include <inttypes.h>

#include "api/respond.h"
#include "api/schema.h"
#include "api/spin_print.h"
#include "vmm/control.h"

static const char *mode_name(enum spin_mode mode)
{
	return mode == SPIN_SHARED ? "shared" : mode == SPIN_DEDICATED ? "dedicated" : "auto";
}

static void print_mode(struct buf *body, const struct spin_config *asked,
		       const struct control_spin_info *s)
{
	buf_printf(body, "{\"mode\":{\"asked\":\"%s\",\"in_force\":", mode_name(asked->mode));
	if (s->mode == SPIN_AUTO)
		buf_printf(body, "null");
	else
		buf_printf(body, "\"%s\"", mode_name(s->mode));
	buf_printf(body, ",\"why\":");
	buf_append_json_string(body, s->why);
	buf_printf(body, "}");
}

static void print_controls(struct buf *body, const struct control_spin_info *s)
{
	static const char *const granted[] = {
		[SPIN_NO] = "false", [SPIN_YES] = "true", [SPIN_UNKNOWN] = "null",
	};
	const struct spin_control *c;
	uint32_t i;

	buf_printf(body, ",\"controls\":[");
	for (i = 0; i < s->control_count; i++) {
		c = &s->controls[i];
		buf_printf(body, "%s{\"name\":\"%s\",\"asked\":%s,\"granted\":%s,\"why\":",
			   i ? "," : "", c->name, c->asked ? "true" : "false",
			   granted[c->granted]);
		buf_append_json_string(body, c->why);
		buf_printf(body, "}");
	}
	buf_printf(body, "]");
}

static void print_halt_poll(struct buf *body, const struct spin_config *asked,
			    const struct control_spin_info *s)
{
	buf_printf(body, ",\"halt_poll\":{\"asked_ns\":");
	if (asked->has_halt_poll_ns)
		buf_printf(body, "%" PRIu32, asked->halt_poll_ns);
	else
		buf_printf(body, "null");
	buf_printf(body, ",\"in_force_ns\":");
	if (s->halt_poll_ns >= 0)
		buf_printf(body, "%" PRId64, s->halt_poll_ns);
	else
		buf_printf(body, "null");
	buf_printf(body, ",\"max_ns\":%" PRIu32 "}", asked->halt_poll_max_ns);
}

static void print_polls(struct buf *body, const struct spin_config *asked,
			const struct control_spin_info *s)
{
	buf_printf(body, ",\"register_polls\":{\"park\":%s,\"parked\":%" PRIu64
		   ",\"changed\":%" PRIu64 "}", asked->park_polls ? "true" : "false",
		   s->polls_parked, s->polls_changed);
}

static void print_checks(struct buf *body, const struct vm *vm)
{
	static const char *const statuses[] = {
		[SPIN_CHECK_OK] = "ok", [SPIN_CHECK_WARN] = "warning",
		[SPIN_CHECK_UNKNOWN] = "unknown",
	};
	struct spin_checks checks;
	uint32_t i;

	control_check_host(vm, &checks);
	buf_printf(body, ",\"host\":[");
	for (i = 0; i < checks.count; i++) {
		buf_printf(body, "%s{\"name\":\"%s\",\"status\":\"%s\",\"text\":", i ? "," : "",
			   checks.rows[i].name, statuses[checks.rows[i].status]);
		buf_append_json_string(body, checks.rows[i].text);
		buf_printf(body, "}");
	}
	buf_printf(body, "]");
}

void handle_v1_get_spin(struct api_call *call)
{
	struct vm *vm = call->api->vm;
	const struct spin_config *asked = &control_get_config(vm)->spin;
	struct control_spin_info s;
	struct buf body;

	control_get_spin(vm, &s);
	buf_init(&body, LIMIT_API_REPLY);
	print_mode(&body, asked, &s);
	print_controls(&body, &s);
	print_halt_poll(&body, asked, &s);
	print_polls(&body, asked, &s);
	print_checks(&body, vm);
	buf_printf(&body, ",\"controller\":");
	spin_print_controller(&body, vm);
	buf_printf(&body, ",\"events\":");
	spin_print_events(&body, vm);
	buf_printf(&body, ",\"vcpus\":");
	spin_print_vcpus(&body, vm);
	buf_printf(&body, ",\"kvm\":");
	spin_print_vm_stats(&body, vm);
	buf_printf(&body, "}");
	respond_json(call, &body);
	buf_fini(&body);
}

void handle_v1_put_spin(struct api_call *call)
{
	struct error err;
	int ret = control_put_spin(call->api->vm, call->params, &err);

	handle_done(call, ret, &err);
}
