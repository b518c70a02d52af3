/*
 * Scope-bound release of locals, and moving ownership out of them.
 *
 *	_cleanup_close_ int fd = -EBADF;
 *	...
 *	object->fd = fd_take(&fd);
 *
 * For locals only. Construction of several kernel objects in a row unwinds
 * with named goto labels instead; locks are never released by scope.
 */
#ifndef LULL_BASE_CLEANUP_H
#define LULL_BASE_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(const int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

#define _cleanup_free_ __attribute__((cleanup(cleanup_free)))
#define _cleanup_close_ __attribute__((cleanup(cleanup_close)))

/* Gives the descriptor away: the local no longer closes it. */
static inline int fd_take(int *fd)
{
	int taken = *fd;

	*fd = -EBADF;
	return taken;
}

static inline void *ptr_take_void(void *pp)
{
	void *taken = *(void **)pp;

	*(void **)pp = NULL;
	return taken;
}

#define ptr_take(pp) ((__typeof__(*(pp)))ptr_take_void(pp))

#endif
