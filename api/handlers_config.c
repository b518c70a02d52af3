/*
 * Handlers of the configuration. Threads: main. Locks: none.
 */
#include "api/handlers.h"

#include <stdlib.h>

#include "api/respond.h"
#include "api/schema.h"
#include "vmm/base/cleanup.h"
#include "vmm/base/log.h"
#include "vmm/control.h"

static void answer(struct api_call *call, int code, const struct error *err)
{
	if (code < 0)
		respond_error(call, err);
	else
		respond_empty(call);
}

/* A field that is on its way out was used: counted, logged, told in a header. */
static void note_deprecated(struct api_call *call, const char *what)
{
	log_warn("%s field is deprecated.", what);
	metric_inc(&call->api->metrics.deprecated.deprecated_http_api_calls);
	call->deprecated = true;
}

void handle_get_machine(struct api_call *call)
{
	struct buf body;

	buf_init(&body, LIMIT_API_REPLY);
	fields_print(&machine_table, &control_get_config(call->api->vm)->machine, &body);
	respond_json(call, &body);
	buf_fini(&body);
}

void handle_put_machine(struct api_call *call)
{
	struct error err;

	if (call->given & MACHINE_GIVEN_CPU_TEMPLATE)
		note_deprecated(call, "PUT /machine-config: cpu_template");
	answer(call, control_put_machine(call->api->vm, call->params, &err), &err);
}

void handle_patch_machine(struct api_call *call)
{
	struct error err;

	if (!call->given) {
		respond_bad_request(call, "Empty PATCH request.");
		return;
	}
	if (call->given & MACHINE_GIVEN_CPU_TEMPLATE)
		note_deprecated(call, "PATCH /machine-config: cpu_template");
	answer(call, control_put_machine(call->api->vm, call->params, &err), &err);
}

void handle_put_boot_source(struct api_call *call)
{
	struct error err;

	answer(call, control_put_boot_source(call->api->vm, call->params, &err), &err);
}

void handle_put_drive(struct api_call *call)
{
	struct error err;

	answer(call, control_put_drive(call->api->vm, call->params, &err), &err);
}

void handle_put_net(struct api_call *call)
{
	struct error err;

	answer(call, control_put_net(call->api->vm, call->params, &err), &err);
}

void handle_put_entropy(struct api_call *call)
{
	struct error err;

	answer(call, control_put_entropy(call->api->vm, call->params, &err), &err);
}

void handle_put_serial(struct api_call *call)
{
	struct serial_config *s = call->params;
	struct error err;

	s->console = s->path[0] ? CONSOLE_FILE : CONSOLE_STDIO;
	answer(call, control_put_serial(call->api->vm, s, &err), &err);
}

void handle_put_logger(struct api_call *call)
{
	struct error err;

	answer(call, control_put_logger(call->api->vm, call->params, &err), &err);
}

void handle_put_metrics(struct api_call *call)
{
	struct error err;

	answer(call, control_put_metrics(call->api->vm, call->params, &err), &err);
}

void handle_get_vm_config(struct api_call *call)
{
	_cleanup_free_ struct config_document *document = malloc(sizeof(*document));
	struct buf body;

	buf_init(&body, document ? LIMIT_API_REPLY : 0);
	if (document) {
		document->vm = *control_get_config(call->api->vm);
		document->has_machine = true;
		fields_print(&config_document_table, document, &body);
	} else {
		buf_append(&body, "{", 1); /* marks the buffer as failed */
	}
	respond_json(call, &body);
	buf_fini(&body);
}
