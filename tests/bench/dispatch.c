/*
 * What the `dispatch` benchmark runs under callgrind:
 *
 *	bench-dispatch STREAM CLASS EXITS	a VM whose one vCPU replays the exits
 *						of that class, over and over
 *	bench-dispatch STREAM lookup TIMES	the bus's look-up of the addresses
 *						of the stream, by bench_lookup()
 *	bench-dispatch STREAM CLASS 0		says how many such exits there are
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
#include "vmm/vcpu.h"

#define DRIVES 2 /* the recorded machine's drive and network interface */

static void run_exits(const struct exit_stream *s, uint64_t exits)
{
	struct bench_vm b;

	bench_vm_init(&b, 1, DRIVES);
	replay_kvm_set(0, s->exits, s->count, exits);
	bench_vm_start(&b);
	bench_vm_run(&b);
	bench_vm_end(&b);
	bench_vm_fini(&b);
}

/* callgrind counts the instructions of this function by its name. */
const struct bus_line *bench_lookup(struct bus_lookup *l, enum bus_kind kind, uint64_t address,
				    unsigned width);

__attribute__((noinline)) const struct bus_line *
bench_lookup(struct bus_lookup *l, enum bus_kind kind, uint64_t address, unsigned width)
{
	return bus_find(l, kind, address, width);
}

/* On the main thread, with a table of its own; the vCPU is halted meanwhile. */
static void run_lookups(const struct exit_stream *s, uint64_t times)
{
	static struct bus_lookup lookup;
	struct bench_vm b;
	uint64_t i;

	bench_vm_init(&b, 1, DRIVES);
	replay_kvm_set(0, s->exits, s->count, 0);
	bench_vm_start(&b);
	if (bus_lookup_init(&lookup, &b.rig.vm->bus) < 0)
		exit(1);
	for (i = 0; i < times; i++) {
		const struct replay_exit *e = &s->exits[i % s->count];

		bench_lookup(&lookup, e->op >= REPLAY_MMIO_READ ? BUS_MMIO : BUS_PIO, e->address,
			     e->width);
	}
	bench_vm_end(&b);
	bench_vm_fini(&b);
}

int main(int argc, char **argv)
{
	struct exit_stream stream;
	bool is_lookup;
	uint64_t n;

	if (argc != 4) {
		fprintf(stderr, "usage: bench-dispatch STREAM CLASS|lookup EXITS\n");
		return 2;
	}
	is_lookup = !strcmp(argv[2], "lookup");
	n = strtoull(argv[3], NULL, 10);
	if (exit_stream_read(&stream, argv[1]) < 0)
		return 1;
	if (exit_stream_filter(&stream, is_lookup ? "known" : argv[2]) < 0) {
		fprintf(stderr, "bench-dispatch: no exits of class \"%s\"\n", argv[2]);
		return 2;
	}
	if (n == 0)
		printf("%zu\n", stream.count);
	else if (is_lookup)
		run_lookups(&stream, n);
	else
		run_exits(&stream, n);
	exit_stream_fini(&stream);
	return 0;
}
