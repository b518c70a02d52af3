/*
 * Routing. Threads: main. Locks: none.
 */
#include "api/router.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/respond.h"
#include "vmm/base/bits.h"
#include "vmm/base/log.h"
#include "vmm/base/ratelimit.h"
#include "vmm/control.h"

#define MAX_WORDS 8 /* of a path; more are passed over */
#define LOGGED_BODY 1024

/* The words between the slashes of a path, in `text`. */
struct path {
	char text[LIMIT_API_URI + 1];
	const char *words[MAX_WORDS];
	size_t count;
};

static const struct json_limits body_limits = { LIMIT_JSON_DEPTH, LIMIT_JSON_TOKENS };

void api_call_init(struct api_call *call, struct api *api, enum api_method method)
{
	memset(call, 0, sizeof(*call));
	call->api = api;
	call->method = method;
	call->started_ns = ratelimit_now();
}

void api_call_fini(struct api_call *call)
{
	free(call->params);
	call->params = NULL;
}

const char *api_method_name(enum api_method method)
{
	static const char *const names[] = {
		[API_GET] = "GET",       [API_PUT] = "PUT",   [API_PATCH] = "PATCH",
		[API_DELETE] = "DELETE", [API_POST] = "POST", [API_HEAD] = "HEAD",
		[API_OTHER] = "OTHER",
	};

	return names[method];
}

/* The path of a target that may be written as "http://host/path". */
static const char *absolute_path(const char *target)
{
	const char *slash;

	if (strncmp(target, "http://", 7) != 0)
		return target;
	slash = strchr(target + 7, '/');
	return slash ? slash : "/";
}

/*
 * Slashes at the start and one at the end do not count; an empty word between
 * two slashes does, as an empty word.
 */
static void split_path(const char *target, struct path *p)
{
	char *next;

	snprintf(p->text, sizeof(p->text), "%s", absolute_path(target));
	next = p->text + strspn(p->text, "/");
	p->count = 0;
	while (next && *next && p->count < MAX_WORDS) {
		p->words[p->count++] = next;
		next = strchr(next, '/');
		if (next)
			*next++ = '\0';
	}
}

static const char *word(const struct path *p, size_t i)
{
	return i < p->count ? p->words[i] : NULL;
}

/* One step through a pattern: the word at *pattern against `have`. */
static bool word_matches(const char **pattern, const char *have, const char **ret_id)
{
	size_t n = strcspn(*pattern, "/");
	const char *want = *pattern;

	*pattern += n + (want[n] == '/');
	if (n == 4 && !memcmp(want, "{id}", 4)) {
		*ret_id = have ? have : "";
		return true;
	}
	return have && strlen(have) == n && !memcmp(want, have, n);
}

/* All words of the pattern are there; with `whole` none follow, and an id is not empty. */
static bool path_matches(const char *pattern, const struct path *p, bool whole,
			 const char **ret_id)
{
	size_t i = 0;

	*ret_id = NULL;
	pattern++;
	if (!*pattern)
		return p->count == 0;
	while (*pattern) {
		if (!word_matches(&pattern, word(p, i), ret_id))
			return false;
		i++;
	}
	return !whole || i == p->count;
}

static const struct route *find_route(const struct api_call *call, const struct path *p,
				      const char **ret_id)
{
	const struct route *r = call->is_v1 ? routes_v1 : routes_firecracker;

	for (; r->path; r++) {
		if (r->method == call->method && path_matches(r->path, p, call->is_v1, ret_id))
			return r;
	}
	return NULL;
}

static void log_request(const struct api_call *call, const char *path)
{
	static const char *const names[] = {
		[API_GET] = "Get",	 [API_PUT] = "Put",   [API_PATCH] = "Patch",
		[API_DELETE] = "Delete", [API_POST] = "Post", [API_HEAD] = "Head",
		[API_OTHER] = "Other",
	};
	char shown[LOGGED_BODY];
	struct buf body;

	if (call->body_len == 0) {
		log_always("The API server received a %s request on \"%s\".", names[call->method],
			   path);
		return;
	}
	json_clip(shown, sizeof(shown), call->body, call->body_len);
	buf_init(&body, LOGGED_BODY * 6);
	buf_append_json_string(&body, shown);
	log_always("The API server received a %s request on \"%s\" with body %s.",
		   names[call->method], path, buf_text(&body));
	buf_fini(&body);
}

/* Below /v1 a name that cannot be is one that names nothing. */
static bool take_name(struct api_call *call, const char *name)
{
	if (*name && strlen(name) < sizeof(call->id)) {
		snprintf(call->id, sizeof(call->id), "%s", name);
		return true;
	}
	respond_no_route(call, call->target, NULL);
	return false;
}

/* Letters, digits and underscores; bytes beyond ASCII never get this far. */
static bool take_id(struct api_call *call, const char *id)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_";

	if (!id)
		return true;
	if (call->is_v1)
		return take_name(call, id);
	if (!*id) {
		respond_bad_request(call, "The ID cannot be empty.");
		return false;
	}
	if (id[strspn(id, allowed)]) {
		respond_bad_request(call, "API Resource IDs can only contain alphanumeric "
					  "characters and underscores.");
		return false;
	}
	if (strlen(id) > LIMIT_ID) {
		respond_bad_request(call, "API Resource IDs can only have %d characters.",
				    LIMIT_ID);
		return false;
	}
	snprintf(call->id, sizeof(call->id), "%s", id);
	return true;
}

static bool check_body_id(struct api_call *call)
{
	const struct route *r = call->route;
	const char *body_id = call->params;

	if (r->body_id == ROUTE_NO_BODY_ID || !strcmp(call->id, body_id))
		return true;
	if (r->body_id == ROUTE_BODY_ID_SHOWN)
		respond_bad_request(call,
				    "The id from the path [%s] does not match the id from the "
				    "body [%s]!", call->id, body_id);
	else
		respond_bad_request(call, "The id from the path does not match the id from the "
					  "body!");
	return false;
}

static bool read_body(struct api_call *call)
{
	const struct route *r = call->route;
	struct field_error err;

	if (!r->fields)
		return true;
	call->params = calloc(1, r->fields->size);
	if (!call->params) {
		respond_error(call, &(struct error){ .code = -ENOMEM, .text = "out of memory" });
		return false;
	}
	if (r->mode == FIELDS_PARTIAL)
		memcpy(call->params, &control_get_config(call->api->vm)->machine, r->fields->size);
	if (fields_read_text(r->fields, call->body, call->body_len, &body_limits, r->mode,
			     call->params, &call->given, &err) < 0) {
		respond_field_error(call, &err);
		return false;
	}
	return check_body_id(call);
}

/* What Firecracker says of a body too much or too little, before it looks at the path. */
static bool check_body_presence(struct api_call *call)
{
	bool has_body = call->body_len > 0;

	if (call->method == API_GET && has_body)
		respond_bad_request(call, "GET request cannot have a body.");
	else if (call->method == API_PUT && !has_body)
		respond_bad_request(call, "Empty PUT request.");
	else if (call->method == API_PATCH && !has_body)
		respond_bad_request(call, "Empty PATCH request.");
	else if (call->method == API_DELETE && has_body)
		respond_bad_request(call, "Empty Delete request.");
	else
		return true;
	return false;
}

static void run_route(struct api_call *call, const struct route *r, const char *id)
{
	struct control_vm_info info;

	call->route = r;
	if (r->count)
		metric_inc((metric *)((char *)&call->api->metrics + r->count - 1));
	if (!take_id(call, id) || !read_body(call))
		return;
	control_get_info(call->api->vm, &info);
	if (info.phase & r->phases)
		r->handler(call);
	else
		respond_phase(call, &info);
}

/* The methods that a path below /v1 has, as an Allow header lists them. */
static void list_methods(const struct path *p, char *out, size_t size)
{
	const struct route *r;
	const char *id;
	size_t used = 0;

	out[0] = '\0';
	for (r = routes_v1; r->path; r++) {
		if (path_matches(r->path, p, true, &id) && used < size)
			used += (size_t)snprintf(out + used, size - used, "%s%s",
						 used ? ", " : "", api_method_name(r->method));
	}
}

static void dispatch_v1(struct api_call *call, const struct path *p)
{
	const char *path = absolute_path(call->target);
	const char *id;
	const struct route *r = find_route(call, p, &id);
	char allow[64];

	if (!r) {
		list_methods(p, allow, sizeof(allow));
		respond_no_route(call, path, allow[0] ? allow : NULL);
	} else if (check_body_presence(call)) {
		run_route(call, r, id);
	}
}

static void dispatch_firecracker(struct api_call *call, const struct path *p)
{
	const char *id;
	const struct route *r;

	if (!check_body_presence(call))
		return;
	r = find_route(call, p, &id);
	if (r)
		run_route(call, r, id);
	else
		respond_no_route(call, p->count ? p->words[0] : "", NULL);
}

void router_dispatch(struct api_call *call)
{
	struct path p;

	split_path(call->target, &p);
	log_request(call, absolute_path(call->target));
	call->is_v1 = p.count > 0 && !strcmp(p.words[0], "v1");
	if (call->is_v1)
		dispatch_v1(call, &p);
	else
		dispatch_firecracker(call, &p);
}
