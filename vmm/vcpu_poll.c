/*
 * Parking of vCPUs that poll a register. Threads and locks: see vcpu_poll.h.
 *
 * Nothing is lost: the device moves its generation, then looks for parked
 * vCPUs; the vCPU says that it is parked, then looks at the generation. And a
 * request of another thread sets immediate_exit, which stands until KVM_RUN
 * sees it; the timer's own signal sets it as well (vcpu.c).
 */
#include "vmm/vcpu_poll.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/bits.h"
#include "vmm/base/ratelimit.h"
#include "vmm/vcpu.h"
#include "vmm/vm.h"

_Static_assert(LIMIT_VCPUS <= 64, "a bit of struct bus_watch for each");

void vcpu_poll_wake(void *arg, uint64_t vcpus)
{
	struct vm *vm = arg;

	for (; vcpus; vcpus &= vcpus - 1)
		vcpu_request(vm->vcpus[__builtin_ctzll(vcpus)], VCPU_REQ_LOOK);
}

/* ---- noticing ----------------------------------------------------------------------------- */

struct read_access {
	enum bus_kind kind;
	uint64_t address;
	unsigned width;
	uint64_t value;
};

/* The read that the exit was; false if it was something else. */
static bool last_read(const struct vcpu *v, struct read_access *ret)
{
	const struct kvm_run *run = v->run;
	const uint8_t *data;

	if (run->exit_reason == KVM_EXIT_IO) {
		if (run->io.direction != KVM_EXIT_IO_IN || run->io.count != 1 || run->io.size > 4)
			return false;
		data = (const uint8_t *)run + run->io.data_offset;
		*ret = (struct read_access){ BUS_PIO, run->io.port, run->io.size, 0 };
	} else if (run->exit_reason == KVM_EXIT_MMIO) {
		if (run->mmio.is_write || run->mmio.len > sizeof(run->mmio.data))
			return false;
		data = run->mmio.data;
		*ret = (struct read_access){ BUS_MMIO, run->mmio.phys_addr, run->mmio.len, 0 };
	} else {
		return false;
	}
	memcpy(&ret->value, data, ret->width);
	return true;
}

static bool is_alike(const struct vcpu_poll *p, const struct read_access *a)
{
	return a->address == p->address && a->value == p->value && a->kind == p->kind &&
	       a->width == p->width;
}

static void begin(struct vcpu_poll *p, const struct read_access *a)
{
	p->address = a->address;
	p->value = a->value;
	p->kind = (uint8_t)a->kind;
	p->width = (uint8_t)a->width;
	p->alike = 1;
	p->bound_ns = 0;
	p->watch = NULL;
}

/*
 * Enough reads are alike but one: looks up what is read, and remembers how often
 * it had changed before the last read.
 */
static void prepare(struct vcpu *v)
{
	struct vcpu_poll *p = &v->poll;
	const struct bus_region *r = bus_region_at(&v->vm->bus, (enum bus_kind)p->kind, p->address);

	p->watch = r && r->ops->rests ? r->watch : NULL;
	p->generation = p->watch ? atomic_load(&p->watch->generation) : 0;
}

bool vcpu_poll_is_due(struct vcpu *v)
{
	struct vcpu_poll *p = &v->poll;
	struct read_access a;

	if (!last_read(v, &a)) {
		p->alike = 0;
		return false;
	}
	if (p->alike == 0 || !is_alike(p, &a)) {
		begin(p, &a);
		return false;
	}
	p->alike++;
	if (p->alike == 2)
		p->since_ns = ratelimit_now();
	if (p->alike == VCPU_POLL_READS - 1)
		prepare(v);
	if (p->alike < VCPU_POLL_READS)
		return false;
	p->alike = 1; /* the next round of reads leads here again */
	return p->watch && ratelimit_now() - p->since_ns <
				   (VCPU_POLL_READS - 2) * VCPU_POLL_GAP_NS;
}

enum vcpu_exit_result vcpu_handle_exit_polled(struct vcpu *v)
{
	enum vcpu_exit_result result = vcpu_handle_exit(v);

	return result == VCPU_CONTINUE && vcpu_poll_is_due(v) ? VCPU_PARK : result;
}

/* ---- parking ------------------------------------------------------------------------------ */

/* The signal that a kick is, to this thread. */
static bool make_timer(struct vcpu_poll *p)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };

	event._sigev_un._tid = gettid();
	p->has_timer = p->has_timer || timer_create(CLOCK_MONOTONIC, &event, &p->timer) == 0;
	return p->has_timer;
}

/* 0 disarms. */
static bool arm(struct vcpu_poll *p, uint64_t ns)
{
	struct itimerspec at = {
		.it_value = { .tv_sec = (time_t)(ns / 1000000000ull),
			      .tv_nsec = (long)(ns % 1000000000ull) },
	};

	return timer_settime(p->timer, 0, &at, NULL) == 0;
}

void vcpu_poll_fini(struct vcpu *v)
{
	if (v->poll.has_timer)
		timer_delete(v->poll.timer);
	v->poll.has_timer = false;
}

static uint64_t next_bound(struct vcpu *v)
{
	struct vcpu_poll *p = &v->poll;
	const struct bus_region *r = bus_region_at(&v->vm->bus, (enum bus_kind)p->kind, p->address);
	uint64_t rests = r && r->ops->rests ? r->ops->rests(r->device, p->address - r->base) : 0;
	uint64_t bound = p->bound_ns ? p->bound_ns : VCPU_POLL_FIRST_NS;

	p->bound_ns = bound * 2 < VCPU_POLL_LONGEST_NS ? bound * 2 : VCPU_POLL_LONGEST_NS;
	return rests < bound ? rests : bound;
}

/* KVM carries the read out before it looks at immediate_exit. */
static int finish_read(struct vcpu *v)
{
	int ret;

	__atomic_store_n(&v->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
	ret = kvm_vcpu_run(v->fd);
	__atomic_store_n(&v->run->immediate_exit, 0, __ATOMIC_SEQ_CST);
	/* A request that was made meanwhile is no longer shown: it is now. */
	if (atomic_load(&v->requests))
		__atomic_store_n(&v->run->immediate_exit, 1, __ATOMIC_SEQ_CST);
	return ret;
}

static int run_halted(struct vcpu *v, uint64_t bound)
{
	int ret;

	if (arch_vcpu_halt(v) < 0)
		return kvm_vcpu_run(v->fd);
	v->poll.is_bounded = true;
	if (!arm(&v->poll, bound)) {
		v->poll.is_bounded = false;
		arch_vcpu_unhalt(v);
		return kvm_vcpu_run(v->fd);
	}
	ret = kvm_vcpu_run(v->fd);
	(void)arm(&v->poll, 0);
	v->poll.is_bounded = false;
	if (ret < 0)
		arch_vcpu_unhalt(v);
	return ret;
}

int vcpu_poll_park(struct vcpu *v)
{
	struct vcpu_poll *p = &v->poll;
	uint64_t bit = BIT_ULL(v->index), bound = next_bound(v);
	int ret;

	if (!bound || !make_timer(p))
		return kvm_vcpu_run(v->fd);
	ret = finish_read(v);
	if (ret != -EINTR)
		return ret;
	atomic_fetch_or(&p->watch->parked, bit);
	if (atomic_load(&p->watch->generation) != p->generation) {
		metric_count(&v->metrics.polls_changed);
		ret = kvm_vcpu_run(v->fd);
	} else {
		metric_count(&v->metrics.polls_parked);
		ret = run_halted(v, bound);
	}
	atomic_fetch_and(&p->watch->parked, ~bit);
	if (atomic_load(&p->watch->generation) != p->generation)
		p->bound_ns = 0;
	return ret;
}
