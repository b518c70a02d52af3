/*
 * The control socket: libevent's evhttp, with bounds of our own around it.
 * Threads: main. Locks: none. Not here: connections and their bounds
 * (server_slot.c), meaning of requests (router), answers (respond). Answers that
 * evhttp gives by itself to what is not even HTTP have an HTML body and end the
 * connection.
 */
#include "api/server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/http_checks.h"
#include "api/respond.h"
#include "api/router.h"
#include "api/server_slot.h"
#include "vmm/base/bits.h"
#include "vmm/base/log.h"
#include "vmm/base/ratelimit.h"

#define ACCEPT_RETRY_MS 100

static const struct {
	enum evhttp_cmd_type command;
	enum api_method method;
} methods[] = {
	{ EVHTTP_REQ_GET, API_GET },       { EVHTTP_REQ_PUT, API_PUT },
	{ EVHTTP_REQ_PATCH, API_PATCH },   { EVHTTP_REQ_DELETE, API_DELETE },
	{ EVHTTP_REQ_POST, API_POST },     { EVHTTP_REQ_HEAD, API_HEAD },
	{ EVHTTP_REQ_OPTIONS, API_OTHER }, { EVHTTP_REQ_TRACE, API_OTHER },
	{ EVHTTP_REQ_CONNECT, API_OTHER },
};

/*
 * All servers; there is one outside of tests. A listener's error call-back gets
 * evhttp's argument, so that the server has to be found by the listener.
 */
static struct api_server *servers;

static struct timeval timeval_of_ms(uint32_t ms)
{
	return (struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
}

/* Accepting */

/* No descriptor or no memory is left: a pause, since accept() would fail again at once. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	struct timeval pause = timeval_of_ms(ACCEPT_RETRY_MS);
	struct api_server *s = servers;
	char meaning[128];

	log_warn("The API server cannot accept a connection: %s",
		 strerror_r(errno, meaning, sizeof(meaning)));
	evconnlistener_disable(listener);
	while (s && s->listener != listener)
		s = s->next;
	if (s)
		event_add(s->accept_retry, &pause);
}

static void on_accept_retry(evutil_socket_t fd, short what, void *arg)
{
	slots_update_listener(arg);
}

/* Replies */

static void on_reply_taken(struct evhttp_request *req, void *arg)
{
	slot_taken(arg);
}

static void add_headers(const struct server_call *c, const struct api_reply *reply)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(c->req);

	evhttp_add_header(headers, "Server", respond_server_name(c->call.api));
	if (reply->close)
		evhttp_add_header(headers, "Connection", "close");
	else if (c->req->minor > 0)
		evhttp_add_header(headers, "Connection", "keep-alive");
	if (reply->deprecated)
		evhttp_add_header(headers, "Deprecation", "true");
	if (reply->allow)
		evhttp_add_header(headers, "Allow", reply->allow);
	if (reply->body)
		evhttp_add_header(headers, "Content-Type", "application/json");
}

static void write_reply(struct server_call *c, const struct api_reply *reply)
{
	struct evbuffer *body = evbuffer_new();
	struct slot *slot = c->slot;

	add_headers(c, reply);
	if (body && reply->body && c->call.method != API_HEAD)
		evbuffer_add(body, reply->body, reply->body_len);
	slot_reply(slot);
	evhttp_request_set_on_complete_cb(c->req, on_reply_taken, slot);
	evhttp_send_reply(c->req, reply->status, reply->reason, body);
	if (body)
		evbuffer_free(body);
}

/* The `send` of every call. */
static void send_reply(struct api_call *call, const struct api_reply *reply)
{
	struct server_call *c = (struct server_call *)call;

	if (c->slot)
		write_reply(c, reply);
	else
		slots_orphan_answered();
	api_call_fini(call);
	free(c);
}

/* Requests */

static enum api_method method_of(struct evhttp_request *req)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(methods) && methods[i].command != evhttp_request_get_command(req))
		i++;
	return i < ARRAY_SIZE(methods) ? methods[i].method : API_OTHER;
}

/* NULL, or what is wrong with the request as HTTP. */
static const char *check_request(struct evhttp_request *req)
{
	struct evkeyvalq *headers = evhttp_request_get_input_headers(req);
	struct http_headers seen = { 0 };
	const char *fault = http_check_target(evhttp_request_get_uri(req));
	struct evkeyval *h;

	if (req->major != 1 || (req->minor != 0 && req->minor != 1)) {
		req->major = 1; /* it would be echoed */
		req->minor = 1;
		return "Unsupported HTTP version.";
	}
	for (h = headers->tqh_first; h && !fault; h = h->next.tqe_next)
		fault = http_check_header(&seen, h->key, h->value);
	return fault;
}

static struct server_call *call_new(struct slot *slot, struct evhttp_request *req)
{
	struct server_call *c = calloc(1, sizeof(*c));
	struct evbuffer *body = evhttp_request_get_input_buffer(req);

	if (!c)
		return NULL;
	api_call_init(&c->call, &slot->server->api, method_of(req));
	c->call.send = send_reply;
	c->call.body_len = evbuffer_get_length(body);
	c->call.body = c->call.body_len ? (const char *)evbuffer_pullup(body, -1) : NULL;
	snprintf(c->call.target, sizeof(c->call.target), "%s", evhttp_request_get_uri(req));
	c->slot = slot;
	c->req = req;
	return c;
}

/* evhttp has a whole request. */
static void on_request(struct evhttp_request *req, void *arg)
{
	struct api_server *s = arg;
	struct slot *slot = slots_find_connection(s, evhttp_request_get_connection(req));
	const char *fault = check_request(req);
	struct server_call *c = slot ? call_new(slot, req) : NULL;

	if (!c) {
		evhttp_send_error(req, HTTP_SERVUNAVAIL, NULL);
		return;
	}
	/* "GET http://host/path" is no reason to close, as it would be for a proxy */
	req->flags &= ~EVHTTP_PROXY_REQUEST;
	slot_handle(slot, c);
	c->call.is_v1 = slot->is_v1;
	if (fault)
		respond_bad_http(&c->call, fault);
	else
		router_dispatch(&c->call);
	if (slot->state == SLOT_HANDLING)
		slot_await_answer(slot);
}

/* Setting up and taking down */

static void on_library_log(int severity, const char *text)
{
	log_warn("libevent: %s", text);
}

static int make_http(struct api_server *s, uint32_t idle_ms)
{
	struct timeval idle = timeval_of_ms(idle_ms);
	ev_uint16_t allowed = 0;
	size_t i;

	s->http = evhttp_new(s->base);
	if (!s->http)
		return -ENOMEM;
	evhttp_set_gencb(s->http, on_request, s);
	evhttp_set_bevcb(s->http, slots_on_new_connection, s);
	evhttp_set_timeout_tv(s->http, &idle);
	evhttp_set_max_headers_size(s->http, LIMIT_API_HEADERS);
	evhttp_set_max_body_size(s->http, (ssize_t)s->api.max_body);
	evhttp_set_flags(s->http, EVHTTP_SERVER_LINGERING_CLOSE);
	for (i = 0; i < ARRAY_SIZE(methods); i++)
		allowed = (ev_uint16_t)(allowed | methods[i].command);
	evhttp_set_allowed_methods(s->http, allowed);
	return 0;
}

static int make_events(struct api_server *s)
{
	s->accept_retry = event_new(s->base, -1, 0, on_accept_retry, s);
	return s->accept_retry ? slots_init(s) : -ENOMEM;
}

/* Takes the socket over, also when it fails. */
static int make_listener(struct api_server *s, int fd)
{
	s->listener = evconnlistener_new(s->base, NULL, NULL,
					 LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!s->listener) {
		close(fd);
		return -ENOMEM;
	}
	if (!evhttp_bind_listener(s->http, s->listener)) {
		evconnlistener_free(s->listener);
		s->listener = NULL;
		return -ENOMEM;
	}
	evconnlistener_set_error_cb(s->listener, on_accept_error);
	return 0;
}

static int set_up(struct api_server *s, const struct api_options *o)
{
	int ret;

	s->api.identity = o->identity;
	s->api.max_body = o->max_body ? o->max_body : LIMIT_API_BODY;
	s->deadline = timeval_of_ms(o->deadline_ms ? o->deadline_ms : LIMIT_API_DEADLINE_MS);
	event_set_log_callback(on_library_log);
	ret = make_events(s);
	if (ret == 0)
		ret = make_http(s, o->idle_ms ? o->idle_ms : LIMIT_API_IDLE_MS);
	if (ret == 0 && o->metrics) {
		s->metrics = o->metrics;
		ret = api_metrics_add(s->metrics, &s->api.metrics);
	}
	return ret;
}

struct api_server *api_server_new(struct event_loop *loop, struct vm *vm,
				  const struct api_options *options, struct error *err)
{
	struct api_server *s = calloc(1, sizeof(*s));
	int fd = -1;

	if (s) {
		s->leave_fd = -EBADF;
		s->next = servers;
		servers = s;
		s->base = event_loop_base(loop);
		s->api.vm = vm;
	}
	if (s && set_up(s, options) == 0) {
		fd = server_socket_open(&s->socket, options->socket_path, err);
		if (fd < 0)
			return api_server_free(s);
	}
	if (fd < 0 || make_listener(s, fd) < 0) {
		error_set_errno(err, -ENOMEM, "Failed to bind and run the HTTP server");
		return api_server_free(s);
	}
	log_always("API server started.");
	return s;
}


void api_server_drain(struct api_server *server, uint32_t ms)
{
	uint64_t until = ratelimit_now() + (uint64_t)ms * 1000000;
	struct timeval left = timeval_of_ms(ms);

	server->draining = true;
	slots_update_listener(server);
	event_add(server->accept_retry, &left); /* wakes the loop at the end of the time */
	while (slots_find(server, SLOT_WRITING) && ratelimit_now() < until)
		event_base_loop(server->base, EVLOOP_ONCE);
	event_del(server->accept_retry);
}

static void forget_server(struct api_server *s)
{
	struct api_server **link = &servers;

	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
}

struct api_server *api_server_free(struct api_server *server)
{
	if (!server)
		return NULL;
	slots_adopt(server); /* so that every connection has its close call-back */
	server->listener = NULL; /* evhttp frees it */
	if (server->http)
		evhttp_free(server->http);
	server_socket_fini(&server->socket);
	if (server->metrics)
		api_metrics_remove(server->metrics, &server->api.metrics);
	slots_fini(server);
	if (server->accept_retry)
		event_free(server->accept_retry);
	forget_server(server);
	free(server);
	return NULL;
}
