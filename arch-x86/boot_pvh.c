/*
 * PVH start_info version 1, with a memory map and at most one module, the
 * initrd. Threads: main. Locks: none.
 */
#include "arch-x86/boot_pvh.h"

#include <string.h>

#include "arch-x86/e820.h"
#include "arch-x86/gdt.h"
#include "arch-x86/layout.h"
#include "vmm/base/bits.h"
#include "vmm/loader.h"

#define START_MAGIC 0x336EC578u
#define START_VERSION 1

/* All little-endian, as the guest reads them. */
struct pvh_start_info {
	uint32_t magic;
	uint32_t version;
	uint32_t flags;
	uint32_t nr_modules;
	uint64_t modlist_paddr;
	uint64_t cmdline_paddr;
	uint64_t rsdp_paddr;
	uint64_t memmap_paddr;
	uint32_t memmap_entries;
	uint32_t reserved;
};

struct pvh_module {
	uint64_t paddr;
	uint64_t size;
	uint64_t cmdline_paddr;
	uint64_t reserved;
};

struct pvh_memmap_entry {
	uint64_t addr;
	uint64_t size;
	uint32_t type;
	uint32_t reserved;
};

_Static_assert(sizeof(struct pvh_start_info) == 56, "start_info version 1");
_Static_assert(sizeof(struct pvh_module) == 32, "module list entry");
_Static_assert(sizeof(struct pvh_memmap_entry) == 24, "memory map entry");

static int write_memmap(const struct guest_mem *m, uint32_t *ret_count)
{
	struct pvh_memmap_entry out[E820_ENTRIES] = { 0 };
	struct e820_entry map[E820_ENTRIES];
	uint32_t count = e820_build(m, map), i;

	for (i = 0; i < count; i++) {
		out[i].addr = htole64(map[i].addr);
		out[i].size = htole64(map[i].size);
		out[i].type = htole32((uint32_t)map[i].type);
	}
	*ret_count = count;
	return guest_mem_copy_out(m, LAYOUT_PVH_MEMMAP, out, count * sizeof(out[0]));
}

static int write_start_info(const struct boot_input *in, uint64_t initrd, uint64_t initrd_size)
{
	struct pvh_module module = { .paddr = htole64(initrd), .size = htole64(initrd_size) };
	struct pvh_start_info info = {
		.magic = htole32(START_MAGIC),
		.version = htole32(START_VERSION),
		.cmdline_paddr = htole64(LAYOUT_CMDLINE),
		.rsdp_paddr = htole64(in->rsdp),
		.memmap_paddr = htole64(LAYOUT_PVH_MEMMAP),
	};
	uint32_t entries;
	int ret = write_memmap(in->mem, &entries);

	if (ret < 0)
		return ret;
	info.memmap_entries = htole32(entries);
	if (initrd_size) {
		info.nr_modules = htole32(1);
		info.modlist_paddr = htole64(LAYOUT_PVH_MODULES);
		ret = guest_mem_copy_out(in->mem, LAYOUT_PVH_MODULES, &module, sizeof(module));
		if (ret < 0)
			return ret;
	}
	return guest_mem_copy_out(in->mem, LAYOUT_PVH_START_INFO, &info, sizeof(info));
}

int boot_pvh_finish(const struct boot_input *in, uint32_t entry, uint64_t kernel_end,
		    struct boot_start *ret, struct error *err)
{
	uint64_t initrd = 0, initrd_size = 0;
	int code;

	if (in->initrd_fd >= 0) {
		code = loader_initrd(in->mem, in->initrd_fd, kernel_end, LAYOUT_LOW_RAM_END, &initrd,
				     &initrd_size, err);
		if (code < 0) {
			error_prefix(err, BOOT_INITRD_ERROR);
			return code;
		}
	}
	code = guest_mem_copy_out(in->mem, LAYOUT_CMDLINE, in->cmdline, strlen(in->cmdline) + 1);
	if (code == 0)
		code = write_start_info(in, initrd, initrd_size);
	if (code == 0)
		code = gdt_write(in->mem, 0);
	if (code < 0)
		return error_set_errno(err, code, "kernel: guest memory is too small to boot");
	*ret = (struct boot_start){
		.protocol = BOOT_PVH,
		.entry = entry,
		.info = LAYOUT_PVH_START_INFO,
	};
	return 0;
}
