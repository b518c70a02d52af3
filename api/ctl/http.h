/*
 * A small HTTP/1.1 client over a unix socket: one request, one answer.
 * Threads: the caller's; it waits. Locks: none.
 */
#ifndef LULL_CTL_HTTP_H
#define LULL_CTL_HTTP_H

#include <stddef.h>

#include "vmm/base/buf.h"
#include "vmm/base/error.h"

struct ctl_answer {
	int status;
	struct buf body; /* to be released with buf_fini() */
};

/*
 * Sends one request (`body` may be NULL) and waits for its answer, for at most
 * `timeout_s` seconds without a byte. -ENOENT, -ECONNREFUSED, ... from the
 * connection, -ETIMEDOUT, -EPROTO for an answer that is none, -EMSGSIZE for one
 * that is too large. An HTTP status that tells of an error is no error here.
 */
int ctl_request(const char *socket_path, unsigned timeout_s, const char *method, const char *path,
		const char *body, struct ctl_answer *ret, struct error *err);

/* As ctl_request(), but an answer of 400 and above is an error with the server's text. */
int ctl_ask(const char *socket_path, unsigned timeout_s, const char *method, const char *path,
	    const char *body, struct ctl_answer *ret, struct error *err);

#endif
