/*
 * What can be told about a VM's spinning: plain structs, filled by the core and
 * shown by the API through vmm/control.h. No KVM, no pointers into the VM but
 * where noted.
 */
#ifndef LULL_SPIN_REPORT_H
#define LULL_SPIN_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_CONTROLS 16 /* of one architecture, at most */
#define SPIN_CHECKS 8
#define SPIN_BUCKETS 32  /* of KVM's histograms */
#define SPIN_WHY 160     /* bytes of a reason, final NUL included */

enum spin_granted { SPIN_NO, SPIN_YES, SPIN_UNKNOWN };

/* One control of KVM's: what the policy asked of it, and what holds. */
struct spin_control {
	const char *name; /* a literal: "pause_exits" */
	bool asked;
	enum spin_granted granted;
	char why[SPIN_WHY]; /* they differ, or how we know; "" if there is nothing to say */
};

/* What is counted of one vCPU since the start; each number only grows. */
struct spin_sample {
	bool has_sched; /* the host's scheduler tells */
	uint64_t run_ns;
	uint64_t delay_ns; /* runnable, but another thread had the host CPU */
	uint64_t slices;
	uint32_t host_cpu; /* that it ran on last */

	bool has_kvm; /* KVM's statistics are there */
	uint64_t exits;
	uint64_t spin_exits; /* that are spinning, or may be: see arch_spin_exits() */
	uint64_t halts;
	uint64_t polls;      /* of KVM at a halt */
	uint64_t polls_good; /* that were ended by a wake-up */
	uint64_t poll_good_ns;
	uint64_t poll_bad_ns; /* for nothing */
	uint64_t wait_ns;     /* asleep in a halt */
	uint64_t yields;      /* directed ones that the guest asked for */
	uint64_t yields_good;
	/* halts by length, [2^(i-1), 2^i) ns: woken while KVM polled, and from sleep */
	uint64_t poll_hist[SPIN_BUCKETS];
	uint64_t wait_hist[SPIN_BUCKETS];
};

enum spin_check_status { SPIN_CHECK_OK, SPIN_CHECK_WARN, SPIN_CHECK_UNKNOWN };

/* Something of the host that spinning guests depend on. */
struct spin_check {
	const char *name; /* a literal: "directed_yield" */
	enum spin_check_status status;
	char text[SPIN_WHY];
};

struct spin_checks {
	struct spin_check rows[SPIN_CHECKS];
	uint32_t count;
};

/* What a VM is doing, as far as its spinning tells. */
enum spin_class {
	SPIN_NORMAL,           /* it works, and does not spin much */
	SPIN_IDLE,             /* it wants next to no host CPU */
	SPIN_PREEMPTED_HOLDER, /* it spins while one of its vCPUs waits for a host CPU */
	SPIN_TRUE_CONTENTION,  /* it spins although all its vCPUs run */
};

enum spin_advice {
	SPIN_ADVICE_NONE,
	SPIN_ADVICE_SPREAD,    /* a host CPU for each vCPU: there are enough */
	SPIN_ADVICE_MORE_CPUS, /* there are not */
	SPIN_ADVICE_LEAVE,     /* nothing on the host's side helps */
};

/* What a decision is made from: differences over one period, summed over vCPUs. */
struct spin_inputs {
	uint64_t wall_ns;
	uint32_t vcpus;
	uint32_t host_cpus; /* that they may use */
	uint64_t run_ns;
	uint64_t delay_ns;
	uint64_t max_delay_ns; /* of the vCPU that waited longest */
	uint64_t spin_exits;
	uint64_t halts;
	uint64_t yields;
	uint64_t yields_good;
	uint64_t polls_bad;   /* that were not ended by a wake-up */
	uint64_t poll_bad_ns; /* how long they took */
	uint64_t poll_hist[SPIN_BUCKETS];
	uint64_t wait_hist[SPIN_BUCKETS];
};

enum spin_event_kind { SPIN_EVENT_CLASS, SPIN_EVENT_HALT_POLL };

struct spin_event {
	uint64_t number;    /* from 1 */
	uint64_t uptime_ms; /* of the VM */
	enum spin_event_kind kind;
	enum spin_class from_class, to_class;
	uint32_t from_ns, to_ns; /* limits of polling at a halt */
	const char *why;         /* a literal */
	bool dry_run;            /* nothing was changed */
	int code;                /* 0, or the negative errno of KVM's refusal */
	struct spin_inputs inputs;
};

#endif
