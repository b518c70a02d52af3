/*
 * The KVM that replays: what a vCPU sees of its stream, and that it lets go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "fake_arch.h"
#include "replay_kvm.h"
#include "vm_rig.h"
#include "vmm/base/bits.h"

static const struct replay_exit exits[] = {
	{ REPLAY_PIO_WRITE, 1, 1, 0x3f8, 0x41 },
	{ REPLAY_PIO_READ, 2, 1, 0xcfc, 0xffff },
	{ REPLAY_MMIO_WRITE, 4, 1, 0xc0001070, 0x12345678 },
	{ REPLAY_MMIO_READ, 4, 1, 0xc0001060, 0 },
};

#define COUNT ARRAY_SIZE(exits)

/* One vCPU, of which the test's thread is the thread. */
struct guest {
	struct kvm_fd kvm, vm, vcpu;
	struct kvm_run *run;
};

#define RUN_BYTES (3 * 4096u)

static int setup(void **state)
{
	static struct guest g;
	struct error err;

	replay_kvm_reset();
	replay_kvm_set(0, exits, ARRAY_SIZE(exits), 0); /* a vCPU that replays; tests say what */
	*state = &g;
	return kvm_open(&replay_kvm_ops, &g.kvm, &err) < 0 || kvm_create_vm(g.kvm, &g.vm) < 0 ||
	       kvm_create_vcpu(g.vm, 0, &g.vcpu) < 0 || kvm_map_run(g.vcpu, RUN_BYTES, &g.run) < 0;
}

static int teardown(void **state)
{
	struct guest *g = *state;

	kvm_unmap_run(g->vcpu, g->run, RUN_BYTES);
	kvm_close(&g->vcpu);
	kvm_close(&g->vm);
	kvm_close(&g->kvm);
	return fake_kvm_open_objects() || fake_kvm_mismatches() ? -1 : 0;
}

static void *pio_data(const struct guest *g)
{
	return (uint8_t *)g->run + g->run->io.data_offset;
}

static void a_port_write_is_an_exit_with_its_value(void **state)
{
	const struct guest *g = *state;

	replay_kvm_set(0, exits, COUNT, 10);
	assert_int_equal(kvm_vcpu_run(g->vcpu), 0);
	assert_int_equal(g->run->exit_reason, KVM_EXIT_IO);
	assert_int_equal(g->run->io.direction, KVM_EXIT_IO_OUT);
	assert_int_equal(g->run->io.port, 0x3f8);
	assert_int_equal(g->run->io.size, 1);
	assert_int_equal(g->run->io.count, 1);
	assert_int_equal(*(uint8_t *)pio_data(g), 0x41);
}

static void a_port_read_takes_its_value_at_the_next_run(void **state)
{
	const struct guest *g = *state;

	replay_kvm_set(0, exits + 1, 1, 10);
	assert_int_equal(kvm_vcpu_run(g->vcpu), 0);
	assert_int_equal(g->run->io.direction, KVM_EXIT_IO_IN);
	memcpy(pio_data(g), "\xcd\xab\x99", 3);
	assert_int_equal(replay_kvm_last_read(0), 0);
	assert_int_equal(kvm_vcpu_run(g->vcpu), 0);
	assert_int_equal(replay_kvm_last_read(0), 0xabcd);
}

static void a_memory_mapped_write_is_an_exit_with_its_value(void **state)
{
	const struct guest *g = *state;

	replay_kvm_set(0, exits + 2, 1, 10);
	assert_int_equal(kvm_vcpu_run(g->vcpu), 0);
	assert_int_equal(g->run->exit_reason, KVM_EXIT_MMIO);
	assert_true(g->run->mmio.is_write);
	assert_int_equal(g->run->mmio.phys_addr, 0xc0001070);
	assert_int_equal(g->run->mmio.len, 4);
	assert_memory_equal(g->run->mmio.data, "\x78\x56\x34\x12", 4);
}

static void a_memory_mapped_read_takes_its_value_at_the_next_run(void **state)
{
	const struct guest *g = *state;

	replay_kvm_set(0, exits + 3, 1, 10);
	assert_int_equal(kvm_vcpu_run(g->vcpu), 0);
	assert_false(g->run->mmio.is_write);
	memcpy(g->run->mmio.data, "\x01\x02\x03\x04\x05", 5);
	assert_int_equal(kvm_vcpu_run(g->vcpu), 0);
	assert_int_equal(replay_kvm_last_read(0), 0x04030201);
}

static void a_string_write_has_all_its_items(void **state)
{
	static const struct replay_exit outs = { REPLAY_PIO_WRITE, 2, 3, 0x3f8, 0xffffbbaa };
	const struct guest *g = *state;

	replay_kvm_set(0, &outs, 1, 1);
	assert_int_equal(kvm_vcpu_run(g->vcpu), 0);
	assert_int_equal(g->run->io.count, 3);
	assert_memory_equal(pio_data(g), "\xaa\xbb\xaa\xbb\xaa\xbb", 6);
}

static void the_stream_starts_over_until_its_exits_are_made(void **state)
{
	const struct guest *g = *state;
	unsigned i;

	replay_kvm_set(0, exits, COUNT, 9);
	for (i = 0; i < 9; i++) {
		assert_false(replay_kvm_is_done());
		assert_int_equal(kvm_vcpu_run(g->vcpu), 0);
		assert_int_equal(g->run->exit_reason, i % 4 < 2 ? KVM_EXIT_IO : KVM_EXIT_MMIO);
	}
	assert_true(replay_kvm_is_done());
	assert_int_equal(replay_kvm_exits(0), 9);
}

static const struct replay_exit index_and_data[] = {
	{ REPLAY_PIO_WRITE, 1, 1, 0x70, 0x0a },
	{ REPLAY_PIO_READ, 1, 1, 0x71, 0 },
};

static const struct kvm_coalesced_mmio_ring *ring(const struct guest *g)
{
	return (const void *)((const uint8_t *)g->run + RUN_BYTES - 4096);
}

static void a_coalesced_write_is_in_the_ring_and_no_exit(void **state)
{
	const struct guest *g = *state;

	replay_kvm_set(0, index_and_data, 2, 10);
	assert_int_equal(kvm_coalesced_zone(g->vm, true, 0x70, 1, true), 0);
	assert_int_equal(kvm_vcpu_run(g->vcpu), 0);
	assert_int_equal(g->run->io.direction, KVM_EXIT_IO_IN);
	assert_int_equal(ring(g)->last, 1);
	assert_int_equal(ring(g)->coalesced_mmio[0].phys_addr, 0x70);
	assert_int_equal(ring(g)->coalesced_mmio[0].len, 1);
	assert_true(ring(g)->coalesced_mmio[0].pio);
	assert_int_equal(ring(g)->coalesced_mmio[0].data[0], 0x0a);
	assert_int_equal(replay_kvm_exits(0), 1);
	assert_int_equal(replay_kvm_coalesced(0), 1);
}

static void a_coalesced_write_that_finds_the_ring_full_is_an_exit(void **state)
{
	const struct guest *g = *state;

	replay_kvm_set(0, index_and_data, 1, 10);
	assert_int_equal(kvm_coalesced_zone(g->vm, true, 0x70, 1, true), 0);
	assert_int_equal(kvm_vcpu_run(g->vcpu), 0);
	assert_int_equal(g->run->io.direction, KVM_EXIT_IO_OUT);
	assert_int_equal(g->run->io.port, 0x70);
	assert_int_equal(replay_kvm_coalesced(0), 169);
}

static void immediate_exit_completes_the_read_and_makes_no_exit(void **state)
{
	const struct guest *g = *state;

	replay_kvm_set(0, exits + 1, 1, 10);
	assert_int_equal(kvm_vcpu_run(g->vcpu), 0);
	memcpy(pio_data(g), "\x34\x12", 2);
	g->run->immediate_exit = 1;
	assert_int_equal(kvm_vcpu_run(g->vcpu), -EINTR);
	assert_int_equal(replay_kvm_last_read(0), 0x1234);
	assert_int_equal(replay_kvm_exits(0), 1);
	g->run->immediate_exit = 0;
	assert_int_equal(kvm_vcpu_run(g->vcpu), 0);
}

static void a_kick_before_the_halt_is_not_lost(void **state)
{
	const struct guest *g = *state;

	replay_kvm_set(0, exits, COUNT, 0);
	g->run->immediate_exit = 1;
	assert_int_equal(kvm_vcpu_run(g->vcpu), -EINTR);
	g->run->immediate_exit = 0;
}

static void on_signal(int signo)
{
}

/* The signal is sent until it was seen: the thread may not sleep yet. */
static void *kick_repeatedly(void *arg)
{
	pthread_t *target = arg;

	for (;;) {
		usleep(1000);
		pthread_kill(*target, SIGUSR1);
	}
	return NULL;
}

static void a_signal_ends_the_halt(void **state)
{
	const struct guest *g = *state;
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t self = pthread_self(), kicker;

	sigaction(SIGUSR1, &action, NULL);
	replay_kvm_set(0, exits, COUNT, 0);
	assert_int_equal(pthread_create(&kicker, NULL, kick_repeatedly, &self), 0);
	assert_int_equal(kvm_vcpu_run(g->vcpu), -EINTR);
	pthread_cancel(kicker);
	pthread_join(kicker, NULL);
}

static void a_vm_is_paused_and_ended_amid_the_exits(void **state)
{
	struct vm_rig *r;
	uint64_t made;
	unsigned i;

	assert_int_equal(vm_rig_setup(state), 0);
	r = *state;
	replay_kvm_reset();
	r->vm->kvm_ops = &replay_kvm_ops;
	for (i = 0; i < VM_RIG_VCPUS; i++)
		replay_kvm_set(i, exits, COUNT, UINT64_MAX);
	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(vm_rig_pause(r), 0);
	made = replay_kvm_exits(3);
	usleep(1000);
	assert_int_equal(replay_kvm_exits(3), made);
	assert_int_equal(vm_rig_resume(r), 0);
	while (replay_kvm_exits(3) == made)
		vm_rig_run_for(r, 1);
	assert_int_equal(vm_rig_end(r), VM_END_STOPPED);
	assert_int_equal(vm_rig_teardown(state), 0);
}

#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GUEST(a_port_write_is_an_exit_with_its_value),
		WITH_GUEST(a_port_read_takes_its_value_at_the_next_run),
		WITH_GUEST(a_memory_mapped_write_is_an_exit_with_its_value),
		WITH_GUEST(a_memory_mapped_read_takes_its_value_at_the_next_run),
		WITH_GUEST(a_string_write_has_all_its_items),
		WITH_GUEST(the_stream_starts_over_until_its_exits_are_made),
		WITH_GUEST(a_coalesced_write_is_in_the_ring_and_no_exit),
		WITH_GUEST(a_coalesced_write_that_finds_the_ring_full_is_an_exit),
		WITH_GUEST(immediate_exit_completes_the_read_and_makes_no_exit),
		WITH_GUEST(a_kick_before_the_halt_is_not_lost),
		WITH_GUEST(a_signal_ends_the_halt),
		cmocka_unit_test(a_vm_is_paused_and_ended_amid_the_exits),
	};

	return cmocka_run_group_tests_name("fakes/replay_kvm", tests, NULL, NULL);
}
