/*
 * What every part of the API works on: the context of a server and one call.
 *
 * A call is made by the server, filled by the router and ended by exactly one
 * respond_*(), at once or later; after that it is gone. A handler that waits
 * keeps the pointer as the argument of its control_done_fn and touches nothing
 * else of the server meanwhile: the client, and even the server, may be gone
 * by then, which respond_*() takes care of.
 *
 * Threads: main. Locks: none.
 */
#ifndef LULL_API_API_H
#define LULL_API_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api_metrics.h"
#include "vmm/limits.h"

struct vm;
struct route;

/* Under which name we answer; the text is the caller's and outlives the server. */
struct api_identity {
	const char *app_name; /* "lull"; "Firecracker" when started under that name */
	const char *version;  /* "1.15.0" */
};

struct api {
	struct vm *vm;
	struct api_identity identity;
	size_t max_body; /* bytes */
	struct api_metrics metrics;
};

enum api_method { API_GET, API_PUT, API_PATCH, API_DELETE, API_POST, API_HEAD, API_OTHER };

struct api_reply {
	int status;         /* HTTP status */
	const char *reason; /* "Bad Request" */
	const char *body;   /* JSON; NULL: none */
	size_t body_len;
	const char *allow; /* value of an Allow header, or NULL */
	bool deprecated;   /* adds "Deprecation: true" */
	bool close;        /* the connection ends with this reply */
};

struct api_call {
	/* by the server */
	struct api *api; /* NULL once nobody waits for the answer */
	enum api_method method;
	char target[LIMIT_API_URI + 1]; /* as sent */
	const char *body;               /* during the dispatch only */
	size_t body_len;
	/* takes the reply and frees the call */
	void (*send)(struct api_call *call, const struct api_reply *reply);

	/* by the router */
	const struct route *route; /* NULL: none matched */
	bool is_v1;
	char id[LIMIT_DEVICE_NAME]; /* from the path; "" */
	void *params;          /* the struct of the route's field table */
	uint64_t given;        /* which of its fields were given */
	bool deprecated;       /* by a handler: a deprecated field was used */
	uint64_t started_ns;   /* monotonic */
};

/* Sets the fields that the router and the handlers start from. */
void api_call_init(struct api_call *call, struct api *api, enum api_method method);
/* Frees what the router made; for the owner of the call. */
void api_call_fini(struct api_call *call);

const char *api_method_name(enum api_method method);

#endif
