/*
 * Jobs, safepoints, pauses and the end, all at once and for long: nothing is
 * lost, nothing hangs, and ThreadSanitizer sees no race. vcpu.c is compiled here
 * with a short delay, of random length, before each operation whose order
 * matters, so that the windows between them are wide enough to be met.
 *
 * LULL_TEST_ROUNDS is the number of jobs of the longest test; the others do a
 * fixed part of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake_arch.h"
#include "vm_rig.h"
#include "vmm/base/bits.h"

static void delay(void);

#undef atomic_exchange
#undef atomic_fetch_or
#undef atomic_store
#define atomic_exchange(p, v) (delay(), atomic_exchange_explicit(p, v, memory_order_seq_cst))
#define atomic_fetch_or(p, v) (delay(), atomic_fetch_or_explicit(p, v, memory_order_seq_cst))
#define atomic_store(p, v) (delay(), atomic_store_explicit(p, v, memory_order_seq_cst))
#define __atomic_store_n(p, v, order) (delay(), __atomic_store_n(p, v, order))
#define tgkill(group, tid, signo) (delay(), tgkill(group, tid, signo))
#define kvm_vcpu_run(fd) (delay(), kvm_vcpu_run(fd))

#include "vmm/vcpu.c"

#undef atomic_store
#define atomic_store(p, v) atomic_store_explicit(p, v, memory_order_seq_cst)

#if defined(__has_feature)
#define HAS_FEATURE(feature) __has_feature(feature)
#else
#define HAS_FEATURE(feature) 0
#endif
#if HAS_FEATURE(thread_sanitizer) || HAS_FEATURE(address_sanitizer)
#define ROUNDS 1000000
#else
#define ROUNDS 10000000
#endif

#define PATIENCE_S 60 /* for one job */
#define PORT 0x700    /* of the device that hands its exits to the test */

static uint64_t rounds = ROUNDS;

static uint32_t next_random(uint32_t *state)
{
	/* xorshift32 */
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Mostly none; now and then so long that another thread gets the processor. */
static void delay(void)
{
	static _Thread_local uint32_t state;
	uint32_t n;
	volatile uint32_t i;

	if (!state)
		state = (uint32_t)gettid();
	n = next_random(&state);
	if (n % 512 == 0)
		sched_yield();
	else if (n % 4 == 0)
		for (i = 0; i < n / 512 % 256; i++)
			;
}

/* ---- kick against drain ------------------------------------------------------------------- */

#define WINDOW 64 /* jobs under way at most */

struct stream {
	struct vcpu_job jobs[WINDOW];
	uint64_t expected; /* number of the next job; the vCPU's thread */
	_Atomic uint64_t ran;
	_Atomic uint64_t out_of_order;
};

static struct stream stream;

static void take_next(struct vcpu *v, void *arg)
{
	if ((uintptr_t)arg != stream.expected)
		atomic_fetch_add(&stream.out_of_order, 1);
	stream.expected++;
	atomic_store_explicit(&stream.ran, stream.expected, memory_order_release);
}

static bool wait_for_ran(uint64_t wanted)
{
	time_t deadline = time(NULL) + PATIENCE_S;
	unsigned spins;

	for (spins = 1; atomic_load_explicit(&stream.ran, memory_order_acquire) < wanted; spins++) {
		if (spins % 256 == 0)
			sched_yield();
		if (spins % (1 << 20) == 0 && time(NULL) > deadline)
			return false;
	}
	return true;
}

/*
 * Pushes `count` jobs in bursts: within one, so many may be under way. With one,
 * each push meets the vCPU between the drain that ran the job before and the
 * next KVM_RUN; with more, it meets the drain itself.
 */
static void push_jobs(struct vcpu *v, uint64_t count)
{
	uint32_t state = 1, window = 1;
	uint64_t i;

	for (i = 0; i < count; i++) {
		if (i % WINDOW == 0)
			window = 1u << next_random(&state) % 7;
		if (i >= window && !wait_for_ran(i - window + 1))
			fail_msg("of %llu jobs %llu ran", (unsigned long long)i,
				 (unsigned long long)stream.ran);
		assert_int_equal(vcpu_run_async(v, &stream.jobs[i % WINDOW], take_next,
						(void *)(uintptr_t)i), 0);
	}
	assert_true(wait_for_ran(count));
}

static void lose_no_job(struct vm_rig *r, const struct fake_step *steps, size_t n, uint64_t count)
{
	stream = (struct stream){ .expected = 0 };
	r->vm->config.machine.vcpu_count = 1;
	fake_kvm_set_script(0, steps, n);
	assert_int_equal(vm_rig_start(r), 0);
	push_jobs(r->vm->vcpus[0], count);
	assert_int_equal(stream.ran, count);
	assert_int_equal(stream.out_of_order, 0);
}

static void no_job_is_lost_between_kick_and_drain(void **state)
{
	static const struct fake_step busy[] = { FAKE_SPIN() };

	lose_no_job(*state, busy, ARRAY_SIZE(busy), rounds);
}

static void no_job_of_a_halted_vcpu_is_lost(void **state)
{
	static const struct fake_step halted[] = { FAKE_WAIT() };

	lose_no_job(*state, halted, ARRAY_SIZE(halted), rounds / 100);
}

static void no_job_of_a_vcpu_that_exits_is_lost(void **state)
{
	static const struct fake_step exits[] = { FAKE_OUT(0x999, 1, 0), FAKE_LOOP(0, 0) };

	lose_no_job(*state, exits, ARRAY_SIZE(exits), rounds / 1000);
}

/* ---- the world of the other tests --------------------------------------------------------- */

/* What a vCPU does in an exit to PORT. */
static void (*on_exit_to_us)(struct vcpu *v);

static struct {
	_Atomic bool stop;              /* threads leave their loops */
	_Atomic uint32_t in_exit;       /* vCPUs that serve one and wait for nobody */
	_Atomic uint64_t accepted, ran; /* jobs */
	_Atomic uint64_t safepoints, broken;
	/* no lock: */
	uint64_t exclusive;             /* touched by safepoints only */
	uint64_t jobs[VM_RIG_VCPUS];    /* by each vCPU's own jobs only */
	uint64_t exits[VM_RIG_VCPUS];   /* by each vCPU's exits, and by safepoints */
} world;

static enum bus_action write_port(void *device, uint64_t offset, unsigned width, uint64_t value)
{
	struct vcpu *v = vcpu_current();

	atomic_fetch_add(&world.in_exit, 1);
	world.exits[v->index]++;
	atomic_fetch_sub(&world.in_exit, 1);
	on_exit_to_us(v);
	return BUS_DONE;
}

static int build(struct vm *vm, struct error *err)
{
	static const struct bus_ops ops = { .write = write_port };
	struct bus_region region = { "test", PORT, 1, 1, 1, &ops, NULL };

	return bus_add(&vm->bus, BUS_PIO, &region, err);
}

static void do_nothing(struct vcpu *v)
{
}

static void start_world(struct vm_rig *r, void (*on_exit)(struct vcpu *v))
{
	static const struct fake_step exits[] = { FAKE_OUT(PORT, 1, 0), FAKE_LOOP(0, 0) };

	memset(&world, 0, sizeof(world));
	on_exit_to_us = on_exit;
	fake_arch.build = build;
	fake_kvm_set_default_script(exits, ARRAY_SIZE(exits));
	assert_int_equal(vm_rig_start(r), 0);
}

static void count_job(struct vcpu *v, void *arg)
{
	world.jobs[v->index]++;
	atomic_fetch_add(&world.ran, 1);
}

static void check_all_outside(struct vm *vm, void *arg)
{
	uint32_t i;

	if (fake_kvm_running() || atomic_load(&world.in_exit))
		atomic_fetch_add(&world.broken, 1);
	for (i = 0; i < VM_RIG_VCPUS; i++)
		world.exits[i]++;
	world.exclusive++;
	atomic_fetch_add(&world.safepoints, 1);
}

/* ---- threads ------------------------------------------------------------------------------ */

struct kicker {
	pthread_t thread;
	struct vm *vm;
	struct vcpu_job job;
	_Atomic bool is_free;
	uint32_t random;
};

static void free_job(struct vcpu *v, void *arg)
{
	struct kicker *k = arg;

	count_job(v, NULL);
	atomic_store(&k->is_free, true);
}

/* A job for this vCPU and a needless request for that one, as fast as it gets. */
static void *kick_on(void *arg)
{
	struct kicker *k = arg;

	while (!atomic_load(&world.stop)) {
		struct vm *vm = k->vm;
		uint32_t n = next_random(&k->random);

		vcpu_request(vm->vcpus[n / 8 % VM_RIG_VCPUS], n & 1 ? VCPU_REQ_WORK :
								      VCPU_REQ_SAFEPOINT);
		if (!atomic_exchange(&k->is_free, false))
			sched_yield();
		else if (vcpu_run_async(vm->vcpus[n % VM_RIG_VCPUS], &k->job, free_job, k) == 0)
			atomic_fetch_add(&world.accepted, 1);
		else
			atomic_store(&k->is_free, true);
	}
	return NULL;
}

static void start_kickers(struct kicker *k, unsigned count, struct vm *vm)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		k[i] = (struct kicker){ .vm = vm, .is_free = true, .random = i + 1 };
		assert_int_equal(pthread_create(&k[i].thread, NULL, kick_on, &k[i]), 0);
	}
}

static void stop_kickers(struct kicker *k, unsigned count)
{
	unsigned i;

	atomic_store(&world.stop, true);
	for (i = 0; i < count; i++)
		pthread_join(k[i].thread, NULL);
}

struct caller {
	pthread_t thread;
	struct vm *vm;
	uint64_t count; /* of safepoints; 0: until the end */
};

static void *call_on(void *arg)
{
	struct caller *c = arg;
	uint64_t i;

	for (i = 0; c->count ? i < c->count : !atomic_load(&world.stop); i++)
		vm_safepoint(c->vm, check_all_outside, NULL);
	return NULL;
}

static void start_callers(struct caller *c, unsigned count, struct vm *vm, uint64_t safepoints)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		c[i] = (struct caller){ .vm = vm, .count = safepoints };
		assert_int_equal(pthread_create(&c[i].thread, NULL, call_on, &c[i]), 0);
	}
}

static void join_callers(struct caller *c, unsigned count)
{
	while (count--)
		pthread_join(c[count].thread, NULL);
}

/* ---- safepoints --------------------------------------------------------------------------- */

static void safepoints_come_through_the_kicks_of_four_threads(void **state)
{
	struct vm_rig *r = *state;
	struct kicker kickers[4];
	struct caller caller;

	start_world(r, do_nothing);
	start_kickers(kickers, 4, r->vm);
	start_callers(&caller, 1, r->vm, rounds / 1000);
	join_callers(&caller, 1);
	stop_kickers(kickers, 4);
	vm_rig_end(r);
	assert_int_equal(world.broken, 0);
	assert_int_equal(world.exclusive, rounds / 1000);
	assert_int_equal(world.ran, world.accepted);
}

static void two_threads_make_safepoints_at_once(void **state)
{
	struct vm_rig *r = *state;
	struct caller callers[2];

	start_world(r, do_nothing);
	start_callers(callers, 2, r->vm, rounds / 1000);
	join_callers(callers, 2);
	assert_int_equal(world.broken, 0);
	assert_int_equal(world.exclusive, 2 * (rounds / 1000));
	assert_int_equal(world.safepoints, world.exclusive);
}

/* ---- vCPUs that ask each other ------------------------------------------------------------ */

static struct vcpu *peer_of(struct vcpu *v)
{
	return v->vm->vcpus[(v->index + 1) % VM_RIG_VCPUS];
}

static void ask(struct vcpu *v, vcpu_job_fn fn, void *arg)
{
	if (vcpu_run(v, fn, arg) == 0)
		atomic_fetch_add(&world.accepted, 1);
}

/* On the peer, whose asker waits: asks the asker back. */
static void count_and_ask_back(struct vcpu *v, void *arg)
{
	ask(arg, count_job, NULL);
	count_job(v, NULL);
}

static void ask_peer(struct vcpu *v)
{
	ask(peer_of(v), count_and_ask_back, v);
}

static void vcpus_in_a_ring_ask_each_other_and_back(void **state)
{
	struct vm_rig *r = *state;
	uint64_t sum = 0;
	int i;

	start_world(r, ask_peer);
	while (atomic_load(&world.ran) < rounds / 20)
		vm_rig_run_for(r, 5);
	vm_rig_end(r);
	for (i = 0; i < VM_RIG_VCPUS; i++)
		sum += world.jobs[i];
	assert_int_equal(sum, world.accepted);
	assert_int_equal(world.ran, world.accepted);
}

/* ---- all of it, and pauses and the end in the middle -------------------------------------- */

static void ask_or_make_safepoint(struct vcpu *v)
{
	if (world.exits[v->index] % 16 == 0)
		vm_safepoint(v->vm, check_all_outside, NULL);
	else
		ask_peer(v);
}

static void pause_and_resume(struct vm_rig *r)
{
	assert_int_equal(vm_rig_pause(r), 0);
	assert_int_equal(fake_kvm_running(), 0);
	vm_rig_run_for(r, 1);
	assert_int_equal(vm_rig_resume(r), 0);
	vm_rig_run_for(r, 1);
}

static void pauses_and_the_end_come_in_the_middle_of_it(void **state)
{
	struct vm_rig *r = *state;
	struct kicker kickers[2];
	struct caller callers[2];
	uint64_t i;

	start_world(r, ask_or_make_safepoint);
	start_kickers(kickers, 2, r->vm);
	start_callers(callers, 2, r->vm, 0);
	for (i = 0; i < rounds / 50000; i++)
		pause_and_resume(r);
	assert_int_equal(vm_rig_end(r), VM_END_STOPPED);
	stop_kickers(kickers, 2);
	join_callers(callers, 2);
	assert_int_equal(world.broken, 0);
	assert_int_equal(world.exclusive, world.safepoints);
	assert_int_equal(world.ran, world.accepted);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, vm_rig_setup, vm_rig_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(no_job_is_lost_between_kick_and_drain),
		TEST(no_job_of_a_halted_vcpu_is_lost),
		TEST(no_job_of_a_vcpu_that_exits_is_lost),
		TEST(safepoints_come_through_the_kicks_of_four_threads),
		TEST(two_threads_make_safepoints_at_once),
		TEST(vcpus_in_a_ring_ask_each_other_and_back),
		TEST(pauses_and_the_end_come_in_the_middle_of_it),
	};
	const char *given = getenv("LULL_TEST_ROUNDS");

	if (given)
		rounds = strtoull(given, NULL, 10);
	alarm(900);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
