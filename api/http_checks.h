/*
 * What we ask of a request beyond what the HTTP library checks. Pure functions
 * over text; any thread; no locks.
 */
#ifndef LULL_API_HTTP_CHECKS_H
#define LULL_API_HTTP_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All headers of one request, one after the other. */
struct http_headers {
	unsigned count;
	unsigned lengths; /* Content-Length headers seen */
};

/* NULL if the request target is fine, else what is wrong with it. */
const char *http_check_target(const char *target);

/* NULL if this header may follow those in `seen`, else what is wrong with it. */
const char *http_check_header(struct http_headers *seen, const char *name, const char *value);

/* What the raw bytes of a request's start tell. */
struct http_head {
	bool complete;   /* the blank line after the headers is among them */
	bool is_v1;      /* the request line names a path below /v1 */
	bool has_length; /* a whole line with a Content-Length is among them */
	uint64_t length;
};

/* Looks over `len` bytes, from any line of the head on. */
void http_scan_head(const char *bytes, size_t len, struct http_head *ret);

#endif
