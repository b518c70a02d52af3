/*
 * From a request to its handler: path, method, body, phase, in this order.
 *
 * The routes are two tables. Unversioned paths match as Firecracker matches
 * them: by their first words, whatever follows is passed over. Paths below /v1
 * match as a whole.
 *
 * Threads: main. Locks: none. Not here: what handlers do, status codes.
 */
#ifndef LULL_API_ROUTER_H
#define LULL_API_ROUTER_H

#include <stddef.h>

#include "api/api.h"
#include "api/fields.h"

#define PHASES_BEFORE CONTROL_NOT_STARTED
#define PHASES_AFTER (CONTROL_RUNNING | CONTROL_PAUSED)
#define PHASES_ANY (PHASES_BEFORE | PHASES_AFTER | CONTROL_ENDED)

/* What the id in the body has to do with the id in the path. */
enum route_body_id {
	ROUTE_NO_BODY_ID,
	ROUTE_BODY_ID,       /* the body's struct starts with it; it must be the same */
	ROUTE_BODY_ID_SHOWN, /* the same, and the error shows both */
};

struct route {
	enum api_method method;
	const char *path; /* "/drives/{id}"; NULL ends a table */
	unsigned phases;  /* CONTROL_* bits in which it may be called */
	const struct field_table *fields; /* of the body; NULL: there is none */
	void (*handler)(struct api_call *call);
	const char *prefix;     /* before the machine's error texts; NULL: none */
	enum fields_mode mode;  /* FIELDS_PARTIAL starts from what is configured */
	enum route_body_id body_id;
	size_t count, fails;    /* 1 + offset in struct api_metrics; 0: not counted */
};

extern const struct route routes_firecracker[];
extern const struct route routes_v1[];

/* Answers the call, at once or later. */
void router_dispatch(struct api_call *call);

/* Where a counter lies in struct api_metrics. */
#define ROUTE_METRIC(member) (offsetof(struct api_metrics, member) + 1)

#endif
