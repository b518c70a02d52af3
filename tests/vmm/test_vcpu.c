/*
 * vCPUs over the fake KVM: what each exit leads to, and that no kick is lost.
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
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake_arch.h"
#include "vm_rig.h"
#include "vmm/vcpu.h"

#define OFF FAKE_OUT(FAKE_POWER_PORT, 1, FAKE_POWER_OFF)
#define PORT 0x700       /* of the test's device */
#define MMIO 0xd0000000u /* the same */
#define NOWHERE 0x999

/* A device that remembers what is written and gives what it is told to. */
static struct {
	unsigned writes;
	uint64_t values[16];
	unsigned widths[16];
	uint64_t next_read;
} spy;

static uint64_t spy_read(void *device, uint64_t offset, unsigned width)
{
	return spy.next_read++;
}

static enum bus_action spy_write(void *device, uint64_t offset, unsigned width, uint64_t value)
{
	if (spy.writes < 16) {
		spy.values[spy.writes] = value;
		spy.widths[spy.writes] = width;
	}
	spy.writes++;
	return BUS_DONE;
}

static const struct bus_ops spy_ops = { spy_read, spy_write };

static int build_spy(struct vm *vm, struct error *err)
{
	struct bus_region region = { "spy", PORT, 16, 1, 4, &spy_ops, NULL };
	int ret = bus_add(&vm->bus, BUS_PIO, &region, err);

	region.base = MMIO;
	region.max_access = 8;
	return ret < 0 ? ret : bus_add(&vm->bus, BUS_MMIO, &region, err);
}

static int setup(void **state)
{
	struct vm_rig *r;

	if (vm_rig_setup(state) < 0)
		return -1;
	r = *state;
	r->vm->config.machine.vcpu_count = 1;
	memset(&spy, 0, sizeof(spy));
	fake_arch.build = build_spy;
	return 0;
}

/* The reason for which a guest that does these steps ends. */
static enum vm_end_reason end_of(struct vm_rig *r, const struct fake_step *steps, size_t count)
{
	fake_kvm_set_script(0, steps, count);
	assert_int_equal(vm_rig_start(r), 0);
	return vm_rig_wait_end(r);
}

#define END_OF(r, ...)                                                                        \
	({                                                                                    \
		static const struct fake_step steps_[] = { __VA_ARGS__ };                     \
		end_of(r, steps_, sizeof(steps_) / sizeof(steps_[0]));                        \
	})

static uint64_t exits_of(struct vm_rig *r, uint32_t reason)
{
	return vcpu_exits(r->vm->vcpus[0], reason);
}

static void a_poweroff_ends_the_vm(void **state)
{
	assert_int_equal(END_OF(*state, OFF), VM_END_GUEST_POWEROFF);
}

static void a_reset_is_told_from_a_poweroff(void **state)
{
	assert_int_equal(END_OF(*state, FAKE_OUT(FAKE_POWER_PORT, 1, FAKE_POWER_RESET)),
			 VM_END_GUEST_RESET);
}

static void a_triple_fault_ends_the_vm(void **state)
{
	assert_int_equal(END_OF(*state, FAKE_SHUTDOWN()), VM_END_GUEST_TRIPLE_FAULT);
}

static void a_failed_entry_is_our_failure(void **state)
{
	assert_int_equal(END_OF(*state, FAKE_FAIL_ENTRY(0x80000021)), VM_END_VCPU_FAILED);
}

static void an_internal_error_of_kvm_is_our_failure(void **state)
{
	assert_int_equal(END_OF(*state, FAKE_INTERNAL_ERROR(1)), VM_END_VCPU_FAILED);
}

static void a_system_event_may_be_a_poweroff(void **state)
{
	assert_int_equal(END_OF(*state, FAKE_SYSTEM_EVENT(KVM_SYSTEM_EVENT_SHUTDOWN)),
			 VM_END_GUEST_POWEROFF);
}

static void a_system_event_may_be_a_reset(void **state)
{
	assert_int_equal(END_OF(*state, FAKE_SYSTEM_EVENT(KVM_SYSTEM_EVENT_RESET)),
			 VM_END_GUEST_RESET);
}

static void a_system_event_may_be_a_crash(void **state)
{
	assert_int_equal(END_OF(*state, FAKE_SYSTEM_EVENT(KVM_SYSTEM_EVENT_CRASH)),
			 VM_END_VCPU_FAILED);
}

static void an_exit_that_nothing_serves_goes_to_the_architecture(void **state)
{
	assert_int_equal(END_OF(*state, FAKE_EXIT(KVM_EXIT_NMI)), VM_END_VCPU_FAILED);
}

static void a_reason_past_the_table_goes_to_the_architecture(void **state)
{
	assert_int_equal(END_OF(*state, FAKE_EXIT(VCPU_EXIT_REASONS + 1)), VM_END_VCPU_FAILED);
}

static void memory_that_is_gone_has_a_reason_of_its_own(void **state)
{
	assert_int_equal(END_OF(*state, FAKE_RUN_FAILS(EFAULT)), VM_END_MEMORY_LOST);
}

static void a_run_that_fails_is_our_failure(void **state)
{
	assert_int_equal(END_OF(*state, FAKE_RUN_FAILS(EINVAL)), VM_END_VCPU_FAILED);
}

/* What a vCPU says that waits for its start-up interrupt. */
static void eagain_is_another_try(void **state)
{
	assert_int_equal(END_OF(*state, FAKE_RUN_FAILS(EAGAIN), FAKE_RUN_FAILS(EAGAIN), OFF),
			 VM_END_GUEST_POWEROFF);
}

static void exits_that_ask_nothing_are_passed_over(void **state)
{
	assert_int_equal(END_OF(*state, FAKE_EXIT(KVM_EXIT_INTR), FAKE_EXIT(KVM_EXIT_DEBUG),
				FAKE_EXIT(KVM_EXIT_IRQ_WINDOW_OPEN), OFF),
			 VM_END_GUEST_POWEROFF);
}

static void a_string_write_reaches_the_device_item_by_item(void **state)
{
	END_OF(*state, FAKE_OUTS(PORT, 2, "aAbBcC", 3), OFF);
	assert_int_equal(spy.writes, 3);
	assert_int_equal(spy.values[0], 'a' | 'A' << 8);
	assert_int_equal(spy.values[2], 'c' | 'C' << 8);
	assert_int_equal(spy.widths[1], 2);
	assert_int_equal(exits_of(*state, KVM_EXIT_IO), 2);
}

static void a_string_read_asks_the_device_for_each_item(void **state)
{
	spy.next_read = 7;
	END_OF(*state, FAKE_INS(PORT, 1, 5), OFF);
	assert_int_equal(spy.next_read, 12);
}

static void a_read_gives_the_guest_what_the_device_said(void **state)
{
	spy.next_read = 0x12345678;
	END_OF(*state, FAKE_IN_EXPECT(PORT, 4, 0xffffffff, 0x12345678),
	       FAKE_MMIO_EXPECT(MMIO, 8, 0xffffffff, 0x12345679), OFF);
	assert_int_equal(fake_kvm_mismatches(), 0);
}

static void what_is_nowhere_reads_as_ones_and_swallows_writes(void **state)
{
	END_OF(*state, FAKE_IN_EXPECT(NOWHERE, 4, 0xffffffff, 0xffffffff),
	       FAKE_IN_EXPECT(NOWHERE, 1, 0xff, 0xff), FAKE_OUT(NOWHERE, 1, 1),
	       FAKE_MMIO_EXPECT(0xe0000000, 2, 0xffff, 0xffff), FAKE_MMIO_W(0xe0000000, 8, 1), OFF);
	assert_int_equal(fake_kvm_mismatches(), 0);
}

/* Vector moves and accesses that cross a page come in such pieces. */
static void an_odd_width_touches_no_device(void **state)
{
	END_OF(*state, FAKE_MMIO_W(MMIO, 3, 0x123456),
	       FAKE_MMIO_EXPECT(MMIO, 5, 0xffffffffff, 0xffffffffff), OFF);
	assert_int_equal(spy.writes, 0);
	assert_int_equal(spy.next_read, 0);
	assert_int_equal(fake_kvm_mismatches(), 0);
}

static void an_access_across_the_end_of_a_device_touches_it_not(void **state)
{
	END_OF(*state, FAKE_OUT(PORT + 14, 4, 1), FAKE_MMIO_W(MMIO + 12, 8, 1), OFF);
	assert_int_equal(spy.writes, 0);
}

/* The rest of a string of resets is not played to a machine that is off. */
static void a_string_write_stops_at_the_end_of_the_guest(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(END_OF(r, FAKE_OUTS(FAKE_POWER_PORT, 1, "\x34\x01\x01", 3)),
			 VM_END_GUEST_POWEROFF);
}

/* KVM never does this; if it did, nothing outside the mapping would be touched. */
static void data_outside_the_run_page_is_an_internal_error(void **state)
{
	struct vm_rig *r = *state;
	struct kvm_run *run = calloc(1, 8192);
	struct vcpu v = { .vm = r->vm, .run = run, .run_bytes = 8192,
			  .coalesced = &r->vm->coalesced,
			  .ring = r->vm->coalesced.ring };

	run->exit_reason = KVM_EXIT_IO;
	run->io.size = 4;
	run->io.count = 2;
	run->io.data_offset = 8192 - 4;
	assert_int_equal(vcpu_handle_exit(&v), VCPU_STOP);
	assert_int_equal(atomic_load(&r->vm->end_reason), VM_END_INTERNAL);
	free(run);
}

static void exits_are_counted_by_reason(void **state)
{
	END_OF(*state, FAKE_OUT(PORT, 1, 0), FAKE_OUT(PORT, 1, 0), FAKE_IN(PORT, 1),
	       FAKE_MMIO_W(MMIO, 4, 0), OFF);
	assert_int_equal(exits_of(*state, KVM_EXIT_IO), 4);
	assert_int_equal(exits_of(*state, KVM_EXIT_MMIO), 1);
	assert_int_equal(((struct vm_rig *)*state)->vm->vcpus[0]->metrics.exit_io_in, 1);
	assert_int_equal(((struct vm_rig *)*state)->vm->vcpus[0]->metrics.exit_mmio_write, 1);
}

static void exit_reasons_have_names(void **state)
{
	assert_string_equal(vcpu_exit_name(KVM_EXIT_IO), "io");
	assert_string_equal(vcpu_exit_name(KVM_EXIT_MMIO), "mmio");
	assert_null(vcpu_exit_name(VCPU_EXIT_REASONS));
	assert_null(vcpu_exit_name(VCPU_EXIT_REASONS - 1));
}

static void a_vcpu_thread_is_named_and_lets_only_the_kick_in(void **state)
{
	struct vm_rig *r = *state;
	char path[64], line[256], comm[32] = "", blocked[32] = "";
	FILE *status;

	assert_int_equal(vm_rig_start(r), 0);
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", r->vm->vcpus[0]->tid);
	status = fopen(path, "r");
	assert_non_null(status);
	while (fgets(line, sizeof(line), status)) {
		if (!strncmp(line, "Name:\t", 6))
			snprintf(comm, sizeof(comm), "%.*s", (int)strcspn(line + 6, "\n"), line + 6);
		if (!strncmp(line, "SigBlk:\t", 8))
			snprintf(blocked, sizeof(blocked), "%.16s", line + 8);
	}
	fclose(status);
	assert_string_equal(comm, "vcpu 0");
	assert_true(strtoull(blocked, NULL, 16) & 1ull << (SIGTERM - 1));
}

/*
 * The litmus test of the kick: rounds in which four threads make a few requests
 * each of the vCPUs, of which one halts, one floods exits, one never leaves its
 * guest and one reads; then each waits until its own has been taken. One that
 * is lost stays: nobody makes another in that round.
 */
#define KICKERS 4
#define ROUNDS 600
#define KICKS 3
#define PATIENCE_S 5

struct kicker {
	struct vm_rig *r;
	pthread_t thread;
	uint32_t bit; /* a request of this thread's that asks for nothing */
	pthread_barrier_t *round;
};

static bool wait_until_taken(struct vcpu *v, uint32_t bit)
{
	time_t end = time(NULL) + PATIENCE_S;

	while (atomic_load(&v->requests) & bit) {
		if (time(NULL) > end)
			return false;
		sched_yield();
	}
	return true;
}

static void *kick_many(void *arg)
{
	struct kicker *k = arg;
	uintptr_t lost = 0;
	int i, j;

	for (i = 0; i < ROUNDS && !lost; i++) {
		struct vcpu *v = k->r->vm->vcpus[i % 8 < 5 ? 0 : i % 8 - 4];

		for (j = 0; j < KICKS; j++)
			vcpu_request(v, k->bit);
		lost += !wait_until_taken(v, k->bit);
		pthread_barrier_wait(k->round);
	}
	return (void *)lost;
}

static void start_four_kinds_of_guest(struct vm_rig *r)
{
	static const struct fake_step halt[] = { FAKE_WAIT() };
	static const struct fake_step flood[] = { FAKE_OUT(NOWHERE, 1, 0), FAKE_LOOP(0, 0) };
	static const struct fake_step busy[] = { FAKE_SPIN() };
	static const struct fake_step reads[] = { FAKE_IN(PORT, 1), FAKE_MMIO_R(MMIO, 4),
						  FAKE_LOOP(0, 0) };

	vm_rig_init(r, 4, 16);
	FAKE_SCRIPT(0, halt);
	FAKE_SCRIPT(1, flood);
	FAKE_SCRIPT(2, busy);
	FAKE_SCRIPT(3, reads);
	assert_int_equal(vm_rig_start(r), 0);
}

static void no_request_of_many_threads_is_lost(void **state)
{
	struct vm_rig r;
	struct kicker k[KICKERS];
	pthread_barrier_t round;
	void *lost, *any = NULL;
	int i;

	start_four_kinds_of_guest(&r);
	pthread_barrier_init(&round, NULL, KICKERS);
	for (i = 0; i < KICKERS; i++) {
		k[i] = (struct kicker){ .r = &r, .bit = 1u << (8 + i), .round = &round };
		pthread_create(&k[i].thread, NULL, kick_many, &k[i]);
	}
	for (i = 0; i < KICKERS; i++) {
		pthread_join(k[i].thread, &lost);
		any = lost ? lost : any;
	}
	pthread_barrier_destroy(&round);
	assert_null(any);
	assert_int_equal(vm_rig_end(&r), VM_END_STOPPED);
	vm_rig_fini(&r);
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, setup, vm_rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(a_poweroff_ends_the_vm),
		WITH_RIG(a_reset_is_told_from_a_poweroff),
		WITH_RIG(a_triple_fault_ends_the_vm),
		WITH_RIG(a_failed_entry_is_our_failure),
		WITH_RIG(an_internal_error_of_kvm_is_our_failure),
		WITH_RIG(a_system_event_may_be_a_poweroff),
		WITH_RIG(a_system_event_may_be_a_reset),
		WITH_RIG(a_system_event_may_be_a_crash),
		WITH_RIG(an_exit_that_nothing_serves_goes_to_the_architecture),
		WITH_RIG(a_reason_past_the_table_goes_to_the_architecture),
		WITH_RIG(memory_that_is_gone_has_a_reason_of_its_own),
		WITH_RIG(a_run_that_fails_is_our_failure),
		WITH_RIG(eagain_is_another_try),
		WITH_RIG(exits_that_ask_nothing_are_passed_over),
		WITH_RIG(a_string_write_reaches_the_device_item_by_item),
		WITH_RIG(a_string_read_asks_the_device_for_each_item),
		WITH_RIG(a_read_gives_the_guest_what_the_device_said),
		WITH_RIG(what_is_nowhere_reads_as_ones_and_swallows_writes),
		WITH_RIG(an_odd_width_touches_no_device),
		WITH_RIG(an_access_across_the_end_of_a_device_touches_it_not),
		WITH_RIG(a_string_write_stops_at_the_end_of_the_guest),
		WITH_RIG(data_outside_the_run_page_is_an_internal_error),
		WITH_RIG(exits_are_counted_by_reason),
		WITH_RIG(a_vcpu_thread_is_named_and_lets_only_the_kick_in),
		cmocka_unit_test(exit_reasons_have_names),
		cmocka_unit_test(no_request_of_many_threads_is_lost),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
