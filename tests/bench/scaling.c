/*
 * What the `scaling` benchmark runs: vCPU threads that do nothing but exit for
 * registers of virtio devices, which take their own lock for each.
 *
 *	bench-scaling VCPUS private|shared EXITS [big-lock]
 *
 * private: each vCPU has a device to itself; shared: all use one. EXITS is of
 * all vCPUs together, at least. Prints "NAME VALUE" lines, of what happened from
 * when every vCPU runs. Exit status 1 where a vCPU waited for a lock above DEVICE
 * though there is no big lock.
 *
 * Threads: as lulld. Locks: none here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "arch-x86/layout.h"
#include "bench_vm.h"
#include "replay_kvm.h"
#include "vmm/base/big_lock.h"
#include "vmm/base/bits.h"
#include "vmm/base/lock.h"

#define MAX_VCPUS 8
#define WARM_UP 1000 /* exits of each vCPU before anything is counted */
#define MAX_ROWS 256

/* What a driver reads and writes for an interrupt, but for the rings. */
static const struct replay_exit interrupt[] = {
	{ REPLAY_MMIO_READ, 4, 1, 0x060, 0 },  /* InterruptStatus */
	{ REPLAY_MMIO_WRITE, 4, 1, 0x064, 1 }, /* InterruptACK */
	{ REPLAY_MMIO_READ, 4, 1, 0x0fc, 0 },  /* ConfigGeneration */
	{ REPLAY_MMIO_READ, 4, 1, 0x070, 0 },  /* Status */
};

struct counts {
	uint64_t exits;
	uint64_t above_device; /* waits for locks */
	uint64_t device;
	uint64_t ns;
	uint64_t switches; /* a thread went to sleep */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static uint64_t switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_nvcsw;
}

static enum lock_level level_of(const struct lock_report_wait *wait)
{
	static struct lock_report_lock locks[MAX_ROWS];
	size_t n = lock_report_locks(locks, MAX_ROWS), i;

	for (i = 0; i < n && i < MAX_ROWS; i++) {
		if (!strcmp(locks[i].type, wait->type) && !strcmp(locks[i].object, wait->object))
			return locks[i].level;
	}
	return LOCK_LEVEL_GLOBAL; /* a lock that is not known may be any */
}

static void count_waits(struct counts *c)
{
	static struct lock_report_wait rows[MAX_ROWS];
	size_t n = lock_report_waits(rows, MAX_ROWS), i;

	for (i = 0; i < n && i < MAX_ROWS; i++) {
		enum lock_level level = rows[i].is_condition ? LOCK_LEVEL_LOG : level_of(&rows[i]);

		if (level < LOCK_LEVEL_DEVICE)
			c->above_device += rows[i].count;
		else if (level == LOCK_LEVEL_DEVICE)
			c->device += rows[i].count;
	}
}

static struct counts run(uint32_t vcpus, bool shared, uint64_t exits)
{
	static struct replay_exit streams[MAX_VCPUS][ARRAY_SIZE(interrupt)];
	struct counts c = { 0 };
	struct bench_vm b;
	uint32_t v, i;

	bench_vm_init(&b, vcpus, vcpus);
	for (v = 0; v < vcpus; v++) {
		for (i = 0; i < ARRAY_SIZE(interrupt); i++) {
			streams[v][i] = interrupt[i];
			streams[v][i].address += LAYOUT_VIRTIO +
						 (shared ? 0 : v) * LAYOUT_VIRTIO_BYTES;
		}
		replay_kvm_set(v, streams[v], ARRAY_SIZE(interrupt), UINT64_MAX);
	}
	bench_vm_start(&b);
	bench_vm_run_each(&b, WARM_UP);
	lock_report_reset();
	c.ns = now_ns();
	c.switches = switches();
	c.exits = bench_vm_run_all(&b, 0);
	c.exits = bench_vm_run_all(&b, c.exits + exits) - c.exits;
	c.ns = now_ns() - c.ns;
	c.switches = switches() - c.switches;
	count_waits(&c);
	bench_vm_end(&b);
	bench_vm_fini(&b);
	return c;
}

int main(int argc, char **argv)
{
	uint32_t vcpus = argc > 3 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	uint64_t exits = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	bool big_lock = argc == 5 && !strcmp(argv[4], "big-lock");
	struct counts c;

	if (vcpus == 0 || vcpus > MAX_VCPUS || exits == 0 || (argc == 5 && !big_lock) ||
	    argc > 5 || (strcmp(argv[2], "private") && strcmp(argv[2], "shared"))) {
		fprintf(stderr, "usage: bench-scaling 1..%d private|shared EXITS [big-lock]\n",
			MAX_VCPUS);
		return 2;
	}
	if (big_lock)
		big_lock_enable();
	c = run(vcpus, !strcmp(argv[2], "shared"), exits);
	printf("exits %" PRIu64 "\nus %" PRIu64 "\n", c.exits, c.ns / 1000);
	printf("waits_above_device %" PRIu64 "\nwaits_device %" PRIu64 "\n", c.above_device, c.device);
	printf("voluntary_switches %" PRIu64 "\n", c.switches);
	return c.above_device && !big_lock;
}
