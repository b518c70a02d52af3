/*
 * Everything that lies in guest memory when the first vCPU starts.
 * Threads: main. Locks: none.
 */
#include "arch-x86/boot.h"

#include <elf.h>
#include <errno.h>

#include "arch-x86/acpi.h"
#include "arch-x86/arch_vm.h"
#include "arch-x86/boot_linux.h"
#include "arch-x86/boot_pvh.h"
#include "arch-x86/cmdline.h"
#include "arch-x86/layout.h"
#include "arch-x86/mptable.h"
#include "vmm/arch.h"
#include "vmm/loader.h"
#include "vmm/vm.h"

/* How clients know a kernel that cannot be loaded; returns `code`. */
static int bad_kernel(int code, struct error *err)
{
	error_prefix(err, "System configuration error: Cannot load kernel due to invalid memory "
			  "configuration or invalid kernel image: ");
	return code;
}

static int boot_elf(const struct boot_input *in, struct boot_start *ret, struct error *err)
{
	struct boot_linux_kernel kernel;
	struct loader_elf elf;
	int code = loader_elf(in->mem, in->kernel_fd, EM_X86_64, LAYOUT_KERNEL, &elf, err);

	if (code < 0)
		return bad_kernel(code, err);
	if (elf.has_pvh_entry)
		return boot_pvh_finish(in, elf.pvh_entry, elf.high, ret, err);
	if (elf.high > LAYOUT_IDENTITY_BYTES)
		return bad_kernel(error_set(err, -EFAULT,
					    "kernel: ELF file ends at 0x%llx, above 1 GiB",
					    (unsigned long long)elf.high), err);
	boot_linux_from_elf(elf.entry, elf.high, &kernel);
	return boot_linux_finish(in, &kernel, ret, err);
}

int boot_kernel(const struct boot_input *in, struct boot_start *ret, struct error *err)
{
	struct boot_linux_kernel kernel;
	int code;

	if (loader_is_elf(in->kernel_fd))
		return boot_elf(in, ret, err);
	code = boot_linux_load(in->mem, in->kernel_fd, &kernel, err);
	if (code < 0)
		return bad_kernel(code, err);
	return boot_linux_finish(in, &kernel, ret, err);
}

static const struct drive_config *root_drive(const struct vm_config *c)
{
	uint32_t i;

	for (i = 0; i < c->drive_count; i++)
		if (c->drives[i].is_root_device)
			return &c->drives[i];
	return NULL;
}

static int write_tables(struct vm *vm, uint64_t *ret_rsdp, struct error *err)
{
	const struct arch_vm *arch = vm->arch;
	struct guest_mem_range ram[LIMIT_MEM_REGIONS];
	struct acpi_config acpi = {
		.topology = &vm->topology,
		.ram = ram,
		.slots = arch->board.virtio,
		.slot_count = arch->board.virtio_count,
	};
	int ret;

	for (; acpi.ram_count < vm->mem.count; acpi.ram_count++)
		ram[acpi.ram_count] = (struct guest_mem_range){
			.gpa = vm->mem.regions[acpi.ram_count].gpa,
			.size = vm->mem.regions[acpi.ram_count].size,
		};
	ret = acpi_write(&vm->mem, &acpi, ret_rsdp, err);
	if (ret < 0)
		return ret;
	return mptable_write(&vm->mem, &vm->topology, arch->board.virtio,
			     arch->board.virtio_count, err);
}

int arch_boot_load(struct vm *vm, struct error *err)
{
	const struct boot_source_config *source = &vm->config.boot_source;
	struct arch_vm *arch = vm->arch;
	struct cmdline_config line = {
		.boot_args = source->has_boot_args ? source->boot_args : NULL,
		.root = root_drive(&vm->config),
		.slots = arch->board.virtio,
		.slot_count = arch->board.virtio_count,
	};
	char cmdline[LIMIT_CMDLINE];
	struct boot_input in = {
		.mem = &vm->mem,
		.kernel_fd = vm->kernel_fd,
		.initrd_fd = vm->initrd_fd,
		.cmdline = cmdline,
	};
	int ret = cmdline_build(&line, cmdline, err);

	if (ret == 0)
		ret = write_tables(vm, &in.rsdp, err);
	if (ret == 0)
		ret = boot_kernel(&in, &arch->start, err);
	return ret;
}
