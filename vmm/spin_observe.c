/*
 * Observation. Threads: main. Locks: none.
 */
#include "vmm/spin_observe.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/utsname.h>

#include "vmm/arch.h"
#include "vmm/base/bits.h"
#include "vmm/base/log.h"
#include "vmm/sched_stat.h"
#include "vmm/spin_host.h"
#include "vmm/vcpu.h"
#include "vmm/vm.h"

static const struct metric_field fields[] = {
	METRIC(struct spin_metrics, run_ns),
	METRIC(struct spin_metrics, run_delay_ns),
	METRIC(struct spin_metrics, exits),
	METRIC(struct spin_metrics, spin_exits),
	METRIC(struct spin_metrics, halts),
	METRIC(struct spin_metrics, halt_polls),
	METRIC(struct spin_metrics, halt_polls_successful),
	METRIC(struct spin_metrics, halt_poll_wasted_ns),
	METRIC(struct spin_metrics, halt_wait_ns),
	METRIC(struct spin_metrics, directed_yields),
	METRIC(struct spin_metrics, directed_yields_successful),
	METRIC_STORED(struct spin_metrics, halt_poll_ns),
	METRIC(struct spin_metrics, halt_poll_changes),
	METRIC(struct spin_metrics, classifications),
	{ 0 },
};

void spin_observer_init(struct spin_observer *o)
{
	uint32_t i;

	memset(o, 0, sizeof(*o));
	kvm_stats_init(&o->vm);
	for (i = 0; i < LIMIT_VCPUS; i++)
		kvm_stats_init(&o->vcpus[i]);
}

static pid_t tid_of(const struct vm *vm, uint32_t index)
{
	return atomic_load_explicit(&vm->vcpus[index]->tid, memory_order_acquire);
}

/* Names differ by kernel; halt_exits is x86's, wfi_exit_stat arm64's. */
static void take_kvm(const struct kvm_stats *s, struct spin_sample *ret)
{
	ret->exits = kvm_stats_value(s, "exits");
	ret->spin_exits = arch_spin_exits(s);
	ret->halts = kvm_stats_value(s, "halt_exits") + kvm_stats_value(s, "wfi_exit_stat");
	ret->polls = kvm_stats_value(s, "halt_attempted_poll");
	ret->polls_good = kvm_stats_value(s, "halt_successful_poll");
	ret->poll_good_ns = kvm_stats_value(s, "halt_poll_success_ns");
	ret->poll_bad_ns = kvm_stats_value(s, "halt_poll_fail_ns");
	ret->wait_ns = kvm_stats_value(s, "halt_wait_ns");
	ret->yields = kvm_stats_value(s, "directed_yield_attempted");
	ret->yields_good = kvm_stats_value(s, "directed_yield_successful");
}

static void take_histogram(const struct kvm_stats *s, const char *name,
			   uint64_t ret[SPIN_BUCKETS])
{
	const struct kvm_stat *stat = kvm_stats_find(s, name);
	uint32_t i;

	for (i = 0; stat && i < stat->count; i++)
		ret[i < SPIN_BUCKETS ? i : SPIN_BUCKETS - 1] += s->values[stat->first + i];
}

void spin_sample_take(struct vm *vm, uint32_t index, struct spin_sample *ret)
{
	struct kvm_stats *s = &vm->observer.vcpus[index];
	struct sched_stat sched;
	struct sched_place place;
	pid_t tid = tid_of(vm, index);

	memset(ret, 0, sizeof(*ret));
	if (sched_stat_read(vm->spin.root, tid, &sched) == 0) {
		ret->has_sched = true;
		ret->run_ns = sched.run_ns;
		ret->delay_ns = sched.delay_ns;
		ret->slices = sched.slices;
	}
	if (sched_place_read(vm->spin.root, tid, &place) == 0)
		ret->host_cpu = place.cpu;
	ret->has_kvm = kvm_stats_read(s) == 0;
	if (!ret->has_kvm)
		return;
	take_kvm(s, ret);
	take_histogram(s, "halt_poll_success_hist", ret->poll_hist);
	take_histogram(s, "halt_wait_hist", ret->wait_hist);
}

void spin_sample_add(struct spin_sample *sum, const struct spin_sample *s)
{
	uint32_t i;

	sum->has_sched |= s->has_sched;
	sum->run_ns += s->run_ns;
	sum->delay_ns += s->delay_ns;
	sum->slices += s->slices;
	sum->has_kvm |= s->has_kvm;
	sum->exits += s->exits;
	sum->spin_exits += s->spin_exits;
	sum->halts += s->halts;
	sum->polls += s->polls;
	sum->polls_good += s->polls_good;
	sum->poll_good_ns += s->poll_good_ns;
	sum->poll_bad_ns += s->poll_bad_ns;
	sum->wait_ns += s->wait_ns;
	sum->yields += s->yields;
	sum->yields_good += s->yields_good;
	for (i = 0; i < SPIN_BUCKETS; i++) {
		sum->poll_hist[i] += s->poll_hist[i];
		sum->wait_hist[i] += s->wait_hist[i];
	}
}

void spin_check_host(const struct vm *vm, struct spin_checks *ret)
{
	struct utsname host;
	pid_t tids[LIMIT_VCPUS];
	uint32_t i;

	memset(ret, 0, sizeof(*ret));
	arch_spin_check_host(vm->spin.root, ret);
	spin_check_kernel(vm->spin.root, uname(&host) == 0 ? host.release : "", ret);
	for (i = 0; i < vm->vcpu_count; i++)
		tids[i] = tid_of(vm, i);
	if (vm->vcpu_count)
		spin_check_threads(vm->spin.root, tids, vm->vcpu_count, ret);
}

static void store(metric *m, uint64_t value)
{
	atomic_store_explicit(m, value, memory_order_relaxed);
}

/* A sum never shrinks: what cannot be read just now counts as it did. */
static void grow(metric *m, uint64_t sum)
{
	if (sum > metric_read(m))
		store(m, sum);
}

static void refresh_metrics(void *arg)
{
	struct vm *vm = arg;
	struct spin_metrics *m = &vm->observer.metrics;
	struct spin_sample sum = { 0 }, s;
	uint32_t i;

	for (i = 0; i < vm->vcpu_count; i++) {
		spin_sample_take(vm, i, &s);
		spin_sample_add(&sum, &s);
	}
	grow(&m->run_ns, sum.run_ns);
	grow(&m->run_delay_ns, sum.delay_ns);
	grow(&m->exits, sum.exits);
	grow(&m->spin_exits, sum.spin_exits);
	grow(&m->halts, sum.halts);
	grow(&m->halt_polls, sum.polls);
	grow(&m->halt_polls_successful, sum.polls_good);
	grow(&m->halt_poll_wasted_ns, sum.poll_bad_ns);
	grow(&m->halt_wait_ns, sum.wait_ns);
	grow(&m->directed_yields, sum.yields);
	grow(&m->directed_yields_successful, sum.yields_good);
	store(&m->halt_poll_ns, vm->spin.halt_poll_ns > 0 ? (uint64_t)vm->spin.halt_poll_ns : 0);
}

int spin_observe(struct vm *vm, struct error *err)
{
	struct spin_observer *o = &vm->observer;
	uint32_t i;
	int ret = kvm_stats_open(&o->vm, vm->fd);

	for (i = 0; ret == 0 && i < vm->vcpu_count; i++)
		ret = kvm_stats_open(&o->vcpus[i], vm->vcpus[i]->fd);
	if (ret < 0)
		log_info("KVM gives no statistics: error %d", -ret);
	memset(&o->metrics, 0, sizeof(o->metrics));
	if (metrics_add_group(vm->metrics, "spin", fields, &o->metrics) < 0)
		return error_set(err, -ENOMEM, "no memory for metrics");
	metrics_set_refresh(vm->metrics, refresh_metrics, vm);
	return 0;
}

void spin_observe_end(struct vm *vm)
{
	struct spin_observer *o = &vm->observer;
	uint32_t i;

	metrics_set_refresh(vm->metrics, NULL, NULL);
	metrics_remove_group(vm->metrics, &o->metrics);
	kvm_stats_close(&o->vm);
	for (i = 0; i < LIMIT_VCPUS; i++)
		kvm_stats_close(&o->vcpus[i]);
}
