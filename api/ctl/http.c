/*
 * HTTP client. Threads: the caller's. Locks: none.
 * Not here: what requests mean (commands, run).
 */
#include "api/ctl/http.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "vmm/base/cleanup.h"

#define ANSWER_MAX (2u << 20) /* bytes of head and body */

static int open_connection(const char *path, unsigned timeout_s, struct error *err)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = timeout_s };

	if (strlen(path) >= sizeof(name.sun_path))
		return error_set(err, -ENAMETOOLONG, "the path of the socket is too long: %s", path);
	memcpy(name.sun_path, path, strlen(path) + 1);
	if (fd < 0)
		return error_set_errno(err, -errno, "cannot make a socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0)
		return error_set_errno(err, -errno, "cannot connect to %s", path);
	return fd_take(&fd);
}

static int send_all(int fd, const struct buf *b)
{
	size_t done = 0;

	while (done < b->len) {
		ssize_t put = send(fd, b->data + done, b->len - done, MSG_NOSIGNAL);

		if (put < 0 && errno != EINTR)
			return -errno;
		if (put > 0)
			done += (size_t)put;
	}
	return 0;
}

static int send_request(int fd, const char *method, const char *path, const char *body)
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
	ret = buf_failed(&out) ? -ENOMEM : send_all(fd, &out);
	buf_fini(&out);
	return ret;
}

/* Everything until the server closes, which it was asked to do. */
static int receive_all(int fd, struct buf *in)
{
	char part[16384];
	ssize_t got;
	int ret;

	for (;;) {
		got = recv(fd, part, sizeof(part), 0);
		if (got == 0)
			return 0;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == ECONNRESET && in->len > 0)
			return 0; /* it had not read all of a request that it refused */
		if (got < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
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

int ctl_request(const char *socket_path, unsigned timeout_s, const char *method, const char *path,
		const char *body, struct ctl_answer *ret, struct error *err)
{
	_cleanup_close_ int fd = open_connection(socket_path, timeout_s, err);
	struct buf in;
	int code;

	if (fd < 0)
		return fd;
	buf_init(&in, ANSWER_MAX);
	code = send_request(fd, method, path, body);
	if (code == 0 || code == -EPIPE) /* a refusal may be there before all was sent */
		code = receive_all(fd, &in);
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

int ctl_ask(const char *socket_path, unsigned timeout_s, const char *method, const char *path,
	    const char *body, struct ctl_answer *ret, struct error *err)
{
	int code = ctl_request(socket_path, timeout_s, method, path, body, ret, err);
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
