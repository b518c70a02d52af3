/*
 * The listening unix socket. Threads: main. Locks: none.
 */
#include "api/server_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "vmm/base/cleanup.h"

#define BACKLOG 128

static int bind_socket(int fd, const char *path, struct error *err)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	char meaning[128];
	int code;

	if (strlen(path) >= sizeof(name.sun_path))
		return error_set(err, -ENAMETOOLONG,
				 "Failed to bind and run the HTTP server: the path of the API "
				 "socket has %zu bytes, the most is %zu: %s", strlen(path),
				 sizeof(name.sun_path) - 1, path);
	memcpy(name.sun_path, path, strlen(path) + 1);
	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0)
		return 0;
	code = errno;
	if (code == EADDRINUSE)
		return error_set(err, -code, "Failed to open the API socket at: %s. Check that it "
					     "is not already used.", path);
	return error_set(err, -code, "Failed to bind and run the HTTP server: %s (os error %d): %s",
			 strerror_r(code, meaning, sizeof(meaning)), code, path);
}

int server_socket_open(struct server_socket *s, const char *path, struct error *err)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;
	int ret;

	if (fd < 0)
		return error_set_errno(err, -errno, "Failed to bind and run the HTTP server");
	ret = bind_socket(fd, path, err);
	if (ret < 0)
		return ret;
	if (listen(fd, BACKLOG) < 0)
		return error_set_errno(err, -errno, "Failed to bind and run the HTTP server");
	if (lstat(path, &st) == 0) {
		s->path = strdup(path);
		s->dev = st.st_dev;
		s->ino = st.st_ino;
	}
	return fd_take(&fd);
}

void server_socket_fini(struct server_socket *s)
{
	struct stat st;

	if (s->path && lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->path);
	free(s->path);
	s->path = NULL;
}
