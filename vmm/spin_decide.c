/*
 * Decisions. Threads: any. Locks: none.
 */
#include "vmm/spin_decide.h"

#include <string.h>

/* Per mille of the time that all vCPUs had: less wanted is idle. */
#define IDLE_PERMILLE 50
/* Per mille of a period that some vCPU waited for a host CPU. */
#define DELAY_PERMILLE 100
/*
 * Spin exits in a second of running. A spinning vCPU has some ten in each of its
 * time slices, since processor and KVM wait twice as long for each further one.
 */
#define SPIN_RATE 1000
/* Halts in a second of the VM that make a histogram worth reading. */
#define HALT_RATE 100
/* Per mille of halts that shall end while KVM polls; so few that polling is for nothing. */
#define COVERED_PERMILLE 750
#define HOPELESS_PERMILLE 250
#define SHORTEST_POLL_NS 8192
#define SECOND 1000000000ull

void spin_state_init(struct spin_state *s, uint32_t halt_poll_ns)
{
	*s = (struct spin_state){ .class = SPIN_NORMAL, .seen = SPIN_NORMAL,
				  .halt_poll_ns = halt_poll_ns };
}

/* a / b in units of 1/scale; 0 if there is no b. Inputs are of one period, so it fits. */
static uint64_t share(uint64_t a, uint64_t b, uint64_t scale)
{
	return b ? (uint64_t)((__uint128_t)a * scale / b) : 0;
}

static bool is_spinning_class(enum spin_class c)
{
	return c == SPIN_PREEMPTED_HOLDER || c == SPIN_TRUE_CONTENTION;
}

/* Half is enough to stay. */
static uint64_t threshold(uint64_t to_enter, bool is_in)
{
	return is_in ? to_enter / 2 : to_enter;
}

static bool is_delayed(const struct spin_inputs *in, bool was)
{
	return share(in->max_delay_ns, in->wall_ns, 1000) >= threshold(DELAY_PERMILLE, was);
}

static enum spin_class class_of(const struct spin_inputs *in, enum spin_class now)
{
	uint64_t wanted = share(in->run_ns + in->delay_ns, in->wall_ns * in->vcpus, 1000);
	uint64_t rate = share(in->spin_exits, in->run_ns, SECOND);

	/* a busy VM must fall to half to become idle, an idle one rise to the whole */
	if (wanted < threshold(IDLE_PERMILLE, now != SPIN_IDLE))
		return SPIN_IDLE;
	if (rate < threshold(SPIN_RATE, is_spinning_class(now)))
		return SPIN_NORMAL;
	return is_delayed(in, now == SPIN_PREEMPTED_HOLDER) ? SPIN_PREEMPTED_HOLDER :
							      SPIN_TRUE_CONTENTION;
}

static const char *why_class(enum spin_class c)
{
	switch (c) {
	case SPIN_IDLE:
		return "the vCPUs want next to no host CPU";
	case SPIN_PREEMPTED_HOLDER:
		return "vCPUs spin while one of them waits for a host CPU";
	case SPIN_TRUE_CONTENTION:
		return "vCPUs spin although all of them run";
	case SPIN_NORMAL:
		break;
	}
	return "the vCPUs work and do not spin much";
}

static void decide_class(struct spin_state *s, const struct spin_inputs *in,
			 struct spin_decision *ret)
{
	enum spin_class seen = class_of(in, s->class);

	s->seen_times = seen == s->seen ? s->seen_times + 1 : 1;
	s->seen = seen;
	if (seen == s->class || s->seen_times < SPIN_CONFIRM)
		return;
	s->class = seen;
	ret->class_changed = true;
	ret->class_why = why_class(seen);
}

/*
 * Halts that had ended within `ns`, if KVM had polled that long. One that ended
 * while KVM polled, under the present limit, had done so under a longer one too;
 * one that was woken from sleep had been polled before, in vain.
 */
static uint64_t covered(const struct spin_inputs *in, uint64_t now_ns, uint64_t ns)
{
	uint64_t polled_ns = share(in->poll_bad_ns, in->polls_bad, 1), n = 0;
	unsigned i;

	for (i = 0; i < SPIN_BUCKETS; i++) {
		if (1ull << i <= ns || now_ns <= ns)
			n += in->poll_hist[i];
		if ((1ull << i) + polled_ns <= ns)
			n += in->wait_hist[i];
	}
	return n;
}

static uint64_t all_halts(const struct spin_inputs *in)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < SPIN_BUCKETS; i++)
		n += in->poll_hist[i] + in->wait_hist[i];
	return n;
}

/* The limit that the halts of this period ask for. */
static uint64_t limit_for_halts(const struct spin_inputs *in, uint64_t now_ns, uint64_t max_ns,
				const char **ret_why)
{
	uint64_t all = all_halts(in), ns = SHORTEST_POLL_NS, last;

	do {
		last = ns < max_ns ? ns : max_ns;
		if (share(covered(in, now_ns, last), all, 1000) >= COVERED_PERMILLE) {
			*ret_why = "most halts end within this";
			return last;
		}
		ns *= 2;
	} while (last < max_ns);
	if (share(covered(in, now_ns, max_ns), all, 1000) >= HOPELESS_PERMILLE)
		return now_ns;
	*ret_why = "few halts end within the longest limit: polling is for nothing";
	return 0;
}

static uint64_t wanted_limit(const struct spin_state *s, const struct spin_inputs *in,
			     uint32_t max_ns, const char **ret_why)
{
	if (s->class != SPIN_IDLE && is_delayed(in, s->class == SPIN_PREEMPTED_HOLDER ||
							    s->halt_poll_ns == 0)) {
		*ret_why = "a vCPU waits for a host CPU, which polling would use up";
		return 0;
	}
	if (s->class == SPIN_IDLE || share(in->halts, in->wall_ns, SECOND) < HALT_RATE)
		return s->halt_poll_ns;
	return limit_for_halts(in, s->halt_poll_ns, max_ns, ret_why);
}

/* Within a factor of two it is the same: neighbours of a histogram. */
static int direction(uint64_t now_ns, uint64_t wanted_ns)
{
	if (wanted_ns > 2 * now_ns)
		return 1;
	return wanted_ns < now_ns / 2 || (wanted_ns == 0 && now_ns > 0) ? -1 : 0;
}

static void decide_halt_poll(struct spin_state *s, const struct spin_inputs *in, uint32_t max_ns,
			     struct spin_decision *ret)
{
	const char *why = "";
	uint64_t ns = wanted_limit(s, in, max_ns, &why);
	int wanted = direction(s->halt_poll_ns, ns);

	s->wanted_times = wanted == s->wanted ? s->wanted_times + 1 : 1;
	s->wanted = wanted;
	if (s->rest > 0) {
		s->rest--;
		return;
	}
	if (wanted == 0 || s->wanted_times < SPIN_CONFIRM)
		return;
	s->halt_poll_ns = (uint32_t)ns;
	s->wanted_times = 0;
	s->rest = SPIN_REST;
	ret->halt_poll_changed = true;
	ret->halt_poll_why = why;
}

static enum spin_advice advice_for(enum spin_class c, const struct spin_inputs *in)
{
	if (c == SPIN_PREEMPTED_HOLDER)
		return in->host_cpus >= in->vcpus ? SPIN_ADVICE_SPREAD : SPIN_ADVICE_MORE_CPUS;
	return c == SPIN_TRUE_CONTENTION ? SPIN_ADVICE_LEAVE : SPIN_ADVICE_NONE;
}

void spin_decide(struct spin_state *s, const struct spin_inputs *in, uint32_t halt_poll_max_ns,
		 struct spin_decision *ret)
{
	memset(ret, 0, sizeof(*ret));
	decide_class(s, in, ret);
	decide_halt_poll(s, in, halt_poll_max_ns, ret);
	ret->advice = advice_for(s->class, in);
}
