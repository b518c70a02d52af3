/*
 * What the `dispatch` and `scaling` benchmarks run under callgrind:
 *
 *	bench-dispatch WHAT STREAM CLASS TIMES
 *
 * on the recorded exits of that class (exit_stream.h), over and over, so many
 * times in all; 0 times says how many exits there are. WHAT:
 *
 *	loop		a vCPU's run loop
 *	each-loop	the same on a KVM that coalesces no writes: each access is an exit
 *	plain-loop	a loop without requests in its place
 *	lookup		the bus's look-up alone, by bench_lookup()
 *
 * Nothing is measured here: two runs of different length are compared.
 *
 * Threads: as lulld. Locks: none here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_vm.h"
#include "exit_stream.h"
#include "vmm/base/bits.h"
#include "vmm/vcpu.h"
#include "vmm/vcpu_work.h"

#define DRIVES 2 /* the recorded machine's drive and network interface */

static void run_loop_of(const struct exit_stream *s, uint64_t exits, int coalesces)
{
	struct bench_vm b;

	bench_vm_init(&b, 1, DRIVES);
	fake_kvm_set_cap(KVM_CAP_COALESCED_PIO, coalesces);
	replay_kvm_set(0, s->exits, s->count, exits);
	bench_vm_start(&b);
	bench_vm_run_each(&b, exits);
	bench_vm_end(&b);
	bench_vm_fini(&b);
}

static void run_loop(const struct exit_stream *s, uint64_t exits)
{
	run_loop_of(s, exits, 1);
}

static void run_each_loop(const struct exit_stream *s, uint64_t exits)
{
	run_loop_of(s, exits, 0);
}

/* A job: the vCPU's exits on its own thread. The kick of the job itself may come late. */
static void plain_loop(struct vcpu *v, void *arg)
{
	const uint64_t *exits = arg;

	replay_kvm_set_limit(0, *exits);
	while (replay_kvm_exits(0) < *exits) {
		__atomic_store_n(&v->run->immediate_exit, 0, __ATOMIC_SEQ_CST);
		while (__builtin_expect(kvm_vcpu_run(v->fd) == 0, 1)) {
			if (v->handle_exit(v) == VCPU_STOP)
				return;
		}
	}
}

static void run_plain_loop(const struct exit_stream *s, uint64_t exits)
{
	struct vcpu_job job;
	struct bench_vm b;

	bench_vm_init(&b, 1, DRIVES);
	replay_kvm_set(0, s->exits, s->count, 0);
	bench_vm_start(&b);
	if (vcpu_run_async(b.rig.vm->vcpus[0], &job, plain_loop, &exits) < 0)
		exit(1);
	bench_vm_run_each(&b, exits);
	bench_vm_end(&b);
	bench_vm_fini(&b);
}

/* callgrind counts the instructions of this function by its name. */
const struct bus_line *bench_lookup(struct bus_lookup *l, enum bus_kind kind, uint64_t address,
				    unsigned width);

__attribute__((noinline)) const struct bus_line *bench_lookup(struct bus_lookup *l,
							      enum bus_kind kind,
							      uint64_t address, unsigned width)
{
	return bus_find(l, kind, address, width);
}

/* On the main thread, with a table of its own; the vCPU is halted meanwhile. */
static void run_lookup(const struct exit_stream *s, uint64_t times)
{
	static struct bus_lookup lookup;
	struct bench_vm b;
	uint64_t i;

	bench_vm_init(&b, 1, DRIVES);
	replay_kvm_set(0, s->exits, s->count, 0);
	bench_vm_start(&b);
	if (bus_lookup_init(&lookup, &b.rig.vm->bus) < 0)
		exit(1);
	bus_lookup_serve(&lookup);
	for (i = 0; i < times; i++) {
		const struct replay_exit *e = &s->exits[i % s->count];
		enum bus_kind kind = e->op >= REPLAY_MMIO_READ ? BUS_MMIO : BUS_PIO;

		/* The result is used, as far as the compiler knows. */
		__asm__ volatile("" : : "r"(bench_lookup(&lookup, kind, e->address, e->width)));
	}
	bench_vm_end(&b);
	bench_vm_fini(&b);
}

static const struct {
	const char *name;
	void (*run)(const struct exit_stream *s, uint64_t times);
} programs[] = {
	{ "loop", run_loop },
	{ "each-loop", run_each_loop },
	{ "plain-loop", run_plain_loop },
	{ "lookup", run_lookup },
};

int main(int argc, char **argv)
{
	struct exit_stream stream;
	uint64_t times;
	size_t p;

	for (p = 0; argc == 5 && p < ARRAY_SIZE(programs) && strcmp(programs[p].name, argv[1]); p++)
		;
	if (argc != 5 || p == ARRAY_SIZE(programs)) {
		fprintf(stderr, "usage: bench-dispatch loop|each-loop|plain-loop|lookup STREAM CLASS TIMES\n");
		return 2;
	}
	times = strtoull(argv[4], NULL, 10);
	if (exit_stream_read(&stream, argv[2]) < 0)
		return 1;
	if (exit_stream_filter(&stream, argv[3]) < 0) {
		fprintf(stderr, "bench-dispatch: no exits of class \"%s\"\n", argv[3]);
		return 2;
	}
	if (times == 0)
		printf("%zu\n", stream.count);
	else
		programs[p].run(&stream, times);
	exit_stream_fini(&stream);
	return 0;
}
