/*
 * The litmus test of the kick, all interleavings of it: a request is three
 * operations, its service three more, and in whatever order they come, the
 * request is taken. vcpu.c is compiled here with a point before each of them
 * at which its thread waits for its turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake_arch.h"
#include "vm_rig.h"

static void point(void);

#undef atomic_exchange
#undef atomic_fetch_or
#define atomic_exchange(p, v) (point(), atomic_exchange_explicit(p, v, memory_order_seq_cst))
#define atomic_fetch_or(p, v) (point(), atomic_fetch_or_explicit(p, v, memory_order_seq_cst))
#define __atomic_store_n(p, v, order) (point(), __atomic_store_n(p, v, order))
#define tgkill(group, tid, signo) (point(), tgkill(group, tid, signo))

#include "vmm/vcpu.c"

#define STEPS 6
#define SETTLE_US 1500 /* a thread gets on, until it waits or is in KVM_RUN */
#define WAKE_BIT (1u << 8)
#define TEST_BIT (1u << 9)

enum role { BYSTANDER, VCPU, CLIENT };

static _Thread_local enum role role;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t turned;
	enum role order[STEPS]; /* whose turn it is, one after the other */
	int next;               /* STEPS: everybody runs freely */
} schedule = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, { BYSTANDER }, STEPS };

static bool has_a_turn_left(void)
{
	int i;

	for (i = schedule.next; i < STEPS; i++) {
		if (schedule.order[i] == role)
			return true;
	}
	return false;
}

static void point(void)
{
	if (role == BYSTANDER)
		return;
	pthread_mutex_lock(&schedule.lock);
	while (has_a_turn_left() && schedule.order[schedule.next] != role)
		pthread_cond_wait(&schedule.turned, &schedule.lock);
	if (has_a_turn_left()) {
		if (schedule.next)
			usleep(SETTLE_US); /* the one before has done its operation */
		schedule.next++;
		pthread_cond_broadcast(&schedule.turned);
	}
	pthread_mutex_unlock(&schedule.lock);
}

static int ioctl_with_a_point(int fd, unsigned long request, void *arg)
{
	if (request == KVM_RUN) {
		role = VCPU;
		point();
	}
	return fake_kvm_ops.ioctl(fd, request, arg);
}

static void set_schedule(const enum role *order)
{
	pthread_mutex_lock(&schedule.lock);
	memcpy(schedule.order, order, sizeof(schedule.order));
	schedule.next = 0;
	pthread_mutex_unlock(&schedule.lock);
}

static bool is_taken(struct vcpu *v, uint32_t bit)
{
	int tries;

	for (tries = 0; tries < 3000; tries++) {
		if (!(atomic_load(&v->requests) & bit))
			return true;
		usleep(1000);
	}
	return false;
}

static void *make_request(void *arg)
{
	role = CLIENT;
	vcpu_request(arg, TEST_BIT);
	return NULL;
}

/* A first request brings the vCPU out of its halt; the second comes meanwhile. */
static bool is_served_in_order(struct vcpu *v, const enum role *order)
{
	pthread_t client;
	bool served;

	usleep(SETTLE_US);
	set_schedule(order);
	vcpu_request(v, WAKE_BIT);
	pthread_create(&client, NULL, make_request, v);
	pthread_join(client, NULL);
	served = is_taken(v, TEST_BIT);
	vcpu_request(v, WAKE_BIT);
	return is_taken(v, WAKE_BIT) && served;
}

static void describe(const enum role *order, char *text)
{
	int i;

	for (i = 0; i < STEPS; i++)
		text[i] = order[i] == VCPU ? 'v' : 'c';
	text[STEPS] = '\0';
}

/* The vCPU halts, or is between two exits: one that never blocks. */
static void try_all_orders(const struct fake_step *steps, size_t count)
{
	struct kvm_ops ops = fake_kvm_ops;
	struct vm_rig r;
	unsigned mask, tried = 0;

	vm_rig_init(&r, 1, 16);
	ops.ioctl = ioctl_with_a_point;
	r.vm->kvm_ops = &ops;
	fake_kvm_set_script(0, steps, count);
	assert_int_equal(vm_rig_start(&r), 0);
	for (mask = 0; mask < 1u << STEPS; mask++) {
		enum role order[STEPS];
		char text[STEPS + 1];
		int i;

		if (__builtin_popcount(mask) != STEPS / 2)
			continue;
		for (i = 0; i < STEPS; i++)
			order[i] = mask & 1u << i ? VCPU : CLIENT;
		describe(order, text);
		if (!is_served_in_order(r.vm->vcpus[0], order))
			fail_msg("order %s: the request is lost", text);
		tried++;
	}
	assert_int_equal(tried, 20);
	assert_int_equal(vm_rig_end(&r), VM_END_STOPPED);
	vm_rig_fini(&r);
}

static void no_interleaving_loses_the_request_of_a_halted_vcpu(void **state)
{
	static const struct fake_step steps[] = { FAKE_WAIT() };

	try_all_orders(steps, 1);
}

static void no_interleaving_loses_the_request_of_a_busy_vcpu(void **state)
{
	static const struct fake_step steps[] = { FAKE_SPIN() };

	try_all_orders(steps, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_interleaving_loses_the_request_of_a_halted_vcpu),
		cmocka_unit_test(no_interleaving_loses_the_request_of_a_busy_vcpu),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
