/*
 * The typed KVM calls, and that the fake KVM behaves as the kernel where the
 * core relies on it.
 */
#include "tests/vmm/kvm_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "vmm/base/fd.h"

static void a_missing_kvm_is_an_error_that_names_it(void **state)
{
	struct kvm_fd k = { .fd = -EBADF };
	struct error err;

	fake_kvm_reset();
	fake_kvm_fail(FAKE_OPEN, 1, EACCES);
	assert_int_equal(kvm_open(&fake_kvm_ops, &k, &err), -EACCES);
	assert_non_null(strstr(err.text, "/dev/kvm"));
	assert_int_equal(k.fd, -EBADF);
}

static void an_api_version_that_cannot_be_had_is_refused(void **state)
{
	struct kvm_fd k = { .fd = -EBADF };
	struct error err;

	fake_kvm_reset();
	fake_kvm_fail(KVM_GET_API_VERSION, 1, EINVAL);
	assert_int_equal(kvm_open(&fake_kvm_ops, &k, &err), -EINVAL);
	assert_int_equal(fake_kvm_open_objects(), 0);
}

static void a_failed_request_gives_its_errno(void **state)
{
	struct fixture *f = *state;

	fake_kvm_fail(KVM_CREATE_IRQCHIP, 1, ENOMEM);
	assert_int_equal(kvm_create_irqchip(f->vm), -ENOMEM);
	assert_int_equal(kvm_create_irqchip(f->vm), 0);
}

static void an_interrupted_request_is_made_again(void **state)
{
	struct fixture *f = *state;

	fake_kvm_fail(KVM_CREATE_IRQCHIP, 1, EINTR);
	assert_int_equal(kvm_create_irqchip(f->vm), 0);
	assert_true(fake_kvm_failed());
}

static void closing_twice_is_fine(void **state)
{
	struct fixture *f = *state;

	kvm_close(&f->vm);
	kvm_close(&f->vm);
	assert_int_equal(f->vm.fd, -EBADF);
	assert_int_equal(fake_kvm_mismatches(), 0);
}

static void a_capability_is_a_number_and_an_unknown_one_is_zero(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(kvm_check_extension(f->kvm, KVM_CAP_IMMEDIATE_EXIT), 1);
	assert_int_equal(kvm_check_extension(f->kvm, 9999), 0);
}

static void slots_may_not_overlap_nor_be_odd(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(kvm_set_user_memory_region(f->vm, 0, 0, 0x1000, 0x4000, f->ram), 0);
	assert_int_equal(kvm_set_user_memory_region(f->vm, 1, 0, 0x4000, 0x1000, f->ram), -EEXIST);
	assert_int_equal(kvm_set_user_memory_region(f->vm, 1, 0, 0x5000, 0x1000, f->ram), 0);
	assert_int_equal(kvm_set_user_memory_region(f->vm, 2, 0, 0x8100, 0x1000, f->ram), -EINVAL);
	assert_int_equal(kvm_set_user_memory_region(f->vm, 2, 0, 0x8000, 0x1001, f->ram), -EINVAL);
	assert_int_equal(kvm_set_user_memory_region(f->vm, 2, 0, 0x8000, 0x1000, f->ram + 8),
			 -EINVAL);
}

static void the_order_of_creation_is_kept(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(kvm_irq_line(f->vm, 4, true), -ENXIO);
	assert_int_equal(kvm_create_vcpu(f->vm, 0, &f->vcpu), 0);
	assert_int_equal(kvm_create_irqchip(f->vm), -EINVAL);
}

static void a_vcpu_id_exists_once(void **state)
{
	struct fixture *f = *state;
	struct kvm_fd second = { .fd = -EBADF };

	assert_int_equal(kvm_create_vcpu(f->vm, 3, &f->vcpu), 0);
	assert_int_equal(kvm_create_vcpu(f->vm, 3, &second), -EEXIST);
	assert_int_equal(second.fd, -EBADF);
}

static void an_irqfd_takes_and_gives_its_line_back(void **state)
{
	struct fixture *f = *state;
	int fd = fd_eventfd_new();

	assert_int_equal(kvm_irqfd(f->vm, 6, fd, true), -EINVAL); /* no chip yet */
	assert_int_equal(kvm_create_irqchip(f->vm), 0);
	assert_int_equal(kvm_irqfd(f->vm, 6, fd, true), 0);
	assert_int_equal(kvm_irqfd(f->vm, 6, fd, false), 0);
	close(fd);
}

static void an_ioeventfd_exists_once_and_goes_once(void **state)
{
	struct fixture *f = *state;
	int fd = fd_eventfd_new();

	assert_int_equal(kvm_ioeventfd(f->vm, false, 0xd0000000, 4, 0, fd, true), 0);
	assert_int_equal(kvm_ioeventfd(f->vm, false, 0xd0000000, 4, 0, fd, true), -EEXIST);
	assert_int_equal(kvm_ioeventfd(f->vm, true, 0xd0000000, 4, 0, fd, true), 0);
	assert_int_equal(kvm_ioeventfd(f->vm, false, 0xd0000000, 3, 0, fd, true), -EINVAL);
	assert_int_equal(kvm_ioeventfd(f->vm, false, 0xd0000000, 4, 0, fd, false), 0);
	assert_int_equal(kvm_ioeventfd(f->vm, false, 0xd0000000, 4, 0, fd, false), -ENOENT);
	close(fd);
}

/* KVM_RUN: what vcpu.c builds on. */

static void a_write_is_an_exit_with_its_data(void **state)
{
	static const struct fake_step steps[] = { FAKE_OUT(0x3f8, 1, 'x'),
						  FAKE_MMIO_W(0xd0000000, 4, 0x12345678) };
	struct fixture *f = *state;

	MAKE_VCPU(f, steps);
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	assert_int_equal(f->run->exit_reason, KVM_EXIT_IO);
	assert_int_equal(f->run->io.port, 0x3f8);
	assert_int_equal(((uint8_t *)f->run)[f->run->io.data_offset], 'x');
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	assert_int_equal(f->run->exit_reason, KVM_EXIT_MMIO);
	assert_memory_equal(f->run->mmio.data, "\x78\x56\x34\x12", 4);
}

static void a_read_is_complete_with_the_next_run(void **state)
{
	static const struct fake_step steps[] = { FAKE_IN_EXPECT(0x61, 1, 0xff, 0x20),
						  FAKE_EXIT(KVM_EXIT_HLT) };
	struct fixture *f = *state;

	MAKE_VCPU(f, steps);
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	((uint8_t *)f->run)[f->run->io.data_offset] = 0x20;
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	assert_int_equal(f->run->exit_reason, KVM_EXIT_HLT);
	assert_int_equal(fake_kvm_mismatches(), 0);
}

/* So that a pause or a snapshot never has half an access. */
static void immediate_exit_lets_a_read_complete_first(void **state)
{
	static const struct fake_step steps[] = { FAKE_IN_EXPECT(0x61, 1, 0xff, 0x20),
						  FAKE_EXIT(KVM_EXIT_HLT) };
	struct fixture *f = *state;

	MAKE_VCPU(f, steps);
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	((uint8_t *)f->run)[f->run->io.data_offset] = 0x20;
	f->run->immediate_exit = 1;
	assert_int_equal(kvm_vcpu_run(f->vcpu), -EINTR);
	f->run->immediate_exit = 0;
	((uint8_t *)f->run)[f->run->io.data_offset] = 0xee; /* not looked at again */
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	assert_int_equal(f->run->exit_reason, KVM_EXIT_HLT);
	assert_int_equal(fake_kvm_mismatches(), 0);
}

static _Atomic int signals_seen;

static void count_signal(int signo)
{
	atomic_fetch_add(&signals_seen, 1);
}

static void install_signal(void)
{
	struct sigaction action = { .sa_handler = count_signal };

	sigaction(SIGRTMIN, &action, NULL);
	atomic_store(&signals_seen, 0);
}

/* The reason why there is immediate_exit at all. */
static void a_signal_before_the_run_is_gone(void **state)
{
	static const struct fake_step steps[] = { FAKE_EXIT(KVM_EXIT_HLT) };
	struct fixture *f = *state;

	MAKE_VCPU(f, steps);
	install_signal();
	raise(SIGRTMIN);
	assert_int_equal(signals_seen, 1);
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
}

static void *kick_later(void *arg)
{
	usleep(20000);
	pthread_kill(*(pthread_t *)arg, SIGRTMIN);
	return NULL;
}

static void interrupt_a_run(struct fixture *f)
{
	pthread_t self = pthread_self(), thread;

	install_signal();
	pthread_create(&thread, NULL, kick_later, &self);
	assert_int_equal(kvm_vcpu_run(f->vcpu), -EINTR);
	pthread_join(thread, NULL);
	assert_int_equal(signals_seen, 1);
}

static void a_signal_ends_a_halt(void **state)
{
	static const struct fake_step steps[] = { FAKE_WAIT() };

	MAKE_VCPU((struct fixture *)*state, steps);
	interrupt_a_run(*state);
}

static void a_signal_ends_a_guest_that_never_exits(void **state)
{
	static const struct fake_step steps[] = { FAKE_SPIN() };

	MAKE_VCPU((struct fixture *)*state, steps);
	interrupt_a_run(*state);
}

static void raise_signal(void *arg)
{
	raise(SIGRTMIN);
}

/* It came after KVM_RUN looked at immediate_exit, so only the signal tells of it. */
static void a_signal_inside_is_seen_before_a_halt(void **state)
{
	static const struct fake_step steps[] = { FAKE_CALL(raise_signal, NULL), FAKE_WAIT() };
	struct fixture *f = *state;

	MAKE_VCPU(f, steps);
	install_signal();
	assert_int_equal(kvm_vcpu_run(f->vcpu), -EINTR);
	assert_int_equal(signals_seen, 1);
}

static void a_signal_ends_a_guest_that_only_rings(void **state)
{
	static const struct fake_step steps[] = { FAKE_MMIO_W(0xd0000000, 4, 0), FAKE_LOOP(0, 0) };
	struct fixture *f = *state;
	int fd = fd_eventfd_new();

	assert_int_equal(kvm_ioeventfd(f->vm, false, 0xd0000000, 4, 0, fd, true), 0);
	MAKE_VCPU(f, steps);
	interrupt_a_run(f);
	close(fd);
}

static void the_script_sees_guest_memory_through_its_slots(void **state)
{
	static const struct fake_step steps[] = {
		FAKE_MEM_W(0x1ff0, "0123456789abcdef", 16),
		FAKE_MEM_EXPECT(0x1ff8, "89abcdef", 8),
		FAKE_MEM_W(0x1ff9, "01234567", 8), /* a byte too far */
		FAKE_EXIT(KVM_EXIT_HLT),
	};
	struct fixture *f = *state;

	assert_int_equal(kvm_set_user_memory_region(f->vm, 0, 0, 0, 0x2000, f->ram), 0);
	MAKE_VCPU(f, steps);
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	assert_memory_equal(f->ram + 0x1ff0, "0123456789abcdef", 16);
	assert_int_equal(fake_kvm_mismatches(), 1);
	assert_non_null(strstr(fake_kvm_mismatch(), "not RAM"));
}

static void a_loop_goes_round_as_often_as_it_says(void **state)
{
	static const struct fake_step steps[] = { FAKE_OUT(1, 1, 0), FAKE_LOOP(0, 3),
						  FAKE_EXIT(KVM_EXIT_HLT) };
	struct fixture *f = *state;
	int i;

	MAKE_VCPU(f, steps);
	for (i = 0; i < 4; i++) {
		assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
		assert_int_equal(f->run->exit_reason, KVM_EXIT_IO);
	}
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	assert_int_equal(f->run->exit_reason, KVM_EXIT_HLT);
}

static void a_run_that_fails_gives_its_errno(void **state)
{
	static const struct fake_step steps[] = { FAKE_RUN_FAILS(EFAULT) };
	struct fixture *f = *state;

	MAKE_VCPU(f, steps);
	assert_int_equal(kvm_vcpu_run(f->vcpu), -EFAULT);
}

static void an_irqfd_wakes_who_waits_for_its_line(void **state)
{
	static const struct fake_step steps[] = { FAKE_WAIT_IRQ(6), FAKE_EXIT(KVM_EXIT_HLT) };
	struct fixture *f = *state;
	int fd = fd_eventfd_new();

	assert_int_equal(kvm_create_irqchip(f->vm), 0);
	MAKE_VCPU(f, steps);
	assert_int_equal(kvm_irqfd(f->vm, 6, fd, true), 0);
	fd_eventfd_signal(fd);
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	assert_int_equal(f->run->exit_reason, KVM_EXIT_HLT);
	assert_int_equal(fake_kvm_irq_edges(6), 1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_kvm_is_an_error_that_names_it),
		cmocka_unit_test(an_api_version_that_cannot_be_had_is_refused),
		WITH_VM(a_failed_request_gives_its_errno),
		WITH_VM(an_interrupted_request_is_made_again),
		WITH_VM(closing_twice_is_fine),
		WITH_VM(a_capability_is_a_number_and_an_unknown_one_is_zero),
		WITH_VM(slots_may_not_overlap_nor_be_odd),
		WITH_VM(the_order_of_creation_is_kept),
		WITH_VM(a_vcpu_id_exists_once),
		WITH_VM(an_irqfd_takes_and_gives_its_line_back),
		WITH_VM(an_ioeventfd_exists_once_and_goes_once),
		WITH_VM(a_write_is_an_exit_with_its_data),
		WITH_VM(a_read_is_complete_with_the_next_run),
		WITH_VM(immediate_exit_lets_a_read_complete_first),
		WITH_VM(a_signal_before_the_run_is_gone),
		WITH_VM(a_signal_ends_a_halt),
		WITH_VM(a_signal_ends_a_guest_that_never_exits),
		WITH_VM(a_signal_inside_is_seen_before_a_halt),
		WITH_VM(a_signal_ends_a_guest_that_only_rings),
		WITH_VM(the_script_sees_guest_memory_through_its_slots),
		WITH_VM(a_loop_goes_round_as_often_as_it_says),
		WITH_VM(a_run_that_fails_gives_its_errno),
		WITH_VM(an_irqfd_wakes_who_waits_for_its_line),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
