/*
 * The controller: looks at a VM once a period, says what it sees, and sets how
 * long KVM polls at a halt. Each decision is an event, with what it was made
 * from, in a ring that GET /v1/spin shows, and a line of the log.
 *
 * Threads: main; one timer of the main loop, which it never holds up: it reads
 * statistics and procfs and makes one ioctl, none of which waits for a vCPU.
 * Locks: none.
 */
#ifndef LULL_SPIN_CONTROLLER_H
#define LULL_SPIN_CONTROLLER_H

#include "vmm/event_loop.h"
#include "vmm/limits.h"
#include "vmm/spin_decide.h"
#include "vmm/spin_report.h"

struct vm;

struct spin_controller {
	struct event_source *timer; /* NULL: off */
	struct spin_state state;
	struct spin_sample last[LIMIT_VCPUS];
	uint64_t last_ns;   /* monotonic, when `last` was taken; 0: it was not */
	uint64_t periods;   /* decided */
	uint64_t blind;     /* in which something could not be read, so nothing was decided */
	bool cannot_change; /* KVM has refused */
	enum spin_advice advice;
	struct spin_event events[LIMIT_SPIN_EVENTS]; /* a ring; the next is at event_count */
	uint64_t event_count;                        /* ever */
};

/* The vCPUs run, or run again. */
void spin_controller_start(struct vm *vm);
/* They are about to be freed. */
void spin_controller_stop(struct vm *vm);

/* The timer's work; tests call it with a time of theirs. Monotonic. */
void spin_controller_step(struct vm *vm, uint64_t now_ns);

const char *spin_class_name(enum spin_class c);

#endif
