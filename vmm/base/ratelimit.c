/*
 * Token bucket arithmetic. Threads: the owner's. Locks: none.
 */
#include "vmm/base/ratelimit.h"

#include <time.h>

uint64_t ratelimit_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

uint64_t ratelimit_ns_of_ms(uint64_t ms)
{
	uint64_t ns;

	return __builtin_mul_overflow(ms, 1000000ull, &ns) ? UINT64_MAX : ns;
}

void ratelimit_init(struct ratelimit *r, uint64_t size, uint64_t refill_ns, uint64_t burst,
		    uint64_t now_ns)
{
	r->size = size;
	r->refill_ns = refill_ns;
	r->burst = burst;
	r->tokens = size;
	r->updated_ns = now_ns;
}

static bool unlimited(const struct ratelimit *r)
{
	return r->size == 0 || r->refill_ns == 0;
}

static void refill(struct ratelimit *r, uint64_t now_ns)
{
	uint64_t elapsed = now_ns > r->updated_ns ? now_ns - r->updated_ns : 0;
	unsigned __int128 add;

	if (elapsed >= r->refill_ns) {
		r->tokens = r->size;
		r->updated_ns = now_ns;
		return;
	}
	add = (unsigned __int128)elapsed * r->size / r->refill_ns;
	if (add == 0)
		return;
	/* Only the time that became whole tokens is used up. */
	r->updated_ns += (uint64_t)(add * r->refill_ns / r->size);
	r->tokens = add >= r->size - r->tokens ? r->size : r->tokens + (uint64_t)add;
}

bool ratelimit_take(struct ratelimit *r, uint64_t n, uint64_t now_ns)
{
	uint64_t credit, need;

	if (unlimited(r))
		return true;
	credit = n < r->burst ? n : r->burst;
	need = n - credit;
	refill(r, now_ns);
	if (need > r->tokens && !(need > r->size && r->tokens == r->size))
		return false;
	r->burst -= credit;
	r->tokens -= need < r->tokens ? need : r->tokens;
	return true;
}

void ratelimit_refund(struct ratelimit *r, uint64_t n)
{
	if (unlimited(r))
		return;
	r->tokens = n >= r->size - r->tokens ? r->size : r->tokens + n;
}

uint64_t ratelimit_wait_ns(struct ratelimit *r, uint64_t n, uint64_t now_ns)
{
	uint64_t need, missing, spent;
	unsigned __int128 wait;

	if (unlimited(r))
		return 0;
	refill(r, now_ns);
	need = n > r->burst ? n - r->burst : 0;
	need = need < r->size ? need : r->size;
	if (r->tokens >= need)
		return 0;
	missing = need - r->tokens;
	wait = ((unsigned __int128)missing * r->refill_ns + r->size - 1) / r->size;
	spent = now_ns > r->updated_ns ? now_ns - r->updated_ns : 0;
	return wait > spent ? (uint64_t)(wait - spent) : 1;
}
