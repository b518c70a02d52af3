/*
 * JSON documents. Threads: main. Locks: none.
 * Not here: rules about JSON (json_scan), the meaning of members (fields).
 */
#include "api/json_doc.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/cleanup.h"

static int fail(struct json_fault *fault, int code, enum json_fault_kind kind, const char *text)
{
	memset(fault, 0, sizeof(*fault));
	fault->kind = kind;
	snprintf(fault->text, sizeof(fault->text), "%s", text);
	return code;
}

/* `text` ends with a NUL that is parsed too: it ends a bare number. */
static int run_parser(const char *text, size_t len, const struct json_limits *limits,
		      struct json_object **ret_value, struct json_fault *fault)
{
	struct json_tokener *parser = json_tokener_new_ex((int)limits->depth + 2);
	enum json_tokener_error code;
	struct json_object *value;

	if (!parser)
		return fail(fault, -ENOMEM, JSON_FAULT_MEMORY, "out of memory");
	json_tokener_set_flags(parser, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	value = json_tokener_parse_ex(parser, text, (int)len + 1);
	code = json_tokener_get_error(parser);
	json_tokener_free(parser);
	if (code != json_tokener_success) {
		json_object_put(value);
		return fail(fault, -EINVAL, JSON_FAULT_SYNTAX, json_tokener_error_desc(code));
	}
	*ret_value = value;
	return 0;
}

int json_doc_parse(const char *bytes, size_t len, const struct json_limits *limits,
		   struct json_object **ret_value, struct json_place *ret_end,
		   struct json_fault *fault)
{
	_cleanup_free_ char *text = NULL;
	struct json_span span;
	int ret = json_scan(bytes, len, limits, &span, fault);

	if (ret < 0)
		return ret;
	text = strndup(bytes + span.start, span.end - span.start);
	if (!text)
		return fail(fault, -ENOMEM, JSON_FAULT_MEMORY, "out of memory");
	ret = run_parser(text, span.end - span.start, limits, ret_value, fault);
	if (ret == 0)
		*ret_end = span.place;
	return ret;
}
