/*
 * The typed KVM calls, and that the fake KVM behaves as the kernel where the
 * core relies on it.
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
#include <sys/mman.h>
#include <unistd.h>

#include "fake_kvm.h"
#include "vmm/base/fd.h"
#include "vmm/kvm.h"

#define RAM_BYTES 0x10000u

struct fixture {
	struct kvm_fd kvm, vm, vcpu;
	struct kvm_run *run;
	size_t run_bytes;
	uint8_t *ram;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct error err;

	fake_kvm_reset();
	f->vcpu.fd = -EBADF;
	f->ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*state = f;
	if (kvm_open(&fake_kvm_ops, &f->kvm, &err) < 0)
		return -1;
	return kvm_create_vm(f->kvm, &f->vm);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	kvm_unmap_run(f->vcpu, f->run, f->run_bytes);
	kvm_close(&f->vcpu);
	kvm_close(&f->vm);
	kvm_close(&f->kvm);
	munmap(f->ram, RAM_BYTES);
	free(f);
	return fake_kvm_open_objects() == 0 ? 0 : -1;
}

/* One vCPU that runs `steps`. */
static void make_vcpu(struct fixture *f, const struct fake_step *steps, size_t count)
{
	fake_kvm_set_script(0, steps, count);
	assert_int_equal(kvm_create_vcpu(f->vm, 0, &f->vcpu), 0);
	f->run_bytes = (size_t)kvm_vcpu_mmap_size(f->kvm);
	assert_int_equal(kvm_map_run(f->vcpu, f->run_bytes, &f->run), 0);
}

#define MAKE_VCPU(f, steps) make_vcpu(f, steps, sizeof(steps) / sizeof((steps)[0]))

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

/* Coalesced writes */

#define RING_ROOM ((4096 - sizeof(struct kvm_coalesced_mmio_ring)) / \
		   sizeof(struct kvm_coalesced_mmio) - 1)

static struct kvm_coalesced_mmio_ring *ring_of(struct fixture *f, struct kvm_run *run)
{
	int page = kvm_check_extension(f->kvm, KVM_CAP_COALESCED_MMIO);

	assert_int_equal(page, 2);
	assert_int_equal(f->run_bytes, 3 * 4096);
	return (struct kvm_coalesced_mmio_ring *)((uint8_t *)run + page * 4096);
}

static void assert_entry(const struct kvm_coalesced_mmio *e, bool pio, uint64_t address,
			 uint32_t width, const char *data)
{
	assert_int_equal(e->pio, pio);
	assert_int_equal(e->phys_addr, address);
	assert_int_equal(e->len, width);
	assert_memory_equal(e->data, data, width);
}

static void zones_are_of_ports_or_memory_and_may_overlap(void **state)
{
	struct fixture *f = *state;
	struct kvm_coalesced_mmio_zone zone = { .addr = 0x70, .size = 1, .pio = 2 };

	assert_int_equal(kvm_ioctl_ptr(f->vm, KVM_REGISTER_COALESCED_MMIO, &zone), -EINVAL);
	assert_int_equal(kvm_ioctl_ptr(f->vm, KVM_UNREGISTER_COALESCED_MMIO, &zone), -EINVAL);
	assert_int_equal(kvm_coalesced_zone(f->vm, true, 0x70, 2, true), 0);
	assert_int_equal(kvm_coalesced_zone(f->vm, true, 0x70, 1, true), 0);
	assert_int_equal(kvm_coalesced_zone(f->vm, false, 0x70, 1, true), 0);
	assert_true(fake_kvm_get_coalesced_zone(2, &zone));
	assert_int_equal(zone.pio, 0);
	assert_false(fake_kvm_get_coalesced_zone(3, &zone));
}

static void a_zone_goes_with_the_range_in_it_and_no_other(void **state)
{
	struct fixture *f = *state;
	struct kvm_coalesced_mmio_zone zone;

	assert_int_equal(kvm_coalesced_zone(f->vm, true, 0x70, 2, true), 0);
	assert_int_equal(kvm_coalesced_zone(f->vm, true, 0x80, 1, true), 0);
	assert_int_equal(kvm_coalesced_zone(f->vm, true, 0x70, 4, false), 0);  /* too long */
	assert_int_equal(kvm_coalesced_zone(f->vm, false, 0x70, 2, false), 0); /* no port */
	assert_true(fake_kvm_get_coalesced_zone(1, &zone));
	assert_int_equal(kvm_coalesced_zone(f->vm, true, 0x71, 1, false), 0);
	assert_true(fake_kvm_get_coalesced_zone(0, &zone));
	assert_int_equal(zone.addr, 0x80);
	assert_false(fake_kvm_get_coalesced_zone(1, &zone));
}

static void the_number_of_zones_is_limited(void **state)
{
	struct fixture *f = *state;
	int ret = 0, made = -1;

	for (; ret == 0 && made < 1000; made++)
		ret = kvm_coalesced_zone(f->vm, true, 0x70, 1, true);
	assert_int_equal(ret, -ENOSPC);
	assert_int_equal(made, 64);
}

static void without_its_capability_a_zone_is_a_mistake(void **state)
{
	struct fixture *f = *state;

	fake_kvm_set_cap(KVM_CAP_COALESCED_PIO, 0);
	assert_int_equal(kvm_coalesced_zone(f->vm, false, 0xd0000000, 4, true), 0);
	assert_int_equal(kvm_coalesced_zone(f->vm, true, 0x70, 1, true), -EINVAL);
	fake_kvm_set_cap(KVM_CAP_COALESCED_PIO, 1);
	assert_int_equal(fake_kvm_mismatches(), 1);
	fake_kvm_set_cap(KVM_CAP_COALESCED_MMIO, 0);
	assert_int_equal(kvm_vcpu_mmap_size(f->kvm), 2 * 4096);
	assert_int_equal(kvm_coalesced_zone(f->vm, false, 0xd0000000, 4, true), -ENOTTY);
	fake_kvm_set_cap(KVM_CAP_COALESCED_MMIO, 2);
}

static void a_write_in_a_zone_goes_to_the_ring_and_a_read_does_not(void **state)
{
	static const struct fake_step steps[] = { FAKE_OUT(0x70, 1, 0x0a), FAKE_OUT(0x70, 2, 0),
						  FAKE_MMIO_W(0xd0000008, 8, 0x3837363534333231),
						  FAKE_IN(0x70, 1) };
	struct fixture *f = *state;
	struct kvm_coalesced_mmio_ring *ring;

	assert_int_equal(kvm_coalesced_zone(f->vm, true, 0x70, 1, true), 0);
	assert_int_equal(kvm_coalesced_zone(f->vm, false, 0xd0000000, 16, true), 0);
	MAKE_VCPU(f, steps);
	ring = ring_of(f, f->run);
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	assert_int_equal(f->run->io.size, 2); /* half outside */
	assert_int_equal(ring->last, 1);
	assert_entry(&ring->coalesced_mmio[0], true, 0x70, 1, "\x0a");
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	assert_int_equal(f->run->io.direction, KVM_EXIT_IO_IN);
	assert_int_equal(ring->last, 2);
	assert_entry(&ring->coalesced_mmio[1], false, 0xd0000008, 8, "12345678");
}

static void all_vcpus_of_a_vm_have_one_ring(void **state)
{
	static const struct fake_step steps[] = { FAKE_OUT(0x70, 1, 'x'), FAKE_EXIT(KVM_EXIT_HLT) };
	struct fixture *f = *state;
	struct kvm_fd second;
	struct kvm_run *run;

	assert_int_equal(kvm_coalesced_zone(f->vm, true, 0x70, 1, true), 0);
	MAKE_VCPU(f, steps);
	assert_int_equal(kvm_create_vcpu(f->vm, 1, &second), 0);
	assert_int_equal(kvm_map_run(second, f->run_bytes, &run), 0);
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	assert_int_equal(ring_of(f, run)->last, 1);
	assert_entry(&ring_of(f, run)->coalesced_mmio[0], true, 0x70, 1, "x");
	assert_ptr_not_equal(run, f->run);
	kvm_unmap_run(second, run, f->run_bytes);
	kvm_close(&second);
}

static void a_full_ring_makes_the_write_an_exit(void **state)
{
	static const struct fake_step steps[] = { FAKE_OUT(0x70, 1, 'x'), FAKE_LOOP(0, 0) };
	struct fixture *f = *state;
	struct kvm_coalesced_mmio_ring *ring;
	struct fake_vcpu_counts counts;

	assert_int_equal(kvm_coalesced_zone(f->vm, true, 0x70, 1, true), 0);
	MAKE_VCPU(f, steps);
	ring = ring_of(f, f->run);
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	assert_int_equal(f->run->exit_reason, KVM_EXIT_IO);
	assert_int_equal(ring->last, RING_ROOM);
	ring->first = 100;
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0); /* after going round the end */
	assert_int_equal(ring->last, 99);
	fake_kvm_get_counts(0, &counts);
	assert_int_equal(counts.coalesced, RING_ROOM + 100);
	assert_int_equal(counts.ring_full, 2);
}

static void a_ring_spoilt_by_its_consumer_takes_nothing(void **state)
{
	static const struct fake_step steps[] = { FAKE_OUT(0x70, 1, 'x') };
	struct fixture *f = *state;

	assert_int_equal(kvm_coalesced_zone(f->vm, true, 0x70, 1, true), 0);
	MAKE_VCPU(f, steps);
	ring_of(f, f->run)->last = RING_ROOM + 1;
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	assert_int_equal(f->run->exit_reason, KVM_EXIT_IO);
	assert_int_equal(ring_of(f, f->run)->last, RING_ROOM + 1);
}

static void a_string_write_goes_to_the_ring_item_by_item(void **state)
{
	static const struct fake_step steps[] = { FAKE_OUTS(0x70, 2, "aAbBcC", 3),
						  FAKE_EXIT(KVM_EXIT_HLT) };
	struct fixture *f = *state;
	struct kvm_coalesced_mmio_ring *ring;

	assert_int_equal(kvm_coalesced_zone(f->vm, true, 0x70, 2, true), 0);
	MAKE_VCPU(f, steps);
	ring = ring_of(f, f->run);
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	assert_int_equal(f->run->exit_reason, KVM_EXIT_HLT);
	assert_int_equal(ring->last, 3);
	assert_entry(&ring->coalesced_mmio[0], true, 0x70, 2, "aA");
	assert_entry(&ring->coalesced_mmio[2], true, 0x70, 2, "cC");
}

/* What does not fit any more is lost; a VMM that has such ports must bear it. */
static void a_string_write_that_starts_in_the_ring_ends_there(void **state)
{
	static const struct fake_step steps[] = { FAKE_OUTS(0x70, 1, "abc", 3),
						  FAKE_OUTS(0x70, 1, "def", 3) };
	struct fixture *f = *state;
	struct kvm_coalesced_mmio_ring *ring;

	assert_int_equal(kvm_coalesced_zone(f->vm, true, 0x70, 1, true), 0);
	MAKE_VCPU(f, steps);
	ring = ring_of(f, f->run);
	ring->first = 3; /* room for two */
	assert_int_equal(kvm_vcpu_run(f->vcpu), 0);
	assert_int_equal(ring->last, 2);
	assert_entry(&ring->coalesced_mmio[1], true, 0x70, 1, "b");
	assert_int_equal(f->run->io.count, 3);
	assert_memory_equal((uint8_t *)f->run + f->run->io.data_offset, "def", 3);
}

int main(void)
{
#define WITH_VM(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
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
		WITH_VM(the_script_sees_guest_memory_through_its_slots),
		WITH_VM(a_loop_goes_round_as_often_as_it_says),
		WITH_VM(a_run_that_fails_gives_its_errno),
		WITH_VM(an_irqfd_wakes_who_waits_for_its_line),
		WITH_VM(zones_are_of_ports_or_memory_and_may_overlap),
		WITH_VM(a_zone_goes_with_the_range_in_it_and_no_other),
		WITH_VM(the_number_of_zones_is_limited),
		WITH_VM(without_its_capability_a_zone_is_a_mistake),
		WITH_VM(a_write_in_a_zone_goes_to_the_ring_and_a_read_does_not),
		WITH_VM(all_vcpus_of_a_vm_have_one_ring),
		WITH_VM(a_full_ring_makes_the_write_an_exit),
		WITH_VM(a_ring_spoilt_by_its_consumer_takes_nothing),
		WITH_VM(a_string_write_goes_to_the_ring_item_by_item),
		WITH_VM(a_string_write_that_starts_in_the_ring_ends_there),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
