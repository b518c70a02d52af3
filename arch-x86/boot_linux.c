/*
 * bzImage and the 64-bit entry of Linux. Threads: main. Locks: none.
 *
 * The header is copied out of the file once and every field of it that is used
 * is checked against the file's size and against guest RAM.
 */
#include "arch-x86/boot_linux.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "arch-x86/e820.h"
#include "arch-x86/gdt.h"
#include "arch-x86/layout.h"
#include "vmm/base/bits.h"
#include "vmm/base/cleanup.h"
#include "vmm/base/fd.h"
#include "vmm/loader.h"

#define SECTOR 512u
#define HEADER_AT offsetof(struct boot_params, hdr) /* 0x1F1, also in the file */
#define HEADER_MAGIC 0x53726448u                    /* "HdrS" */
#define BOOT_FLAG 0xAA55
#define PROTOCOL_MIN 0x20C
#define SETUP_SECTS_DEFAULT 4
/* Where the header ends: 0x202 plus the byte at 0x201, the target of its jump. */
#define JUMP_TARGET_BASE 0x202u
#define HEADER_END_MIN (HEADER_AT + offsetof(struct setup_header, handover_offset))
#define ENTRY64_OFFSET 0x200u
#define LOADER_UNDEFINED 0xFF
#define VID_MODE_NORMAL 0xFFFF

#define PTE_PRESENT BIT_ULL(0)
#define PTE_WRITABLE BIT_ULL(1)
#define PTE_LARGE BIT_ULL(7)

#define ull(v) ((unsigned long long)(v))

/* A bzImage: the header, and what lies behind it. */
struct image {
	struct setup_header header;
	uint64_t offset; /* of the protected-mode code in the file */
	uint64_t size;   /* of that code */
};

static int check_protocol(const struct setup_header *h, struct error *err)
{
	if (h->boot_flag != BOOT_FLAG || h->header != HEADER_MAGIC)
		return error_set(err, -EINVAL,
				 "kernel: neither an ELF file nor a bzImage (no boot signature)");
	if (h->version < PROTOCOL_MIN)
		return error_set(err, -ENOTSUP, "kernel: boot protocol %u.%02u, need 2.12",
				 h->version >> 8, h->version & 0xFF);
	if (HEADER_END_MIN > JUMP_TARGET_BASE + (h->jump >> 8))
		return error_set(err, -EINVAL, "kernel: boot header is shorter than its protocol");
	if (!(h->xloadflags & XLF_KERNEL_64))
		return error_set(err, -ENOTSUP, "kernel: bzImage has no 64-bit entry");
	if (!(h->loadflags & LOADED_HIGH))
		return error_set(err, -ENOTSUP, "kernel: a zImage, need a bzImage");
	return 0;
}

/* The protected-mode code: where it lies in the file and how long it is. */
static int check_file(struct image *image, uint64_t file_size, struct error *err)
{
	const struct setup_header *h = &image->header;
	uint64_t sects = h->setup_sects ? h->setup_sects : SETUP_SECTS_DEFAULT;
	uint64_t said = (uint64_t)h->syssize * 16, have;

	image->offset = (sects + 1) * SECTOR;
	if (image->offset >= file_size)
		return error_set(err, -ENODATA, "kernel: file is truncated: %llu bytes, its set-up "
				 "code alone has %llu", ull(file_size), ull(image->offset));
	have = file_size - image->offset;
	/* syssize is rounded up to 16 bytes; behind the code there may be a signature */
	if (said > align_up(have, 16))
		return error_set(err, -ENODATA, "kernel: file is truncated: %llu bytes of code, its "
				 "header says %llu", ull(have), ull(said));
	image->size = said < have ? said : have;
	if (image->size <= ENTRY64_OFFSET)
		return error_set(err, -EINVAL, "kernel: bzImage with %llu bytes of code",
				 ull(image->size));
	if (!range_inside(h->payload_offset, h->payload_length, 0, image->size))
		return error_set(err, -EINVAL, "kernel: payload lies beyond the end of the bzImage");
	return 0;
}

static int check_relocation(const struct setup_header *h, struct error *err)
{
	if (h->init_size == 0)
		return error_set(err, -EINVAL, "kernel: bzImage with an init_size of 0");
	if (!is_power_of_two(h->kernel_alignment))
		return error_set(err, -EINVAL, "kernel: bzImage with an alignment of 0x%x",
				 h->kernel_alignment);
	if (h->pref_address < LAYOUT_KERNEL ||
	    !is_aligned(h->pref_address, h->kernel_alignment) ||
	    h->pref_address > LAYOUT_IDENTITY_BYTES)
		return error_set(err, -EINVAL, "kernel: bzImage with a preferred address of 0x%llx",
				 ull(h->pref_address));
	return 0;
}

/*
 * Where the code goes: to its preferred address, so that it does not have to
 * move (a kernel below that moves up to it).
 */
static int choose_place(const struct guest_mem *m, const struct image *image, uint64_t *ret_load,
			uint64_t *ret_end, struct error *err)
{
	const struct setup_header *h = &image->header;
	uint64_t load = h->relocatable_kernel ? h->pref_address : LAYOUT_KERNEL;
	uint64_t end = h->pref_address + h->init_size;

	if (load + image->size > end)
		end = load + image->size;
	if (end > LAYOUT_IDENTITY_BYTES || !guest_mem_span(m, load, end - load))
		return error_set(err, -EFAULT,
				 "kernel: needs guest memory from 0x%llx to 0x%llx, which there is "
				 "not", ull(load), ull(end));
	*ret_load = load;
	*ret_end = end;
	return 0;
}

static int read_header(int fd, struct image *image, uint64_t *ret_size, struct error *err)
{
	uint64_t size;
	int ret = loader_kernel_size(fd, &size, err);

	if (ret < 0)
		return ret;
	if (size < HEADER_AT + sizeof(image->header))
		return error_set(err, -ENODATA,
				 "kernel: file of %llu bytes is too short for a boot header",
				 ull(size));
	ret = fd_pread_all(fd, &image->header, sizeof(image->header), HEADER_AT);
	if (ret < 0)
		return error_set_errno(err, ret, "kernel: boot header cannot be read");
	*ret_size = size;
	return 0;
}

int boot_linux_load(const struct guest_mem *m, int fd, struct boot_linux_kernel *ret,
		    struct error *err)
{
	struct image image = { 0 };
	uint64_t file_size = 0, load = 0, end = 0;
	int code = read_header(fd, &image, &file_size, err);

	if (code == 0)
		code = check_protocol(&image.header, err);
	if (code == 0)
		code = check_file(&image, file_size, err);
	if (code == 0)
		code = check_relocation(&image.header, err);
	if (code == 0)
		code = choose_place(m, &image, &load, &end, err);
	if (code < 0)
		return code;
	code = guest_mem_read_file(m, load, fd, image.offset, image.size);
	if (code < 0)
		return error_set_errno(err, code, "kernel: cannot be read");
	ret->header = image.header;
	/* fields beyond the file's own header end are not the header's */
	if (JUMP_TARGET_BASE + (image.header.jump >> 8) < HEADER_AT + sizeof(ret->header)) {
		size_t known = JUMP_TARGET_BASE + (image.header.jump >> 8) - HEADER_AT;

		memset((uint8_t *)&ret->header + known, 0, sizeof(ret->header) - known);
	}
	ret->header.code32_start = (uint32_t)load;
	ret->entry = load + ENTRY64_OFFSET;
	ret->end = end;
	ret->initrd_ceiling = (uint64_t)image.header.initrd_addr_max + 1;
	return 0;
}

void boot_linux_from_elf(uint64_t entry, uint64_t end, struct boot_linux_kernel *ret)
{
	*ret = (struct boot_linux_kernel){
		.header = {
			.boot_flag = BOOT_FLAG,
			.header = HEADER_MAGIC,
			.version = PROTOCOL_MIN,
			.loadflags = LOADED_HIGH,
			.xloadflags = XLF_KERNEL_64,
			.kernel_alignment = 16 * MIB,
			.cmdline_size = LIMIT_CMDLINE - 1,
		},
		.entry = entry,
		.end = end,
		.initrd_ceiling = LAYOUT_LOW_RAM_END,
	};
}

static int write_page_tables(const struct guest_mem *m)
{
	uint64_t entry = htole64(LAYOUT_PDPT | PTE_PRESENT | PTE_WRITABLE);
	uint64_t table[512];
	int ret = guest_mem_copy_out(m, LAYOUT_PML4, &entry, sizeof(entry));
	uint64_t i;

	if (ret < 0)
		return ret;
	entry = htole64(LAYOUT_PD | PTE_PRESENT | PTE_WRITABLE);
	ret = guest_mem_copy_out(m, LAYOUT_PDPT, &entry, sizeof(entry));
	if (ret < 0)
		return ret;
	for (i = 0; i < ARRAY_SIZE(table); i++)
		table[i] = htole64(i * 2 * MIB | PTE_PRESENT | PTE_WRITABLE | PTE_LARGE);
	return guest_mem_copy_out(m, LAYOUT_PD, table, sizeof(table));
}

static void fill_zero_page(struct boot_params *p, const struct boot_input *in,
			   const struct boot_linux_kernel *kernel, uint64_t initrd,
			   uint64_t initrd_size)
{
	struct e820_entry map[E820_ENTRIES];
	uint32_t count = e820_build(in->mem, map), i;

	p->hdr = kernel->header;
	p->hdr.type_of_loader = LOADER_UNDEFINED;
	p->hdr.vid_mode = VID_MODE_NORMAL;
	p->hdr.cmd_line_ptr = LAYOUT_CMDLINE;
	p->hdr.ramdisk_image = (uint32_t)initrd;
	p->hdr.ramdisk_size = (uint32_t)initrd_size;
	p->ext_ramdisk_image = (uint32_t)(initrd >> 32);
	p->ext_ramdisk_size = (uint32_t)(initrd_size >> 32);
	p->hdr.setup_data = 0;
	p->acpi_rsdp_addr = in->rsdp;
	for (i = 0; i < count; i++)
		p->e820_table[i] = (struct boot_e820_entry){
			.addr = map[i].addr,
			.size = map[i].size,
			.type = map[i].type,
		};
	p->e820_entries = (uint8_t)count;
}

int boot_linux_finish(const struct boot_input *in, const struct boot_linux_kernel *kernel,
		      struct boot_start *ret, struct error *err)
{
	_cleanup_free_ struct boot_params *zero_page = calloc(1, sizeof(*zero_page));
	uint64_t initrd = 0, initrd_size = 0;
	size_t len = strlen(in->cmdline);
	int code;

	if (!zero_page)
		return error_set(err, -ENOMEM, "kernel: no memory for its zero page");
	if (kernel->header.cmdline_size && len > kernel->header.cmdline_size)
		return error_set(err, -E2BIG, "boot_args: the command line has %zu characters, this "
				 "kernel takes %u", len, kernel->header.cmdline_size);
	if (in->initrd_fd >= 0) {
		code = loader_initrd(in->mem, in->initrd_fd, kernel->end, kernel->initrd_ceiling,
				     &initrd, &initrd_size, err);
		if (code < 0) {
			error_prefix(err, BOOT_INITRD_ERROR);
			return code;
		}
	}
	fill_zero_page(zero_page, in, kernel, initrd, initrd_size);
	code = guest_mem_copy_out(in->mem, LAYOUT_CMDLINE, in->cmdline, len + 1);
	if (code == 0)
		code = guest_mem_copy_out(in->mem, LAYOUT_ZERO_PAGE, zero_page,
					  sizeof(*zero_page));
	if (code == 0)
		code = write_page_tables(in->mem);
	if (code == 0)
		code = gdt_write(in->mem, 1);
	if (code < 0)
		return error_set_errno(err, code, "kernel: guest memory is too small to boot");
	*ret = (struct boot_start){
		.protocol = BOOT_LINUX64,
		.entry = kernel->entry,
		.info = LAYOUT_ZERO_PAGE,
	};
	return 0;
}
