/*
 * Requests to the router without a socket. Threads: the test's. Locks: none.
 */
#include "tests/api/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/router.h"

struct wire_call {
	struct api_call call;
	struct wire *wire;
};

int wire_setup(void **state)
{
	struct wire *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	fake_control_init(&w->vm);
	w->api.vm = &w->vm;
	w->api.identity = (struct api_identity){ "Firecracker", "1.15.0" };
	w->api.max_body = LIMIT_API_BODY;
	*state = w;
	return 0;
}

int wire_teardown(void **state)
{
	free(*state);
	return 0;
}

static void keep(struct api_call *call, const struct api_reply *reply)
{
	struct wire_call *c = (struct wire_call *)call;
	struct wire *w = c->wire;

	w->replies++;
	w->status = reply->status;
	w->deprecated = reply->deprecated;
	snprintf(w->allow, sizeof(w->allow), "%s", reply->allow ? reply->allow : "");
	snprintf(w->body, sizeof(w->body), "%.*s", (int)reply->body_len,
		 reply->body ? reply->body : "");
	api_call_fini(call);
	free(c);
}

static enum api_method method_of(const char *request)
{
	int m = API_GET;

	while (m < API_OTHER && strncmp(request, api_method_name(m), strcspn(request, " ")) != 0)
		m++;
	return (enum api_method)m;
}

int wire_send(struct wire *w, const char *request, const char *body)
{
	struct wire_call *c = calloc(1, sizeof(*c));

	w->status = 0;
	w->body[0] = '\0';
	if (!c)
		return -1;
	api_call_init(&c->call, &w->api, method_of(request));
	c->call.send = keep;
	c->call.body = body;
	c->call.body_len = body ? strlen(body) : 0;
	snprintf(c->call.target, sizeof(c->call.target), "%s", strchr(request, ' ') + 1);
	c->wire = w;
	router_dispatch(&c->call);
	return w->status;
}
