/*
 * The control socket: HTTP/1.1 on a unix socket, on the main event loop.
 *
 * Kept-alive and pipelined connections are served one request at a time.
 * A client cannot hold more than its share:
 *	- LIMIT_API_CONNECTIONS connections; for a further one the longest idle of
 *	  them is closed, and if none is idle it waits, unaccepted, in the backlog
 *	  of the socket (there is no 503);
 *	- LIMIT_API_DEADLINE_MS from the connection to the last byte of its first
 *	  request, from the first byte of a later request to its last, and from
 *	  the reply's start to the client having taken it;
 *	- LIMIT_API_IDLE_MS without a further request;
 *	- LIMIT_API_ORPHANS calls that still wait for the VM when their clients have
 *	  left; such a client gives its place back, beyond the limit with the answer;
 *	- heads of LIMIT_API_HEADERS bytes, bodies of `max_body` bytes. Nothing
 *	  more of a client is read while a reply is due, and its next request is
 *	  not looked at before it took the last reply, so that one reply of at
 *	  most LIMIT_API_REPLY bytes is all that is ever kept for it.
 *
 * Threads: main. Locks: none.
 */
#ifndef LULL_API_SERVER_H
#define LULL_API_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "vmm/base/error.h"
#include "vmm/event_loop.h"

struct metrics;
struct vm;
struct api_server;

struct api_options {
	const char *socket_path;
	struct api_identity identity; /* its texts must outlive the server */
	size_t max_body;              /* bytes, to LIMIT_API_BODY_MAX; 0: LIMIT_API_BODY */
	struct metrics *metrics;      /* gets the groups of the API; NULL: none */
	uint32_t deadline_ms;         /* 0: LIMIT_API_DEADLINE_MS */
	uint32_t idle_ms;             /* 0: LIMIT_API_IDLE_MS */
};

/*
 * Creates the socket, which must not exist, and serves it whenever the loop
 * runs. NULL with `err` filled: -EADDRINUSE, -ENAMETOOLONG, another errno.
 * The caller ignores SIGPIPE.
 */
struct api_server *api_server_new(struct event_loop *loop, struct vm *vm,
				  const struct api_options *options, struct error *err);

/*
 * Runs the loop until all replies given so far have been taken, or for `ms`
 * milliseconds; no new connection is accepted. For the end of the process.
 */
void api_server_drain(struct api_server *server, uint32_t ms);

/*
 * Closes everything; removes the socket if it is still ours. Calls that wait
 * for the VM stay valid and are dropped when they are answered. NULL allowed.
 */
struct api_server *api_server_free(struct api_server *server);

#endif
