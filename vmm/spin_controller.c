/*
 * The controller. Threads: main. Locks: none.
 * Not here: what follows from what (spin_decide.c).
 */
#include "vmm/spin_controller.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "vmm/base/log.h"
#include "vmm/base/ratelimit.h"
#include "vmm/vm.h"

#define MS UINT64_C(1000000)
#define KVM_HALT_POLL_NS 200000 /* KVM's default on x86, where the host does not tell */

const char *spin_class_name(enum spin_class c)
{
	static const char *const names[] = {
		[SPIN_NORMAL] = "normal",
		[SPIN_IDLE] = "idle",
		[SPIN_PREEMPTED_HOLDER] = "preempted_holder",
		[SPIN_TRUE_CONTENTION] = "true_contention",
	};

	return names[c];
}

/* A counter that seems to shrink was not read. */
static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void add_difference(struct spin_inputs *in, const struct spin_sample *now,
			   const struct spin_sample *before)
{
	uint64_t delay = grown(now->delay_ns, before->delay_ns);
	unsigned i;

	in->run_ns += grown(now->run_ns, before->run_ns);
	in->delay_ns += delay;
	if (delay > in->max_delay_ns)
		in->max_delay_ns = delay;
	in->spin_exits += grown(now->spin_exits, before->spin_exits);
	in->halts += grown(now->halts, before->halts);
	in->yields += grown(now->yields, before->yields);
	in->yields_good += grown(now->yields_good, before->yields_good);
	in->polls_bad += grown(now->polls - now->polls_good, before->polls - before->polls_good);
	in->poll_bad_ns += grown(now->poll_bad_ns, before->poll_bad_ns);
	for (i = 0; i < SPIN_BUCKETS; i++) {
		in->poll_hist[i] += grown(now->poll_hist[i], before->poll_hist[i]);
		in->wait_hist[i] += grown(now->wait_hist[i], before->wait_hist[i]);
	}
}

/* False if a vCPU could not be read: what is missing must not look like idleness. */
static bool take_inputs(struct vm *vm, uint64_t now_ns, struct spin_inputs *in)
{
	struct spin_controller *c = &vm->controller;
	struct spin_sample now;
	bool good = true;
	uint32_t i;

	*in = (struct spin_inputs){
		.wall_ns = now_ns - c->last_ns,
		.vcpus = vm->vcpu_count,
		.host_cpus = spin_host_cpus(NULL, 0),
	};
	for (i = 0; i < vm->vcpu_count; i++) {
		spin_sample_take(vm, i, &now);
		if (!now.has_sched || !now.has_kvm || !c->last[i].has_sched || !c->last[i].has_kvm)
			good = false;
		else
			add_difference(in, &now, &c->last[i]);
		c->last[i] = now;
	}
	return good;
}

static struct spin_event *new_event(struct vm *vm, enum spin_event_kind kind, uint64_t now_ns,
				    const struct spin_inputs *in)
{
	struct spin_controller *c = &vm->controller;
	struct spin_event *e = &c->events[c->event_count % LIMIT_SPIN_EVENTS];

	*e = (struct spin_event){
		.number = ++c->event_count,
		.uptime_ms = vm->started_ns && now_ns > vm->started_ns ?
				     (now_ns - vm->started_ns) / MS : 0,
		.kind = kind,
		.from_class = c->state.class,
		.to_class = c->state.class,
		.from_ns = c->state.halt_poll_ns,
		.to_ns = c->state.halt_poll_ns,
		.dry_run = vm->config.spin.controller == SPIN_CONTROLLER_DRY_RUN,
		.inputs = *in,
	};
	return e;
}

static void log_inputs(const char *what, const struct spin_inputs *in)
{
	log_info("spin: %s: in %" PRIu64 " ms %u vCPUs on %u host CPUs ran %" PRIu64
		 " ms, waited %" PRIu64 " ms (one %" PRIu64 " ms), %" PRIu64 " spin exits, %" PRIu64
		 " halts, %" PRIu64 " of %" PRIu64 " directed yields",
		 what, in->wall_ns / MS, in->vcpus, in->host_cpus, in->run_ns / MS,
		 in->delay_ns / MS, in->max_delay_ns / MS, in->spin_exits, in->halts,
		 in->yields_good, in->yields);
}

static void class_changed(struct vm *vm, struct spin_event *e, enum spin_class from,
			  const char *why)
{
	char what[160];

	e->from_class = from;
	e->why = why;
	metric_inc(&vm->observer.metrics.classifications);
	snprintf(what, sizeof(what), "%s, was %s: %s", spin_class_name(e->to_class),
		 spin_class_name(from), why);
	log_inputs(what, &e->inputs);
}

static void halt_poll_changed(struct vm *vm, struct spin_event *e, uint32_t from_ns,
			      const char *why)
{
	struct spin_controller *c = &vm->controller;
	char what[192];

	e->from_ns = from_ns;
	e->why = why;
	if (!e->dry_run)
		e->code = spin_set_halt_poll(vm, e->to_ns);
	if (e->code < 0) {
		c->state.halt_poll_ns = from_ns;
		c->cannot_change = true;
	} else if (!e->dry_run) {
		metric_inc(&vm->observer.metrics.halt_poll_changes);
	}
	snprintf(what, sizeof(what), "halt polling up to %u ns, was %u ns%s: %s", e->to_ns, from_ns,
		 e->dry_run ? " (dry run)" : e->code ? " (KVM refused)" : "", why);
	log_inputs(what, &e->inputs);
}

static void decide(struct vm *vm, uint64_t now_ns, const struct spin_inputs *in)
{
	struct spin_controller *c = &vm->controller;
	const struct spin_state before = c->state;
	struct spin_decision d;

	if (c->cannot_change)
		c->state.rest = SPIN_REST; /* for good */
	spin_decide(&c->state, in, vm->config.spin.halt_poll_max_ns, &d);
	c->periods++;
	c->advice = d.advice;
	if (d.class_changed)
		class_changed(vm, new_event(vm, SPIN_EVENT_CLASS, now_ns, in), before.class,
			      d.class_why);
	if (d.halt_poll_changed)
		halt_poll_changed(vm, new_event(vm, SPIN_EVENT_HALT_POLL, now_ns, in),
				  before.halt_poll_ns, d.halt_poll_why);
}

void spin_controller_step(struct vm *vm, uint64_t now_ns)
{
	struct spin_controller *c = &vm->controller;
	bool is_first = c->last_ns == 0;
	struct spin_inputs in;
	bool good;

	if (vm->state.phase != VM_RUNNING) {
		c->last_ns = 0; /* a pause is no period */
		return;
	}
	good = take_inputs(vm, now_ns, &in);
	c->last_ns = now_ns;
	if (is_first)
		return;
	if (good)
		decide(vm, now_ns, &in);
	else if (c->blind++ == 0)
		log_warn("spin: the controller cannot read all it needs, and decides nothing");
}

static void on_timer(void *arg)
{
	struct vm *vm = arg;

	event_source_arm(vm->controller.timer, vm->config.spin.period_ms * MS);
	spin_controller_step(vm, ratelimit_now());
}

static void begin(struct vm *vm)
{
	struct spin_controller *c = &vm->controller;
	int64_t ns = vm->spin.halt_poll_ns;

	memset(c, 0, sizeof(*c));
	spin_state_init(&c->state, ns >= 0 && ns <= UINT32_MAX ? (uint32_t)ns : KVM_HALT_POLL_NS);
	c->timer = event_loop_add_timer(vm->loop, on_timer, vm);
	if (!c->timer)
		log_warn("spin: no memory for the controller's timer: it is off");
}

void spin_controller_start(struct vm *vm)
{
	struct spin_controller *c = &vm->controller;

	if (vm->config.spin.controller == SPIN_CONTROLLER_OFF)
		return;
	if (!c->timer)
		begin(vm);
	if (!c->timer)
		return;
	c->last_ns = 0;
	event_source_arm(c->timer, vm->config.spin.period_ms * MS);
}

void spin_controller_stop(struct vm *vm)
{
	vm->controller.timer = event_source_free(vm->controller.timer);
}
