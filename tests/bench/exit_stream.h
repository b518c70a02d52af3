/*
 * A recorded stream of exits: read from its text (tests/bench/boot-exits.txt,
 * whose head says the format), and filtered by what the exits are for.
 *
 * Threads: one. Locks: none.
 */
#ifndef LULL_EXIT_STREAM_H
#define LULL_EXIT_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "replay_kvm.h"

struct exit_stream {
	struct replay_exit *exits;
	size_t count;
};

/* 0, or a negative errno having said what is wrong. `ret` is freed by exit_stream_fini(). */
int exit_stream_read(struct exit_stream *ret, const char *path);
void exit_stream_fini(struct exit_stream *s);

/* Drops the exits that are not of this class; -ENOENT if there is no such class. */
int exit_stream_filter(struct exit_stream *s, const char *class);

#endif
