/*
 * The listening unix socket and its name in the file system.
 * Threads: main. Locks: none.
 */
#ifndef LULL_API_SERVER_SOCKET_H
#define LULL_API_SERVER_SOCKET_H

#include <sys/types.h>

#include "vmm/base/error.h"

struct server_socket {
	char *path; /* NULL: none was made */
	/* of the socket's file, to know it again */
	dev_t dev;
	ino_t ino;
};

/*
 * Makes a listening, non-blocking socket at `path`, which must not exist: a
 * stale socket of another process is for its owner to remove. Returns the
 * descriptor; or -EADDRINUSE, -ENAMETOOLONG, another errno.
 */
int server_socket_open(struct server_socket *s, const char *path, struct error *err);

/* Removes the name, unless something else has taken its place. */
void server_socket_fini(struct server_socket *s);

#endif
