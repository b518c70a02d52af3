/*
 * Descriptors: whole reads and writes, event counters, safe opening of files
 * that a client named. Any thread; no state, no locks.
 */
#ifndef LULL_BASE_FD_H
#define LULL_BASE_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "vmm/base/error.h"

/* Reads exactly `n` bytes; EINTR is retried. -ENODATA at an early end of file. */
int fd_read_all(int fd, void *buf, size_t n);

/* As fd_read_all() at an offset. */
int fd_pread_all(int fd, void *buf, size_t n, uint64_t offset);

/* Writes exactly `n` bytes; EINTR is retried. */
int fd_write_all(int fd, const void *buf, size_t n);

/* A new non-blocking close-on-exec eventfd, or a negative errno. */
int fd_eventfd_new(void);

/* Adds one to an eventfd. A full counter is no error: it is already signalled. */
void fd_eventfd_signal(int fd);

/* Takes the counter of an eventfd; 0 if it was not signalled. */
uint64_t fd_eventfd_drain(int fd);

int fd_set_nonblocking(int fd, bool on);

/*
 * Opens a regular file that a client named, never waiting on it: a directory,
 * FIFO, socket or character device is refused, a block device only accepted
 * with `allow_block`. `what` begins the error ("The kernel file cannot be opened").
 * Returns the descriptor (close-on-exec) or a negative errno.
 */
int fd_open_file(const char *path, bool writable, bool allow_block, const char *what,
		 struct error *err);

/* Size in bytes of a regular file or block device. */
int fd_size(int fd, uint64_t *ret_size);

#endif
