/*
 * Connections of the control socket, inside of the server.
 *
 * A slot follows one connection from its bufferevent being made to evhttp
 * letting go of it. evhttp names a connection only with its first complete
 * request; slots must know earlier, because it is the silent and slow clients
 * that are to be bounded. So a slot is "adopted" right after evhttp has taken
 * the bufferevent: the argument of the bufferevent's call-backs is then evhttp's
 * connection, on which a close call-back is set.
 *
 * Threads: main. Locks: none. Not here: requests and replies (server.c).
 */
#ifndef LULL_API_SERVER_SLOT_H
#define LULL_API_SERVER_SLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

#include "api/api.h"
#include "api/server_socket.h"

struct bufferevent;
struct event;
struct event_base;
struct evconnlistener;
struct evhttp;
struct evhttp_connection;
struct evhttp_request;
struct server_call;

enum slot_state {
	SLOT_FREE,
	SLOT_ADOPTING,   /* evhttp is just taking the bufferevent */
	SLOT_READING,    /* waits for a request or has a part of it */
	SLOT_HANDLING,   /* a handler has the request */
	SLOT_WRITING,    /* the client is taking the reply */
	SLOT_DISCARDING, /* was refused; what it still sends is thrown away */
};

struct slot {
	struct api_server *server;
	enum slot_state state;
	struct bufferevent *bev;
	struct evhttp_connection *evcon;
	struct event *deadline;
	struct server_call *call; /* while HANDLING */
	uint64_t idle_since; /* number of a reply: kept alive, nothing came since; 0: not idle */
	bool is_watched;     /* for its client leaving, while HANDLING */
	bool head_done;      /* the headers of the request have passed by */
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
	struct event *leave;
	int leave_fd; /* an epoll set of connections: tells which of them was closed */
	struct slot slots[LIMIT_API_CONNECTIONS];
	uint64_t replies; /* taken so far, for `idle_since` */
	struct timeval deadline;
	bool draining;
	struct server_socket socket;
	struct api_server *next; /* in server.c's list of all */
};

/* Makes the slots' events; after it, also if it failed, slots_fini() is due. */
int slots_init(struct api_server *s);
void slots_fini(struct api_server *s);

struct slot *slots_find(struct api_server *s, enum slot_state state);
struct slot *slots_find_connection(struct api_server *s, const struct evhttp_connection *evcon);
/* Accepts as long as there is a slot for what comes, or can be. */
void slots_update_listener(struct api_server *s);
/* Makes sure that every connection has its close call-back. */
void slots_adopt(struct api_server *s);

/* evhttp's call-back (with the server as `arg`): the bufferevent of a new connection. */
struct bufferevent *slots_on_new_connection(struct event_base *base, void *arg);

/* The request is complete and `call` is its handler's. */
void slot_handle(struct slot *slot, struct server_call *call);
/* The handler will answer later: the slot is freed if the client leaves before. */
void slot_await_answer(struct slot *slot);
/* The reply is about to be written. */
void slot_reply(struct slot *slot);
/* The client has taken the whole reply. */
void slot_taken(struct slot *slot);

/* A call that went on without its client has been answered. */
void slots_orphan_answered(void);

#endif
