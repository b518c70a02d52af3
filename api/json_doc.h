/*
 * JSON text to a json-c object: the strict scan first, then json-c in its
 * strict mode. The only door by which json-c sees bytes from outside.
 *
 * Threads: main (json-c objects have no locks). Locks: none.
 */
#ifndef LULL_API_JSON_DOC_H
#define LULL_API_JSON_DOC_H

#include <stddef.h>

#include "api/json_scan.h"

struct json_object;

/*
 * Parses `len` bytes that hold one value. 0 with *ret_value (NULL for `null`,
 * to be released with json_object_put()) and *ret_end, where the value ended;
 * else the codes of json_scan() with `fault` filled.
 */
int json_doc_parse(const char *bytes, size_t len, const struct json_limits *limits,
		   struct json_object **ret_value, struct json_place *ret_end,
		   struct json_fault *fault);

#endif
