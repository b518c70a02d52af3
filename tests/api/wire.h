/*
 * Requests to the router without a socket: one call, its answer kept.
 * Threads: the test's. Locks: none.
 */
#ifndef LULL_TEST_WIRE_H
#define LULL_TEST_WIRE_H

#include "api/api.h"
#include "tests/fakes/fake_control.h"

struct wire {
	struct vm vm;
	struct api api;
	/* the last answer */
	unsigned replies;
	int status;
	char body[262144];
	char allow[64];
	bool deprecated;
};

/* For cmocka: *state becomes a fresh struct wire, known as Firecracker. */
int wire_setup(void **state);
int wire_teardown(void **state);

/* Sends "PUT /machine-config" with a body (NULL: none); returns the status, 0 if none came. */
int wire_send(struct wire *w, const char *request, const char *body);

#define assert_body_has(w, text) assert_non_null(strstr((w)->body, text))
#define assert_fault(w, text) assert_string_equal((w)->body, "{\"fault_message\":\"" text "\"}")

#endif
