/*
 * HTTP client. Threads: the caller's. Locks: none.
 * Not here: what requests mean (commands, run).
 */
#include "api/ctl/http.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "vmm/base/cleanup.h"

#define ANSWER_MAX (2u << 20) /* bytes of head and body */
#define RETRY_MS 10           /* between two tries to connect */

/* 0 when `fd` (negative: none) is ready, -ETIMEDOUT, -ECANCELED. */
static int wait_for(const struct ctl_server *to, int fd, short events, int ms)
{
	struct pollfd p[2] = {
		{ .fd = fd, .events = events },
		{ .fd = to->stop_fd > 0 ? to->stop_fd : -1, .events = POLLIN },
	};
	int ret;

	do {
		ret = poll(p, 2, ms);
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return -errno;
	if (p[1].revents)
		return -ECANCELED;
	return ret > 0 ? 0 : -ETIMEDOUT;
}

static int timeout_ms(const struct ctl_server *to)
{
	return (int)to->timeout_s * 1000;
}

/* A server that is busy has no place in its backlog; nothing tells when it has. */
static int connect_patiently(const struct ctl_server *to, int fd, const struct sockaddr_un *name)
{
	int waited, ret = wait_for(to, -1, 0, 0);

	for (waited = 0; ret == -ETIMEDOUT && waited <= timeout_ms(to); waited += RETRY_MS) {
		if (connect(fd, (const struct sockaddr *)name, sizeof(*name)) == 0)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		ret = wait_for(to, -1, 0, RETRY_MS);
	}
	return ret;
}

static int check_peer(const struct ctl_server *to, int fd, struct error *err)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (to->pid == 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return error_set_errno(err, -errno, "cannot tell who listens on %s", to->socket);
	if (peer.pid != to->pid)
		return error_set(err, -EPERM, "another process (%d) listens on %s", (int)peer.pid,
				 to->socket);
	return 0;
}

static int open_connection(const struct ctl_server *to, struct error *err)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int ret;

	if (strlen(to->socket) >= sizeof(name.sun_path))
		return error_set(err, -ENAMETOOLONG, "the path of the socket is too long: %s",
				 to->socket);
	memcpy(name.sun_path, to->socket, strlen(to->socket) + 1);
	if (fd < 0)
		return error_set_errno(err, -errno, "cannot make a socket");
	ret = connect_patiently(to, fd, &name);
	if (ret < 0)
		return error_set_errno(err, ret, "cannot connect to %s", to->socket);
	ret = check_peer(to, fd, err);
	return ret < 0 ? ret : fd_take(&fd);
}

int ctl_probe(const struct ctl_server *to, struct error *err)
{
	_cleanup_close_ int fd = open_connection(to, err);

	return fd < 0 ? fd : 0;
}

static int send_all(const struct ctl_server *to, int fd, const struct buf *b)
{
	size_t done = 0;

	while (done < b->len) {
		ssize_t put = send(fd, b->data + done, b->len - done, MSG_NOSIGNAL);
		int ret = 0;

		if (put >= 0)
			done += (size_t)put;
		else if (errno == EAGAIN)
			ret = wait_for(to, fd, POLLOUT, timeout_ms(to));
		else if (errno != EINTR)
			ret = -errno;
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int send_request(const struct ctl_server *to, int fd, const char *method, const char *path,
			const char *body)
{
	struct buf out;
	int ret;

	buf_init(&out, ANSWER_MAX);
	buf_printf(&out, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
			 "Accept: application/json\r\n", method, path);
	if (body)
		buf_printf(&out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			   strlen(body));
	buf_printf(&out, "\r\n%s", body ? body : "");
	ret = buf_failed(&out) ? -ENOMEM : send_all(to, fd, &out);
	buf_fini(&out);
	return ret;
}

/* Everything until the server closes, which it was asked to do. */
static int receive_all(const struct ctl_server *to, int fd, struct buf *in)
{
	char part[16384];
	ssize_t got;
	int ret;

	for (;;) {
		ret = wait_for(to, fd, POLLIN, timeout_ms(to));
		if (ret < 0)
			return ret;
		got = recv(fd, part, sizeof(part), 0);
		if (got == 0)
			return 0;
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0 && errno == ECONNRESET && in->len > 0)
			return 0; /* it had not read all of a request that it refused */
		if (got < 0)
			return -errno;
		ret = buf_append(in, part, (size_t)got);
		if (ret < 0)
			return ret == -ENOSPC ? -EMSGSIZE : ret;
	}
}

/* Splits "HTTP/1.1 204 No Content\r\n...\r\n\r\nbody". */
static int parse_answer(const struct buf *in, struct ctl_answer *ret)
{
	const char *text = buf_text(in);
	const char *body = strstr(text, "\r\n\r\n");
	long status;

	if (strncmp(text, "HTTP/1.", 7) != 0 || in->len < 12 || !body)
		return -EPROTO;
	status = strtol(text + 9, NULL, 10);
	if (status < 100 || status > 599)
		return -EPROTO;
	ret->status = (int)status;
	buf_init(&ret->body, ANSWER_MAX);
	return buf_append(&ret->body, body + 4, in->len - (size_t)(body + 4 - text));
}

int ctl_request(const struct ctl_server *to, const char *method, const char *path,
		const char *body, struct ctl_answer *ret, struct error *err)
{
	_cleanup_close_ int fd = open_connection(to, err);
	struct buf in;
	int code;

	if (fd < 0)
		return fd;
	buf_init(&in, ANSWER_MAX);
	code = send_request(to, fd, method, path, body);
	if (code == 0 || code == -EPIPE) /* a refusal may be there before all was sent */
		code = receive_all(to, fd, &in);
	if (code == 0)
		code = parse_answer(&in, ret);
	buf_fini(&in);
	if (code < 0)
		error_set_errno(err, code, "%s %s", method, path);
	return code;
}

/* "fault_message", or "error", or the message inside "error"; else NULL. */
static const char *error_text(struct json_object *answer)
{
	struct json_object *value;

	if (json_object_object_get_ex(answer, "fault_message", &value))
		return json_object_get_string(value);
	if (!json_object_object_get_ex(answer, "error", &value))
		return NULL;
	if (json_object_is_type(value, json_type_object) &&
	    !json_object_object_get_ex(value, "message", &value))
		return NULL;
	return json_object_get_string(value);
}

int ctl_ask(const struct ctl_server *to, const char *method, const char *path, const char *body,
	    struct ctl_answer *ret, struct error *err)
{
	int code = ctl_request(to, method, path, body, ret, err);
	struct json_object *answer;
	const char *text;

	if (code < 0 || ret->status < 400)
		return code;
	answer = json_tokener_parse(buf_text(&ret->body));
	text = answer ? error_text(answer) : NULL;
	if (text)
		error_set(err, -EREMOTEIO, "%s", text);
	else
		error_set(err, -EREMOTEIO, "%s %s: status %d", method, path, ret->status);
	json_object_put(answer);
	buf_fini(&ret->body);
	return -EREMOTEIO;
}
