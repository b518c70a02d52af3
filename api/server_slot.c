/*
 * Slots: accepting, deadlines, input, clients that leave.
 * Threads: main. Locks: none. Not here: requests and replies (server.c).
 */
#include "api/server_slot.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/http_checks.h"
#include "api/respond.h"
#include "vmm/base/bits.h"
#include "vmm/base/log.h"

#define READ_SLACK 8192 /* bytes of input beyond the largest request */

/* Calls without a client, of all servers: they outlive theirs. */
static unsigned orphans;

struct slot *slots_find(struct api_server *s, enum slot_state state)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(s->slots) && s->slots[i].state != state)
		i++;
	return i < ARRAY_SIZE(s->slots) ? &s->slots[i] : NULL;
}

struct slot *slots_find_connection(struct api_server *s, const struct evhttp_connection *evcon)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(s->slots); i++) {
		if (s->slots[i].evcon == evcon)
			return &s->slots[i];
	}
	return NULL;
}

/* A connection that has had a request and of which nothing has been read since. */
static bool is_idle(const struct slot *slot)
{
	return slot->state == SLOT_READING && slot->idle_since > 0;
}

static bool has_unread(const struct slot *slot)
{
	char byte;

	return recv(bufferevent_getfd(slot->bev), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The one that is idle for the longest time, rather without a request on its way. */
static struct slot *longest_idle(struct api_server *s)
{
	bool best_unread = false;
	struct slot *best = NULL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(s->slots); i++) {
		struct slot *slot = &s->slots[i];
		bool unread;

		if (!is_idle(slot))
			continue;
		unread = has_unread(slot);
		if (!best || unread < best_unread ||
		    (unread == best_unread && slot->idle_since < best->idle_since)) {
			best = slot;
			best_unread = unread;
		}
	}
	return best;
}

static bool has_idle(const struct api_server *s)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(s->slots) && !is_idle(&s->slots[i]))
		i++;
	return i < ARRAY_SIZE(s->slots);
}

void slots_update_listener(struct api_server *s)
{
	if (!s->listener)
		return;
	if (!s->draining && (slots_find(s, SLOT_FREE) || has_idle(s)))
		evconnlistener_enable(s->listener);
	else
		evconnlistener_disable(s->listener);
}

/* A free slot, if need be that of an idle connection, which is closed. */
static struct slot *make_free(struct api_server *s)
{
	struct slot *slot = slots_find(s, SLOT_FREE);

	if (slot)
		return slot;
	slot = longest_idle(s);
	if (slot)
		evhttp_connection_free(slot->evcon); /* on_close() frees the slot */
	return slot;
}

static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg);

struct bufferevent *slots_on_new_connection(struct event_base *base, void *arg)
{
	struct api_server *s = arg;
	struct bufferevent *bev = bufferevent_socket_new(base, -1, 0);
	struct slot *slot = make_free(s);

	if (!bev || !slot)
		return bev;
	bufferevent_setwatermark(bev, EV_READ, 0,
				 LIMIT_API_HEADERS + s->api.max_body + READ_SLACK);
	evbuffer_add_cb(bufferevent_get_input(bev), on_input, slot);
	bufferevent_incref(bev);
	slot->bev = bev;
	slot->state = SLOT_ADOPTING;
	event_active(s->adopt, 0, 0);
	slots_update_listener(s);
	return bev;
}

static void unwatch(struct slot *slot)
{
	if (slot->is_watched)
		epoll_ctl(slot->server->leave_fd, EPOLL_CTL_DEL, bufferevent_getfd(slot->bev), NULL);
	slot->is_watched = false;
}

static void free_slot(struct slot *slot)
{
	unwatch(slot);
	event_del(slot->deadline);
	*slot = (struct slot){ .server = slot->server, .deadline = slot->deadline };
	slots_update_listener(slot->server);
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
		orphans++;
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
		event_add(slot->deadline, &slot->server->deadline);
	} else {
		free_slot(slot); /* evhttp has dropped it already */
	}
	bufferevent_decref(bev);
}

void slots_adopt(struct api_server *s)
{
	struct slot *slot;

	while ((slot = slots_find(s, SLOT_ADOPTING)) != NULL)
		adopt_slot(slot);
}

static void on_adopt(evutil_socket_t fd, short what, void *arg)
{
	slots_adopt(arg);
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
	slot->idle_since = 0;
	slots_update_listener(slot->server);
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

/* The course of a request */

void slot_handle(struct slot *slot, struct server_call *call)
{
	event_del(slot->deadline);
	slot->state = SLOT_HANDLING;
	slot->call = call;
}

/*
 * evhttp reads nothing while a reply is due, so it would not see the client
 * leave. That a client will send no more is no reason to drop it: the set is
 * asked for no event and so tells of connections closed both ways only.
 */
void slot_await_answer(struct slot *slot)
{
	struct epoll_event event = { .data.ptr = slot };
	int fd = bufferevent_getfd(slot->bev);

	slot->is_watched = epoll_ctl(slot->server->leave_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void on_leave(evutil_socket_t fd, short what, void *arg)
{
	struct epoll_event event;
	struct slot *slot;

	if (epoll_wait(fd, &event, 1, 0) != 1)
		return;
	slot = event.data.ptr;
	if (orphans < LIMIT_API_ORPHANS)
		evhttp_connection_free(slot->evcon);
	else
		unwatch(slot); /* it keeps its place until the answer */
}

void slots_orphan_answered(void)
{
	orphans--;
}

void slot_reply(struct slot *slot)
{
	unwatch(slot);
	slot->call = NULL;
	slot->state = SLOT_WRITING;
	event_add(slot->deadline, &slot->server->deadline);
}

void slot_taken(struct slot *slot)
{
	struct evbuffer *input = bufferevent_get_input(slot->bev);

	event_del(slot->deadline);
	slot->state = SLOT_READING;
	slot->head_done = false;
	slot->is_v1 = false;
	slot->idle_since = ++slot->server->replies;
	if (evbuffer_get_length(input) > 0)
		note_input(slot, input);
	else
		slots_update_listener(slot->server);
}

/* Setting up and taking down */

int slots_init(struct api_server *s)
{
	size_t i;

	s->leave_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->leave_fd < 0)
		return -errno;
	s->leave = event_new(s->base, s->leave_fd, EV_READ | EV_PERSIST, on_leave, s);
	s->adopt = event_new(s->base, -1, 0, on_adopt, s);
	if (!s->leave || event_add(s->leave, NULL) < 0 || !s->adopt)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(s->slots); i++) {
		s->slots[i].server = s;
		s->slots[i].deadline = event_new(s->base, -1, 0, on_deadline, &s->slots[i]);
		if (!s->slots[i].deadline)
			return -ENOMEM;
	}
	return 0;
}

void slots_fini(struct api_server *s)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(s->slots); i++) {
		if (s->slots[i].deadline)
			event_free(s->slots[i].deadline);
	}
	if (s->adopt)
		event_free(s->adopt);
	if (s->leave)
		event_free(s->leave);
	if (s->leave_fd >= 0)
		close(s->leave_fd);
}
