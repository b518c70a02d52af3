/*
 * Answers. The only unit that knows status codes and the shape of errors.
 *
 * Firecracker's paths answer every error with 400 and {"fault_message": text};
 * requests that are bad as HTTP with {"error": text}. Paths below /v1 answer
 *	{"error":{"code":"unknown_field","message":"...","field":"state"}}
 * where `code` is stable and `field` is there if one field is to blame:
 *	400 bad_request, invalid_json, duplicate_field
 *	404 not_found              405 method_not_allowed (with Allow)
 *	409 wrong_phase, conflict  413 body_too_large
 *	422 unknown_field, missing_field, wrong_type, out_of_range,
 *	    not_supported, invalid_value
 *	500 failed, no_memory
 *
 * Each function ends the call. Threads: main. Locks: none.
 */
#ifndef LULL_API_RESPOND_H
#define LULL_API_RESPOND_H

#include "api/api.h"
#include "api/fields.h"
#include "vmm/base/buf.h"
#include "vmm/base/error.h"
#include "vmm/control.h"

/* 204 */
void respond_empty(struct api_call *call);
/* 200 with the JSON in `body`; 500 if the buffer failed. */
void respond_json(struct api_call *call, const struct buf *body);

/* The machine refused; the route's prefix goes before its text. */
void respond_error(struct api_call *call, const struct error *err);
/* As respond_error() with a prefix of the handler's choice. */
void respond_error_as(struct api_call *call, const char *prefix, const struct error *err);

/* The body is not what the route's field table asks for. */
void respond_field_error(struct api_call *call, const struct field_error *err);
/* The request is wrong in itself: empty body, bad id, ... */
void respond_bad_request(struct api_call *call, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Not in this phase of the VM. */
void respond_phase(struct api_call *call, const struct control_vm_info *info);
/* No such path, or (with `allow`) no such method of it. */
void respond_no_route(struct api_call *call, const char *resource, const char *allow);
/* Bad as HTTP; the connection is closed. */
void respond_bad_http(struct api_call *call, const char *text);

/* A complete answer for a body that is larger than the limit, with its head. */
int respond_format_too_large(const struct api *api, bool is_v1, uint64_t size, struct buf *out);

/* Value of the Server header. */
const char *respond_server_name(const struct api *api);

#endif
