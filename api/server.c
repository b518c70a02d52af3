/*
 * The control socket: libevent's evhttp, with bounds of our own around it.
 *
 * A slot follows one connection from its bufferevent being made to evhttp
 * letting go of it. evhttp names a connection only with its first complete
 * request; slots must know earlier, because it is the silent and slow clients
 * that are to be bounded. So a slot is "adopted" right after evhttp has taken
 * the bufferevent: the argument of the bufferevent's call-backs is then evhttp's
 * connection, on which a close call-back is set.
 *
 * Threads: main. Locks: none. Not here: meaning of requests (router), answers
 * (respond). Answers that evhttp gives by itself to what is not even HTTP have
 * an HTML body and end the connection.
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
#include "api/server_socket.h"
#include "vmm/base/bits.h"
#include "vmm/base/log.h"
#include "vmm/base/ratelimit.h"

#define ACCEPT_RETRY_MS 100
#define READ_SLACK 8192 /* bytes of input beyond the largest request */

enum slot_state {
	SLOT_FREE,
	SLOT_ADOPTING,   /* evhttp is just taking the bufferevent */
	SLOT_READING,    /* waits for a request or has a part of it */
	SLOT_HANDLING,   /* a handler has the request */
	SLOT_WRITING,    /* the client is taking the reply */
	SLOT_DISCARDING, /* was refused; what it still sends is thrown away */
};

struct server_call;

struct slot {
	struct api_server *server;
	enum slot_state state;
	struct bufferevent *bev;
	struct evhttp_connection *evcon;
	struct event *deadline;
	struct server_call *call; /* while HANDLING */
	bool head_done;           /* the headers of the request have passed by */
	bool is_v1;
};

/* A request that a handler has. */
struct server_call {
	struct api_call call; /* first: a call is cast to us */
	struct slot *slot;          /* NULL once the client is gone */
	struct evhttp_request *req; /* the same */
};

struct api_server {
	struct api api;
	struct event_base *base;
	struct metrics *metrics;
	struct evhttp *http;
	struct evconnlistener *listener; /* NULL while the server is taken down */
	struct event *adopt;
	struct event *accept_retry;
	struct slot slots[LIMIT_API_CONNECTIONS];
	struct timeval deadline;
	bool draining;
	struct server_socket socket;
	struct api_server *next; /* in `servers` */
};

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

static struct slot *find_slot(struct api_server *s, enum slot_state state)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(s->slots) && s->slots[i].state != state)
		i++;
	return i < ARRAY_SIZE(s->slots) ? &s->slots[i] : NULL;
}

/* Accepts as long as there is a slot for what comes. */
static void update_listener(struct api_server *s)
{
	if (!s->listener)
		return;
	if (find_slot(s, SLOT_FREE) && !s->draining)
		evconnlistener_enable(s->listener);
	else
		evconnlistener_disable(s->listener);
}

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
	update_listener(arg);
}

static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg);

/* evhttp is about to use this for a connection that it has accepted. */
static struct bufferevent *on_new_connection(struct event_base *base, void *arg)
{
	struct api_server *s = arg;
	struct bufferevent *bev = bufferevent_socket_new(base, -1, 0);
	struct slot *slot = find_slot(s, SLOT_FREE);

	if (!bev || !slot)
		return bev;
	bufferevent_setwatermark(bev, EV_READ, 0,
				 LIMIT_API_HEADERS + s->api.max_body + READ_SLACK);
	evbuffer_add_cb(bufferevent_get_input(bev), on_input, slot);
	bufferevent_incref(bev);
	slot->bev = bev;
	slot->state = SLOT_ADOPTING;
	event_active(s->adopt, 0, 0);
	update_listener(s);
	return bev;
}

static void free_slot(struct slot *slot)
{
	event_del(slot->deadline);
	*slot = (struct slot){ .server = slot->server, .deadline = slot->deadline };
	update_listener(slot->server);
}

/* evhttp lets go of the connection; a call that waits will answer into the void. */
static void on_close(struct evhttp_connection *evcon, void *arg)
{
	struct slot *slot = arg;
	struct server_call *c = slot->call;

	if (c) {
		/* evhttp frees the request with the connection, unless it took it off before */
		if (!evhttp_request_get_connection(c->req))
			evhttp_request_free(c->req);
		c->req = NULL;
		c->slot = NULL;
		c->call.api = NULL; /* this may be the end of the server too */
	}
	free_slot(slot);
}

static void adopt_slot(struct slot *slot)
{
	struct bufferevent *bev = slot->bev;
	bufferevent_event_cb event_cb = NULL;
	void *evcon = NULL;

	bufferevent_getcb(bev, NULL, NULL, &event_cb, &evcon);
	if (event_cb && evcon && evhttp_connection_get_bufferevent(evcon) == bev) {
		slot->evcon = evcon;
		slot->state = SLOT_READING;
		evhttp_connection_set_closecb(slot->evcon, on_close, slot);
	} else {
		free_slot(slot); /* evhttp has dropped it already */
	}
	bufferevent_decref(bev);
}

static void on_adopt(evutil_socket_t fd, short what, void *arg)
{
	struct slot *slot;

	while ((slot = find_slot(arg, SLOT_ADOPTING)) != NULL)
		adopt_slot(slot);
}

/* Deadlines and input */

/* The client took too long. evhttp sees the end of the stream and cleans up. */
static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct slot *slot = arg;

	log_info("The API server closes a connection: its client is too slow.");
	shutdown(bufferevent_getfd(slot->bev), SHUT_RDWR);
}

/*
 * Answers a body that will be too large as soon as its length is known, at the
 * side of evhttp, which is still reading: the stream is closed for writing and
 * whatever the client goes on sending is thrown away until it closes too.
 */
static void refuse_large(struct slot *slot, struct evbuffer *input, uint64_t size)
{
	int fd = bufferevent_getfd(slot->bev);
	struct buf reply;

	buf_init(&reply, LIMIT_API_REPLY);
	if (respond_format_too_large(&slot->server->api, slot->is_v1, size, &reply) == 0)
		send(fd, reply.data, reply.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	buf_fini(&reply);
	shutdown(fd, SHUT_WR);
	slot->state = SLOT_DISCARDING;
	evbuffer_drain(input, evbuffer_get_length(input));
}

/* Looks at the head of a request before evhttp does. */
static void check_head(struct slot *slot, struct evbuffer *input)
{
	char bytes[LIMIT_API_HEADERS];
	struct http_head head;
	ssize_t len = evbuffer_copyout(input, bytes, sizeof(bytes));

	if (len <= 0)
		return;
	http_scan_head(bytes, (size_t)len, &head);
	slot->head_done = head.complete;
	slot->is_v1 = slot->is_v1 || head.is_v1;
	if (head.has_length && head.length > slot->server->api.max_body)
		refuse_large(slot, input, head.length);
}

/* Bytes of a request have come, by themselves or behind the last one. */
static void note_input(struct slot *slot, struct evbuffer *input)
{
	if (!event_pending(slot->deadline, EV_TIMEOUT, NULL))
		event_add(slot->deadline, &slot->server->deadline);
	if (!slot->head_done)
		check_head(slot, input);
}

static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg)
{
	struct slot *slot = arg;

	if (info->n_added == 0)
		return;
	if (slot->state == SLOT_DISCARDING)
		evbuffer_drain(input, evbuffer_get_length(input));
	else if (slot->state == SLOT_READING)
		note_input(slot, input);
}

/* Replies */

/* The client has taken the whole reply. */
static void on_reply_taken(struct evhttp_request *req, void *arg)
{
	struct slot *slot = arg;
	struct evbuffer *input = bufferevent_get_input(slot->bev);

	event_del(slot->deadline);
	slot->state = SLOT_READING;
	slot->head_done = false;
	slot->is_v1 = false;
	if (evbuffer_get_length(input) > 0)
		note_input(slot, input);
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
	slot->call = NULL;
	slot->state = SLOT_WRITING;
	event_add(slot->deadline, &slot->server->deadline);
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

static struct slot *slot_of(struct api_server *s, struct evhttp_request *req)
{
	struct evhttp_connection *evcon = evhttp_request_get_connection(req);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(s->slots); i++) {
		if (s->slots[i].evcon == evcon)
			return &s->slots[i];
	}
	return NULL;
}

/* evhttp has a whole request. */
static void on_request(struct evhttp_request *req, void *arg)
{
	struct api_server *s = arg;
	struct slot *slot = slot_of(s, req);
	const char *fault = check_request(req);
	struct server_call *c = slot ? call_new(slot, req) : NULL;

	if (!c) {
		evhttp_send_error(req, HTTP_SERVUNAVAIL, NULL);
		return;
	}
	/* "GET http://host/path" is no reason to close, as it would be for a proxy */
	req->flags &= ~EVHTTP_PROXY_REQUEST;
	event_del(slot->deadline);
	slot->state = SLOT_HANDLING;
	slot->call = c;
	c->call.is_v1 = slot->is_v1;
	if (fault)
		respond_bad_http(&c->call, fault);
	else
		router_dispatch(&c->call);
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
	evhttp_set_bevcb(s->http, on_new_connection, s);
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
	size_t i;

	s->adopt = event_new(s->base, -1, 0, on_adopt, s);
	s->accept_retry = event_new(s->base, -1, 0, on_accept_retry, s);
	if (!s->adopt || !s->accept_retry)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(s->slots); i++) {
		s->slots[i].server = s;
		s->slots[i].deadline = event_new(s->base, -1, 0, on_deadline, &s->slots[i]);
		if (!s->slots[i].deadline)
			return -ENOMEM;
	}
	return 0;
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
	update_listener(server);
	event_add(server->accept_retry, &left); /* wakes the loop at the end of the time */
	while (find_slot(server, SLOT_WRITING) && ratelimit_now() < until)
		event_base_loop(server->base, EVLOOP_ONCE);
	event_del(server->accept_retry);
}

static void free_events(struct api_server *s)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(s->slots); i++) {
		if (s->slots[i].deadline)
			event_free(s->slots[i].deadline);
	}
	if (s->adopt)
		event_free(s->adopt);
	if (s->accept_retry)
		event_free(s->accept_retry);
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
	if (server->adopt)
		on_adopt(-1, 0, server); /* so that every connection has its close call-back */
	server->listener = NULL;         /* evhttp frees it */
	if (server->http)
		evhttp_free(server->http);
	server_socket_fini(&server->socket);
	if (server->metrics)
		api_metrics_remove(server->metrics, &server->api.metrics);
	free_events(server);
	forget_server(server);
	free(server);
	return NULL;
}
