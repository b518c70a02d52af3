/*
 * The console of a serial port: an output ring that no guest can make wait,
 * the thread that empties it into a chardev, and the input that comes back.
 *
 * Threads: console_send_locked() on vCPU threads, serialised by the device's
 * lock; call-backs and the chardev on the device's thread.
 * Locks: none of its own. The ring has one producer (who holds the device's
 * lock) and one consumer (the thread, which takes no lock).
 */
#ifndef LULL_CONSOLE_H
#define LULL_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devices/chardev.h"
#include "vmm/base/error.h"
#include "vmm/base/lock.h"
#include "vmm/base/ratelimit.h"
#include "vmm/config.h"
#include "vmm/device_thread.h"
#include "vmm/event_loop.h"
#include "vmm/limits.h"
#include "vmm/metrics.h"

/* On the device's thread, without locks. */
struct console_ops {
	/* Takes bytes; never more than room() allowed. */
	void (*input)(void *user, const uint8_t *data, size_t n);
	/* How many bytes can be taken. If none, console_want_input() is due later. */
	size_t (*room)(void *user);
};

/* The group "uart"; the first five are counted here, the reads by the device. */
struct console_metrics {
	metric error_count;
	metric flush_count;
	metric missed_write_count;
	metric write_count;
	metric rate_limiter_dropped_bytes;
	metric read_count;
	metric missed_read_count;
};

struct console {
	/* constant after console_start() */
	const char *id; /* the device's */
	const struct console_ops *ops;
	void *user;
	struct lock *lock; /* the device's */
	struct device_thread *thread;
	bool is_open;    /* false: no console, output vanishes */
	bool is_limited;
	int wake_fd;     /* eventfd: the ring is in use, or input is wanted */

	/* with the device's lock held */
	struct ratelimit limiter;
	struct lock_cond has_room;

	/* the ring: free-running positions; head by the producer, tail by the thread */
	_Atomic uint32_t head;
	_Atomic uint32_t tail;
	uint8_t bytes[LIMIT_SERIAL_OUTPUT];
	/* set by the producer with a signal, cleared by the thread when it goes to sleep */
	_Atomic bool awake;
	/* set with a signal by who has room for input again, cleared by the thread */
	_Atomic bool input_wanted;
	/* set by the thread: output is refused, and it will be told when no longer */
	_Atomic bool is_full;
	/* set by a vCPU that waited for the thread in vain, cleared by progress */
	_Atomic bool is_late;
	/* vCPUs that wait for room */
	_Atomic uint32_t waiters;

	/* device's thread only, once started */
	struct chardev chardev;
	struct event_source *wake_source;
	struct event_source *poll_timer;
	bool is_quiesced;

	struct console_metrics counts;
};

/* Opens the chardev. `c` is zeroed memory; console_fini() is due, also if it failed. */
int console_init(struct console *c, const char *id, const struct serial_config *config,
		 struct lock *lock, const struct console_ops *ops, void *user, struct error *err);
/* Main thread: starts the device's thread, unless there is no console. */
int console_start(struct console *c, struct error *err);
/* Main thread, vCPUs gone: writes what is left, for a bounded time; stops the thread. */
void console_fini(struct console *c);

/* Device's thread: no input is passed on in between. */
void console_quiesce(struct console *c);
void console_unquiesce(struct console *c);

/* A byte from the guest, with the device's lock held; it may be let go and taken again. */
void console_send_locked(struct console *c, uint8_t byte);
/* Any thread: there is room for input again. */
void console_want_input(struct console *c);

#endif
