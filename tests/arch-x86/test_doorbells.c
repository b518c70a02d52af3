/*
 * Each change of a doorbell makes the kernel wait for all that read its table
 * of them. So all are made before the first vCPU runs, and nothing that a
 * guest or a client does later changes one.
 */
#include "tests/arch-x86/elf_image.h"

#include <stdatomic.h>

#include "fake_kvm.h"
#include "vm_rig.h"

#include "arch-x86/layout.h"
#include "devices/virtio/blk.h"
#include "devices/virtio/rng.h"

/* A virtio device in its slot: 0 is the drive, 1 the entropy device. */
#define REG(slot, offset) (LAYOUT_VIRTIO + (slot) * LAYOUT_VIRTIO_BYTES + (offset))
#define W(slot, offset, value) FAKE_MMIO_W(REG(slot, offset), 4, value)
#define RING(slot) (0x200000ull + (slot) * 0x10000)
#define RESET(slot) W(slot, 0x070, 0)
/* Negotiates VERSION_1 alone, makes one queue of eight ready, starts. */
#define SET_UP(slot)                                                                      \
	RESET(slot), W(slot, 0x070, 3), W(slot, 0x024, 1), W(slot, 0x020, 1),             \
	W(slot, 0x070, 0xb), W(slot, 0x030, 0), W(slot, 0x038, 8),                        \
	W(slot, 0x080, RING(slot)), W(slot, 0x090, RING(slot) + 0x1000),                  \
	W(slot, 0x0a0, RING(slot) + 0x2000), W(slot, 0x044, 1), W(slot, 0x070, 0xf),      \
	FAKE_MMIO_EXPECT(REG(slot, 0x070), 4, 0xff, 0xf)
#define NOTIFY(slot) W(slot, 0x050, 0)

static struct vm_rig rig;
static char drive[40];
static _Atomic unsigned set_ups;

static void count_set_up(void *arg)
{
	atomic_fetch_add(&set_ups, 1);
}

/* Sets both devices up, has them serve, and resets them, for ever. */
static const struct fake_step drivers[] = {
	SET_UP(0), SET_UP(1), NOTIFY(0), NOTIFY(1), RESET(1), RESET(0),
	FAKE_CALL(count_set_up, NULL), FAKE_LOOP(0, 0),
};

static int make(void **state)
{
	static const struct fake_step wait[] = { FAKE_WAIT() };
	struct elf_image e;
	int fd;

	snprintf(drive, sizeof(drive), "/tmp/lull-test-doorbells-XXXXXX");
	fd = mkstemp(drive);
	assert_int_equal(ftruncate(fd, 4096), 0);
	close(fd);
	vm_rig_init(&rig, 2, 16);
	fake_kvm_set_default_script(wait, 1);
	fake_kvm_set_script(0, drivers, ARRAY_SIZE(drivers));
	elf_image_init(&e);
	elf_image_pvh(&e, ELF_TEXT, 4);
	rig.vm->kernel_fd = elf_image_file(&e);
	rig.vm->config.has_boot_source = true;
	rig.vm->config.serial.console = CONSOLE_NONE;
	rig.classes.block = &virtio_blk_class;
	rig.classes.entropy = &virtio_rng_class;
	snprintf(rig.vm->config.drives[0].drive_id, 8, "drive");
	snprintf(rig.vm->config.drives[0].path_on_host, LIMIT_PATH, "%s", drive);
	rig.vm->config.drive_count = 1;
	rig.vm->config.has_entropy = true;
	return 0;
}

static int unmake(void **state)
{
	if (rig.vm && rig.vm->state.phase == VM_RUNNING)
		vm_rig_end(&rig);
	if (rig.vm)
		vm_rig_fini(&rig);
	unlink(drive);
	return fake_kvm_open_objects() || fake_kvm_mismatches() ? -1 : 0;
}

static void run_until_set_up(unsigned times)
{
	unsigned wanted = atomic_load(&set_ups) + times;

	while (atomic_load(&set_ups) < wanted)
		vm_rig_run_for(&rig, 1);
}

static void assert_calls(uint64_t before_run, uint64_t after_run)
{
	struct fake_ioeventfd_calls calls;

	fake_kvm_get_ioeventfd_calls(&calls);
	assert_int_equal(calls.before_run, before_run);
	assert_int_equal(calls.after_run, after_run);
}

static void doorbells_are_all_made_before_a_vcpu_runs(void **state)
{
	assert_int_equal(vm_rig_start(&rig), 0);
	run_until_set_up(1);
	assert_calls(2, 0); /* a queue each */
	assert_int_equal(fake_kvm_ioeventfd_count(), 2);
}

static void set_ups_and_resets_of_devices_change_none(void **state)
{
	struct fake_vcpu_counts counts;

	assert_int_equal(vm_rig_start(&rig), 0);
	run_until_set_up(20);
	fake_kvm_get_counts(0, &counts);
	assert_true(counts.doorbells >= 40);
	assert_calls(2, 0);
}

static void pauses_change_none(void **state)
{
	int i;

	assert_int_equal(vm_rig_start(&rig), 0);
	for (i = 0; i < 10; i++) {
		run_until_set_up(1);
		assert_int_equal(vm_rig_pause(&rig), 0);
		assert_int_equal(vm_rig_resume(&rig), 0);
	}
	assert_calls(2, 0);
}

static void the_end_takes_them_away(void **state)
{
	assert_int_equal(vm_rig_start(&rig), 0);
	run_until_set_up(1);
	vm_rig_end(&rig);
	vm_rig_fini(&rig);
	assert_calls(2, 2);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make, unmake)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(doorbells_are_all_made_before_a_vcpu_runs),
		TEST(set_ups_and_resets_of_devices_change_none),
		TEST(pauses_change_none),
		TEST(the_end_takes_them_away),
	};

	alarm(100);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
