/*
 * What the controller decides from what it sees. Pure: no clock, no host, no VM;
 * the same inputs in the same order give the same decisions.
 *
 * Hysteresis, so that a steady load leads to at most one change of each kind:
 * thresholds to enter a state are twice those to stay in it; a state must be
 * seen in SPIN_CONFIRM periods in a row; a limit is changed only when more than a
 * factor of two is in it, and then rests for SPIN_REST periods.
 *
 * Threads: any, one state each. Locks: none.
 */
#ifndef LULL_SPIN_DECIDE_H
#define LULL_SPIN_DECIDE_H

#include "vmm/spin_report.h"

#define SPIN_CONFIRM 3
#define SPIN_REST 5

/* What is remembered from one period to the next. */
struct spin_state {
	enum spin_class class;
	enum spin_class seen; /* that may become `class` */
	uint32_t seen_times;  /* in a row */
	uint32_t halt_poll_ns;
	int wanted;            /* -1: a shorter limit, 1: a longer one, 0: this one */
	uint32_t wanted_times; /* in a row */
	uint32_t rest;         /* periods that the limit stays as it is */
};

struct spin_decision {
	bool class_changed;
	const char *class_why; /* a literal */
	bool halt_poll_changed;
	const char *halt_poll_why; /* a literal */
	enum spin_advice advice;
};

void spin_state_init(struct spin_state *s, uint32_t halt_poll_ns);

/* One period; `s` has the class and the limit that hold from now on. */
void spin_decide(struct spin_state *s, const struct spin_inputs *in, uint32_t halt_poll_max_ns,
		 struct spin_decision *ret);

#endif
