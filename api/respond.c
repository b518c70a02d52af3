/*
 * Answers: status codes, error bodies, log lines.
 * Threads: main. Locks: none. Not here: bytes on the socket (server).
 */
#include "api/respond.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "api/router.h"
#include "vmm/base/bits.h"
#include "vmm/base/log.h"

#define MESSAGE_MAX 1024

static const char *reason_of(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 204:
		return "No Content";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 409:
		return "Conflict";
	case 413:
		return "Payload Too Large";
	case 422:
		return "Unprocessable Content";
	case 500:
		return "Internal Server Error";
	default:
		return "Bad Request";
	}
}

const char *respond_server_name(const struct api *api)
{
	return !strcmp(api->identity.app_name, "Firecracker") ? "Firecracker API"
							      : api->identity.app_name;
}

static void bump(const struct api_call *call, size_t metric_at)
{
	if (metric_at)
		metric_inc((metric *)((char *)&call->api->metrics + metric_at - 1));
}

static void finish(struct api_call *call, struct api_reply *reply)
{
	reply->reason = reason_of(reply->status);
	reply->deprecated = call->deprecated;
	if (call->api && call->route && reply->status >= 400)
		bump(call, call->route->fails);
	call->send(call, reply);
}

static void succeed(struct api_call *call, struct api_reply *reply)
{
	log_always("The request was executed successfully. Status code: %d %s.", reply->status,
		   reason_of(reply->status));
	finish(call, reply);
}

void respond_empty(struct api_call *call)
{
	struct api_reply reply = { .status = 204 };

	succeed(call, &reply);
}

void respond_json(struct api_call *call, const struct buf *body)
{
	struct api_reply reply = { .status = 200, .body = buf_text(body), .body_len = body->len };
	struct error err;

	if (!buf_failed(body)) {
		succeed(call, &reply);
		return;
	}
	error_set(&err, -ENOMEM, "the answer does not fit into memory or its limit");
	respond_error_as(call, "", &err);
}

/* What an error says, whatever surface it goes to. */
struct fault {
	int status;       /* on a path below /v1; 400 elsewhere */
	const char *code; /* stable, for machines */
	const char *field;
	const char *allow;
	const char *key; /* Firecracker's paths: "fault_message" or "error" */
	bool close;
};

static void format_fault(const struct fault *f, bool is_v1, const char *text, struct buf *out)
{
	if (!is_v1) {
		buf_printf(out, "{\"%s\":", f->key ? f->key : "fault_message");
		buf_append_json_string(out, text);
		buf_append(out, "}", 1);
		return;
	}
	buf_printf(out, "{\"error\":{\"code\":\"%s\",\"message\":", f->code);
	buf_append_json_string(out, text);
	if (f->field && f->field[0]) {
		buf_printf(out, ",\"field\":");
		buf_append_json_string(out, f->field);
	}
	buf_printf(out, "}}");
}

/* Texts are cut to fixed sizes on their way; a character must not stay cut in two. */
static void mend_text(char *text)
{
	size_t len = strlen(text), at = 0, n;

	while (at < len) {
		n = json_utf8_length((const unsigned char *)text + at, len - at);
		if (n == 0)
			text[at] = at + 4 > len ? '\0' : '?';
		if (!text[at])
			break;
		at += n ? n : 1;
	}
}

static void fail(struct api_call *call, const struct fault *f, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void fail(struct api_call *call, const struct fault *f, const char *fmt, ...)
{
	struct api_reply reply = { .status = call->is_v1 ? f->status : 400 };
	char text[MESSAGE_MAX];
	struct buf body;
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	mend_text(text);
	log_at(LOG_LEVEL_ERROR, false, "Received Error. Status code: %d %s. Message: %s",
	       reply.status, reason_of(reply.status), text);
	buf_init(&body, LIMIT_API_REPLY);
	format_fault(f, call->is_v1, text, &body);
	reply.body = buf_text(&body);
	reply.body_len = body.len;
	reply.allow = call->is_v1 ? f->allow : NULL;
	reply.close = f->close;
	finish(call, &reply);
	buf_fini(&body);
}

/* The status and code for a negative errno of the machine. */
static struct fault fault_of_code(int code)
{
	switch (code) {
	case -EINVAL:
	case -ENOENT:
	case -E2BIG:
		return (struct fault){ .status = 422, .code = "invalid_value" };
	case -EBUSY:
	case -EALREADY:
	case -EEXIST:
		return (struct fault){ .status = 409, .code = "conflict" };
	case -ENODEV:
		return (struct fault){ .status = 404, .code = "not_found" };
	case -ENOTSUP:
		return (struct fault){ .status = 422, .code = "not_supported" };
	case -ENOMEM:
		return (struct fault){ .status = 500, .code = "no_memory" };
	default:
		return (struct fault){ .status = 500, .code = "failed" };
	}
}

void respond_error_as(struct api_call *call, const char *prefix, const struct error *err)
{
	struct fault f = fault_of_code(err->code);

	f.field = err->field;
	fail(call, &f, "%s%s", call->is_v1 ? "" : prefix, err->text);
}

void respond_error(struct api_call *call, const struct error *err)
{
	const char *prefix = call->route ? call->route->prefix : NULL;

	respond_error_as(call, prefix ? prefix : "", err);
}

void respond_field_error(struct api_call *call, const struct field_error *err)
{
	static const struct fault faults[] = {
		[FIELD_FAULT_SYNTAX] = { .status = 400, .code = "invalid_json" },
		[FIELD_FAULT_DUPLICATE] = { .status = 400, .code = "duplicate_field" },
		[FIELD_FAULT_UNKNOWN] = { .status = 422, .code = "unknown_field" },
		[FIELD_FAULT_MISSING] = { .status = 422, .code = "missing_field" },
		[FIELD_FAULT_TYPE] = { .status = 422, .code = "wrong_type" },
		[FIELD_FAULT_RANGE] = { .status = 422, .code = "out_of_range" },
		[FIELD_FAULT_REFUSED] = { .status = 422, .code = "not_supported" },
		[FIELD_FAULT_MEMORY] = { .status = 500, .code = "no_memory" },
	};
	struct fault f = faults[err->fault];

	f.field = err->field;
	if (call->is_v1)
		fail(call, &f, "%s", err->text);
	else
		fail(call, &f,
		     "An error occurred when deserializing the json body of a request: %s.",
		     err->text);
}

void respond_bad_request(struct api_call *call, const char *fmt, ...)
{
	const struct fault f = { .status = 400, .code = "bad_request" };
	char text[MESSAGE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fail(call, &f, "%s", text);
}

void respond_phase(struct api_call *call, const struct control_vm_info *info)
{
	const struct fault f = { .status = 409, .code = "wrong_phase" };

	if (call->is_v1)
		fail(call, &f, "not possible while the VM is in state \"%s\"", info->state);
	else if (info->phase == CONTROL_NOT_STARTED)
		fail(call, &f, "The requested operation is not supported before starting the "
			       "microVM.");
	else if (info->phase == CONTROL_ENDED)
		fail(call, &f, "The requested operation is not supported: the guest has ended.");
	else
		fail(call, &f, "The requested operation is not supported after starting the "
			       "microVM.");
}

void respond_no_route(struct api_call *call, const char *resource, const char *allow)
{
	struct fault f = { .status = 404, .code = "not_found" };

	if (allow)
		f = (struct fault){ .status = 405, .code = "method_not_allowed", .allow = allow };
	if (!call->is_v1)
		fail(call, &f, "Invalid request method and/or path: %s %s.",
		     api_method_name(call->method), resource);
	else if (allow)
		fail(call, &f, "%s allows %s only", resource, allow);
	else
		fail(call, &f, "there is no %s", resource);
}

void respond_bad_http(struct api_call *call, const char *text)
{
	const struct fault f = { .status = 400, .code = "bad_request", .key = "error",
				 .close = true };

	call->route = NULL;
	fail(call, &f, "%s\nAll previous unanswered requests will be dropped.", text);
}

int respond_format_too_large(const struct api *api, bool is_v1, uint64_t size, struct buf *out)
{
	const struct fault f = { .status = 413, .code = "body_too_large", .key = "error" };
	int status = is_v1 ? f.status : 400;
	char text[256];
	struct buf body;
	int ret;

	snprintf(text, sizeof(text),
		 "Request payload with size %" PRIu64 " is larger than the limit of %zu allowed "
		 "by server.\nAll previous unanswered requests will be dropped.",
		 size, api->max_body);
	log_at(LOG_LEVEL_ERROR, false, "Received Error. Status code: %d %s. Message: %s", status,
	       reason_of(status), text);
	buf_init(&body, LIMIT_API_REPLY);
	format_fault(&f, is_v1, text, &body);
	ret = buf_printf(out,
			 "HTTP/1.1 %d %s\r\nServer: %s\r\nConnection: close\r\n"
			 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
			 status, reason_of(status), respond_server_name(api), body.len,
			 buf_text(&body));
	buf_fini(&body);
	return ret;
}
