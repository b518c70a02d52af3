/*
 * Host side of a console.
 *
 * Standard input and output are shared with the shell that started us, so
 * they are opened anew through /proc for a descriptor of our own that may be
 * non-blocking; where that cannot be done, the flags are put back at close.
 * Regular files and /dev/null cannot be polled: they are read when there is
 * room for their bytes, and never refuse output.
 *
 * Threads, locks: see the header.
 * Not here: buffers (the device's), rate limits (the device's).
 */
#include "devices/chardev.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "vmm/base/cleanup.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"

#define INPUT_CHUNK 256
/* A terminal refuses input while another job is in the foreground. */
#define RETRY_NS 1000000000ull

static bool is_kind(int fd, mode_t kind)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

/* epoll refuses regular files and some character devices. */
static bool can_poll(int fd)
{
	struct epoll_event event = { .events = 0 };
	_cleanup_close_ int set = epoll_create1(EPOLL_CLOEXEC);

	return set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* ---- opening ------------------------------------------------------------------------------ */

/*
 * A non-blocking descriptor for the process's `fd`: an own one if possible,
 * else `fd` itself, whose flags chardev_close() restores.
 */
static int adopt(int fd, int access, bool *ret_borrowed, bool *ret_blocking)
{
	char path[32];
	int flags = fcntl(fd, F_GETFL);
	int own;

	*ret_borrowed = true;
	*ret_blocking = false;
	if (flags < 0)
		return -EBADF;
	/* A file keeps its shared offset; a socket is used with MSG_DONTWAIT. */
	if (is_kind(fd, S_IFREG) || is_kind(fd, S_IFSOCK))
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own >= 0) {
		*ret_borrowed = false;
		return own;
	}
	if (!(flags & O_NONBLOCK) && fd_set_nonblocking(fd, true) == 0)
		*ret_blocking = true;
	return fd;
}

/* Keys go to the guest one by one; output processing stays, for our log lines. */
static void make_raw(struct chardev *c)
{
	struct termios t;

	if (c->in_fd < 0 || !isatty(c->in_fd) || tcgetattr(c->in_fd, &t) < 0)
		return;
	if (tcgetpgrp(c->in_fd) != getpgrp())
		return;
	c->saved_termios = t;
	cfmakeraw(&t);
	t.c_oflag = c->saved_termios.c_oflag;
	c->is_raw = tcsetattr(c->in_fd, TCSANOW, &t) == 0;
}

static int open_stdio(struct chardev *c)
{
	c->in_fd = adopt(STDIN_FILENO, O_RDONLY, &c->in_borrowed, &c->in_blocking);
	c->out_fd = adopt(STDOUT_FILENO, O_WRONLY, &c->out_borrowed, &c->out_blocking);
	make_raw(c);
	return 0;
}

static int open_file(struct chardev *c, const char *path, struct error *err)
{
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);

	if (fd < 0)
		return error_set_errno(err, -errno, "serial: cannot open %s", path);
	c->out_fd = fd;
	return 0;
}

static int open_pty(struct chardev *c, struct error *err)
{
	char name[64];
	struct termios t;
	int fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return error_set_errno(err, -errno, "serial: cannot make a pseudo terminal");
	c->in_fd = fd;
	c->out_fd = fd;
	if (grantpt(fd) < 0 || unlockpt(fd) < 0 || ptsname_r(fd, name, sizeof(name)) != 0)
		return error_set_errno(err, -errno, "serial: cannot set up a pseudo terminal");
	c->slave_fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (c->slave_fd < 0)
		return error_set_errno(err, -errno, "serial: cannot open %s", name);
	/* Else the terminal would echo the guest's output back to the guest. */
	if (tcgetattr(c->slave_fd, &t) == 0) {
		cfmakeraw(&t);
		(void)tcsetattr(c->slave_fd, TCSANOW, &t);
	}
	log_always("serial console on %s", name);
	return 0;
}

static int open_socket(struct chardev *c, const char *path, struct error *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path))
		return error_set(err, -ENAMETOOLONG, "serial: socket path is longer than %zu bytes",
				 sizeof(addr.sun_path) - 1);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set_errno(err, -errno, "serial: cannot make a socket");
	c->listen_fd = fd;
	c->socket_path = strdup(path);
	if (!c->socket_path)
		return error_set_errno(err, -ENOMEM, "serial: cannot open %s", path);
	/* Before bind() this is the mode the path gets. */
	(void)fchmod(fd, 0600);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		int code = -errno;

		free(c->socket_path);
		c->socket_path = NULL;
		return error_set_errno(err, code, "serial: cannot bind %s", path);
	}
	if (listen(fd, 1) < 0)
		return error_set_errno(err, -errno, "serial: cannot listen on %s", path);
	return 0;
}

int chardev_open(struct chardev *c, const struct serial_config *config, struct error *err)
{
	memset(c, 0, sizeof(*c));
	c->kind = config->console;
	c->in_fd = -EBADF;
	c->out_fd = -EBADF;
	c->listen_fd = -EBADF;
	c->slave_fd = -EBADF;
	c->gone_fd = -EBADF;
	switch (config->console) {
	case CONSOLE_STDIO:
		return open_stdio(c);
	case CONSOLE_FILE:
		return open_file(c, config->path, err);
	case CONSOLE_PTY:
		return open_pty(c, err);
	case CONSOLE_SOCKET:
		return open_socket(c, config->path, err);
	case CONSOLE_NONE:
		return 0;
	}
	return error_set(err, -EINVAL, "serial: unknown kind of console");
}

/* A borrowed descriptor is not closed, and made blocking again if it was. */
static void give_back(int fd, bool borrowed, bool blocking)
{
	if (fd >= 0 && !borrowed)
		close(fd);
	else if (fd >= 0 && blocking)
		(void)fd_set_nonblocking(fd, false);
}

static void close_fds(struct chardev *c)
{
	give_back(c->in_fd, c->in_borrowed, c->in_blocking);
	if (c->out_fd != c->in_fd)
		give_back(c->out_fd, c->out_borrowed, c->out_blocking);
	c->in_fd = -EBADF;
	c->out_fd = -EBADF;
}

void chardev_close(struct chardev *c)
{
	/* A job in the background may not touch the terminal, and the shell has put it right. */
	if (c->is_raw && tcgetpgrp(STDIN_FILENO) == getpgrp())
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &c->saved_termios);
	c->is_raw = false;
	close_fds(c);
	if (c->slave_fd >= 0)
		close(c->slave_fd);
	if (c->listen_fd >= 0)
		close(c->listen_fd);
	c->slave_fd = -EBADF;
	c->listen_fd = -EBADF;
	if (c->socket_path)
		(void)unlink(c->socket_path);
	free(c->socket_path);
	c->socket_path = NULL;
}

/* ---- events ------------------------------------------------------------------------------- */

static int watch_fds(struct chardev *c);

static void unwatch_fds(struct chardev *c)
{
	c->in_source = event_source_free(c->in_source);
	c->out_source = event_source_free(c->out_source);
	c->gone_source = event_source_free(c->gone_source);
	if (c->gone_fd >= 0)
		close(c->gone_fd);
	c->gone_fd = -EBADF;
}

/* The peer of the socket left; the next one may come. */
static void drop_peer(struct chardev *c)
{
	unwatch_fds(c);
	close_fds(c);
	event_source_enable(c->listen_source, true);
	c->ops->peer(c->user, false);
}

static void on_gone(void *arg, int fd, unsigned events)
{
	drop_peer(arg);
}

/*
 * Becomes readable when the other side of `fd` is closed both ways, and not for
 * an end of input alone, which would be told again and again.
 */
static int hang_up_fd(int fd)
{
	struct epoll_event event = { .events = 0 };
	_cleanup_close_ int set = epoll_create1(EPOLL_CLOEXEC);

	if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	return fd_take(&set);
}

/* The peer sends no more, and may still want the output, as `socat -u` does. */
static void await_hang_up(struct chardev *c)
{
	c->in_source = event_source_free(c->in_source);
	c->gone_fd = hang_up_fd(c->in_fd);
	if (c->gone_fd >= 0)
		c->gone_source =
			event_loop_add_fd(c->loop, c->gone_fd, EVENT_READABLE, on_gone, c);
	if (!c->gone_source)
		drop_peer(c);
}

static void end_of_input(struct chardev *c)
{
	c->in_ended = true;
	if (c->kind == CONSOLE_SOCKET) {
		await_hang_up(c);
		return;
	}
	c->in_source = event_source_free(c->in_source);
	if (c->in_fd == c->out_fd)
		return;
	give_back(c->in_fd, c->in_borrowed, c->in_blocking);
	c->in_fd = -EBADF;
}

static ssize_t read_input(const struct chardev *c, uint8_t *data, size_t n)
{
	ssize_t got;

	do {
		if (c->in_is_socket)
			got = recv(c->in_fd, data, n, MSG_DONTWAIT);
		else
			got = read(c->in_fd, data, n);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

/* True if bytes came. */
static bool take_input(struct chardev *c)
{
	uint8_t data[INPUT_CHUNK];
	ssize_t got;

	if (c->room == 0 || c->in_fd < 0)
		return false;
	got = read_input(c, data, c->room < sizeof(data) ? c->room : sizeof(data));
	if (got > 0) {
		c->room = c->ops->input(c->user, data, (size_t)got);
		if (c->in_source)
			event_source_enable(c->in_source, c->room > 0);
	} else if (got == -EIO && c->in_source && isatty(c->in_fd)) {
		event_source_enable(c->in_source, false);
		event_source_arm(c->retry_timer, RETRY_NS);
	} else if (got != -EAGAIN) {
		end_of_input(c);
	}
	return got > 0;
}

static void on_readable(void *arg, int fd, unsigned events)
{
	(void)take_input(arg);
}

static void on_retry(void *arg)
{
	struct chardev *c = arg;

	if (c->in_source)
		event_source_enable(c->in_source, c->room > 0);
}

static void on_writable(void *arg, int fd, unsigned events)
{
	struct chardev *c = arg;

	event_source_enable(c->out_source, false);
	c->ops->writable(c->user);
}

static void on_connection(void *arg, int listen_fd, unsigned events)
{
	struct chardev *c = arg;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		/* Out of descriptors: the client waits in the backlog until the retry. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
			event_source_enable(c->listen_source, false);
			event_source_arm(c->retry_timer, RETRY_NS);
		}
		return;
	}
	c->in_fd = fd;
	c->out_fd = fd;
	c->in_ended = false;
	if (watch_fds(c) < 0) {
		unwatch_fds(c);
		close_fds(c);
		return;
	}
	event_source_enable(c->listen_source, false);
	c->ops->peer(c->user, true);
}

static void on_listen_retry(void *arg)
{
	struct chardev *c = arg;

	if (c->out_fd < 0)
		event_source_enable(c->listen_source, true);
}

/* Sources of the in and out descriptors that can be polled. */
static int watch_fds(struct chardev *c)
{
	c->in_is_socket = c->in_fd >= 0 && is_kind(c->in_fd, S_IFSOCK);
	c->out_is_socket = c->out_fd >= 0 && is_kind(c->out_fd, S_IFSOCK);
	if (c->in_fd >= 0 && can_poll(c->in_fd)) {
		c->in_source = event_loop_add_fd(c->loop, c->in_fd, EVENT_READABLE, on_readable, c);
		if (!c->in_source)
			return -ENOMEM;
		event_source_enable(c->in_source, c->room > 0);
	}
	if (c->out_fd >= 0 && can_poll(c->out_fd)) {
		c->out_source =
			event_loop_add_fd(c->loop, c->out_fd, EVENT_WRITABLE, on_writable, c);
		if (!c->out_source)
			return -ENOMEM;
		event_source_enable(c->out_source, false);
	}
	return 0;
}

int chardev_start(struct chardev *c, struct event_loop *loop, const struct chardev_ops *ops,
		  void *user, struct error *err)
{
	c->loop = loop;
	c->ops = ops;
	c->user = user;
	c->retry_timer = event_loop_add_timer(
		loop, c->kind == CONSOLE_SOCKET ? on_listen_retry : on_retry, c);
	if (c->listen_fd >= 0)
		c->listen_source =
			event_loop_add_fd(loop, c->listen_fd, EVENT_READABLE, on_connection, c);
	if (watch_fds(c) < 0 || !c->retry_timer || (c->listen_fd >= 0 && !c->listen_source)) {
		chardev_stop(c);
		return error_set(err, -ENOMEM, "serial: no memory for the console");
	}
	return 0;
}

void chardev_stop(struct chardev *c)
{
	unwatch_fds(c);
	c->listen_source = event_source_free(c->listen_source);
	c->retry_timer = event_source_free(c->retry_timer);
}

void chardev_set_room(struct chardev *c, size_t room)
{
	bool was_open = c->room > 0;

	c->room = room;
	if (c->in_source && was_open != (room > 0))
		event_source_enable(c->in_source, room > 0);
	while (!c->in_source && !c->in_ended && take_input(c))
		; /* nothing would tell when to go on */
}

/* ---- output ------------------------------------------------------------------------------- */

ssize_t chardev_write(struct chardev *c, const struct iovec *iov, int count)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)count };
	ssize_t put;

	if (c->out_fd < 0)
		return c->kind == CONSOLE_SOCKET ? -ENOTCONN : -EPIPE;
	do {
		if (c->out_is_socket)
			put = sendmsg(c->out_fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
		else
			put = writev(c->out_fd, iov, count);
	} while (put < 0 && errno == EINTR);
	if (put >= 0)
		return put;
	if (errno == EAGAIN) {
		if (!c->out_source)
			return -EIO; /* nothing would tell when to go on */
		event_source_enable(c->out_source, true);
		return -EAGAIN;
	}
	if (c->kind != CONSOLE_SOCKET)
		return -errno;
	drop_peer(c);
	return -ENOTCONN;
}

bool chardev_drained(const struct chardev *c, int ms)
{
	struct pollfd p = { .fd = c->out_fd, .events = POLLOUT };

	return c->out_fd >= 0 && poll(&p, 1, ms) > 0;
}

bool chardev_awaits_peer(const struct chardev *c)
{
	return c->kind == CONSOLE_SOCKET && c->out_fd < 0;
}
