/*
 * Where the bytes of a console come from and go to on the host: standard
 * input and output, a file, a pseudo terminal, a listening socket, or nowhere.
 * Nothing here waits, except chardev_drained() for a bounded time.
 *
 * Threads: opened and closed on the main thread; from chardev_start() to
 * chardev_stop() it belongs to the thread that runs the loop.
 * Locks: none.
 */
#ifndef LULL_CHARDEV_H
#define LULL_CHARDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <termios.h>

#include "vmm/base/error.h"
#include "vmm/config.h"
#include "vmm/event_loop.h"

/* Call-backs on the loop's thread; they may call back into the chardev. */
struct chardev_ops {
	/* `n` bytes arrived, at most the room that was announced; returns the room left. */
	size_t (*input)(void *user, const uint8_t *data, size_t n);
	/* Output is taken again after -EAGAIN. */
	void (*writable)(void *user);
	/* A peer came to the socket or left it. */
	void (*peer)(void *user, bool present);
};

struct chardev {
	enum console_kind kind;
	int in_fd;     /* -EBADF: no input (any more) */
	int out_fd;    /* -EBADF: output has nowhere to go */
	int listen_fd; /* of a socket; in_fd and out_fd are its one peer */
	int slave_fd;  /* of a pty, held open so that a peer may come and go */
	char *socket_path; /* to unlink; NULL if we did not make it */

	/* what to put back at close */
	bool in_borrowed; /* the descriptor is the process's own */
	bool out_borrowed;
	bool in_blocking; /* was blocking before we changed it */
	bool out_blocking;
	bool is_raw;
	struct termios saved_termios;

	/* between start and stop */
	const struct chardev_ops *ops;
	void *user;
	struct event_loop *loop;
	struct event_source *in_source; /* NULL: input that cannot be polled, or none */
	struct event_source *out_source;
	struct event_source *gone_source; /* of a peer that sends no more */
	int gone_fd;
	struct event_source *listen_source;
	struct event_source *retry_timer;
	size_t room;
	bool in_ended;
	bool in_is_socket;
	bool out_is_socket;
};

/* Opens the host side. Afterwards chardev_close() is due, also if it failed. */
int chardev_open(struct chardev *c, const struct serial_config *config, struct error *err);
/* Puts the terminal back and removes the socket. */
void chardev_close(struct chardev *c);

/* Adds the event sources to `loop`; input waits for chardev_set_room(). */
int chardev_start(struct chardev *c, struct event_loop *loop, const struct chardev_ops *ops,
		  void *user, struct error *err);
void chardev_stop(struct chardev *c);

/*
 * How many bytes the user can take now; 0 stops watching the input. Input that
 * cannot be polled is read here and now, until it ends or there is no room.
 */
void chardev_set_room(struct chardev *c, size_t room);

/*
 * Writes what the host side takes now. Returns the bytes written; -EAGAIN when
 * it is full (writable() will follow), -ENOTCONN when nobody is connected
 * (peer() will follow), another error when the bytes are lost.
 */
ssize_t chardev_write(struct chardev *c, const struct iovec *iov, int count);

/* Waits up to `ms` milliseconds until output is taken again. */
bool chardev_drained(const struct chardev *c, int ms);

/* True if a peer must connect before output goes anywhere, and none has. */
bool chardev_awaits_peer(const struct chardev *c);

#endif
