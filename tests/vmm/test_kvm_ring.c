/*
 * Coalesced writes: the typed call, and that the fake KVM has zones and a ring
 * as the kernel has.
 */
#include "tests/vmm/kvm_fixture.h"

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
	const struct CMUnitTest tests[] = {
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
