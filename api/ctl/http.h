/*
 * A small HTTP/1.1 client over a unix socket: one request, one answer.
 * Threads: the caller's; it waits. Locks: none.
 */
#ifndef LULL_CTL_HTTP_H
#define LULL_CTL_HTTP_H

#include <stddef.h>
#include <sys/types.h>

#include "vmm/base/buf.h"
#include "vmm/base/error.h"

/* Whom to ask, and how long. */
struct ctl_server {
	const char *socket; /* its path */
	unsigned timeout_s; /* without a byte */
	pid_t pid;          /* the process that must listen there; 0: any */
	int stop_fd;        /* readable: nothing is waited for any more; 0: none */
};

struct ctl_answer {
	int status;
	struct buf body; /* to be released with buf_fini() */
};

/*
 * 0 if the server can be reached. -ENOENT, -ECONNREFUSED, ... from the
 * connection, -EPERM if another process listens, -ETIMEDOUT, -ECANCELED by stop_fd.
 */
int ctl_probe(const struct ctl_server *to, struct error *err);

/*
 * Sends one request (`body` may be NULL) and waits for its answer. Errors of
 * ctl_probe(), -EPROTO for an answer that is none, -EMSGSIZE for one that is too
 * large. An HTTP status that tells of an error is no error here.
 */
int ctl_request(const struct ctl_server *to, const char *method, const char *path,
		const char *body, struct ctl_answer *ret, struct error *err);

/* As ctl_request(), but an answer of 400 and above is an error with the server's text. */
int ctl_ask(const struct ctl_server *to, const char *method, const char *path, const char *body,
	    struct ctl_answer *ret, struct error *err);

#endif
