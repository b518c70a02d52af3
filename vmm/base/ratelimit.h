/*
 * Token bucket: so many tokens each period, refilled continuously, on
 * CLOCK_MONOTONIC. Used for log lines now, for drives and networks by their
 * devices. The caller serialises; there is no lock inside.
 */
#ifndef LULL_BASE_RATELIMIT_H
#define LULL_BASE_RATELIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct ratelimit {
	uint64_t size;       /* tokens when full; 0 means "no limit" */
	uint64_t refill_ns;  /* time from empty to full; 0 means "no limit" */
	uint64_t burst;      /* one-time credit, spent first, never refilled */
	uint64_t tokens;
	uint64_t updated_ns; /* monotonic time of the last refill */
};

/* Monotonic time in nanoseconds. */
uint64_t ratelimit_now(void);

/* Milliseconds in nanoseconds; UINT64_MAX for what no 64 bits hold. */
uint64_t ratelimit_ns_of_ms(uint64_t ms);

/* Starts full. */
void ratelimit_init(struct ratelimit *r, uint64_t size, uint64_t refill_ns, uint64_t burst,
		    uint64_t now_ns);

/*
 * Takes `n` tokens at time `now_ns`. True if they were there. A request larger
 * than the bucket is let through when the bucket is full and leaves it empty.
 */
bool ratelimit_take(struct ratelimit *r, uint64_t n, uint64_t now_ns);

/* Gives `n` tokens back, up to full. */
void ratelimit_refund(struct ratelimit *r, uint64_t n);

/* Nanoseconds from `now_ns` until `n` tokens (or a full bucket) will be there; 0 if now. */
uint64_t ratelimit_wait_ns(struct ratelimit *r, uint64_t n, uint64_t now_ns);

#endif
