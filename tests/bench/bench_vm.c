/*
 * The VM of the benchmarks. A failure ends the program: there is nothing to measure.
 *
 * Threads: main. Locks: none.
 */
#include "bench_vm.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch-x86/layout.h"
#include "devices/registry.h"
#include "replay_kvm.h"
#include "vmm/base/bits.h"

#define POLL_MS 5 /* between looks at the vCPUs' progress */
#define DRIVE_BYTES 65536

static void fail(const char *what, const struct error *err)
{
	fprintf(stderr, "bench: %s: %s\n", what, err ? err->text : "failed");
	exit(1);
}

/* A file of these bytes, which goes with the process. */
static int scratch_file(const char *name, const void *data, size_t bytes)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, DRIVE_BYTES) < 0 ||
	    write(fd, data, bytes) != (ssize_t)bytes)
		fail(name, NULL);
	return fd;
}

/* One segment: a kernel as far as the loader is concerned. */
static int kernel_file(void)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
		uint8_t code[16];
	} k = {
		.header = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT },
			.e_type = ET_EXEC,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_entry = LAYOUT_KERNEL,
			.e_phoff = sizeof(k.header),
			.e_ehsize = sizeof(k.header),
			.e_phentsize = sizeof(k.segment),
			.e_phnum = 1,
		},
		.segment = {
			.p_type = PT_LOAD,
			.p_offset = sizeof(k.header) + sizeof(k.segment),
			.p_paddr = LAYOUT_KERNEL,
			.p_filesz = sizeof(k.code),
			.p_memsz = sizeof(k.code),
		},
	};

	return scratch_file("kernel", &k, sizeof(k));
}

static void add_drive(struct bench_vm *b, uint32_t index)
{
	struct drive_config drive = { .cache_type = DRIVE_CACHE_UNSAFE };
	struct error err;

	snprintf(drive.drive_id, sizeof(drive.drive_id), "drive%u", index);
	snprintf(drive.path_on_host, sizeof(drive.path_on_host), "/proc/self/fd/%d",
		 scratch_file(drive.drive_id, "", 1));
	if (control_put_drive(b->rig.vm, &drive, &err) < 0)
		fail(drive.drive_id, &err);
}

void bench_vm_init(struct bench_vm *b, uint32_t vcpus, uint32_t drives)
{
	const struct entropy_config entropy = { 0 };
	struct error err;
	struct vm *vm;
	uint32_t i;

	replay_kvm_reset();
	vm_rig_init(&b->rig, vcpus, 128);
	vm = b->rig.vm;
	vm->kvm_ops = &replay_kvm_ops;
	vm->classes = &device_registry;
	vm->kernel_fd = kernel_file();
	vm->config.serial.console = CONSOLE_FILE;
	snprintf(vm->config.serial.path, sizeof(vm->config.serial.path), "/dev/null");
	for (i = 0; i < drives; i++)
		add_drive(b, i);
	if (control_put_entropy(vm, &entropy, &err) < 0)
		fail("entropy", &err);
}

void bench_vm_fini(struct bench_vm *b)
{
	vm_rig_fini(&b->rig);
}

void bench_vm_start(struct bench_vm *b)
{
	if (vm_rig_start(&b->rig) < 0)
		fail("the VM does not start", &b->rig.err);
}

void bench_vm_run_each(struct bench_vm *b, uint64_t exits)
{
	uint32_t i;

	for (i = 0; i < b->rig.vm->vcpu_count; i++) {
		while (replay_kvm_exits(i) < exits && !b->rig.ended)
			vm_rig_run_for(&b->rig, POLL_MS);
	}
}

static uint64_t made(const struct bench_vm *b)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < b->rig.vm->vcpu_count; i++)
		sum += replay_kvm_exits(i);
	return sum;
}

uint64_t bench_vm_run_all(struct bench_vm *b, uint64_t exits)
{
	uint64_t sum;

	for (sum = made(b); sum < exits && !b->rig.ended; sum = made(b))
		vm_rig_run_for(&b->rig, POLL_MS);
	return sum;
}

void bench_vm_end(struct bench_vm *b)
{
	if (b->rig.ended)
		fail("the VM has ended by itself", NULL);
	vm_rig_end(&b->rig);
	if (fake_kvm_mismatches()) {
		fprintf(stderr, "bench: %s\n", fake_kvm_mismatch());
		exit(1);
	}
}
