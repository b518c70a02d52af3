/*
 * Kernel and initrd loading. Threads: main. Locks: none.
 *
 * Guest RAM is fresh, hence zero, when it is loaded: what a segment has in
 * memory beyond its bytes in the file is not touched.
 * Not here: formats of one architecture (arch-x86/boot_linux.c).
 */
#include "vmm/loader.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bits.h"
#include "vmm/base/cleanup.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/limits.h"

#define PAGE_BYTES 4096ull
#define NOTE_BYTES_MAX (64 * KIB) /* of one note segment; a kernel's is about 500 bytes */
#define XEN_ELFNOTE_PHYS32_ENTRY 18

#define ull(v) ((unsigned long long)(v))

int loader_kernel_size(int fd, uint64_t *ret_size, struct error *err)
{
	uint64_t size;
	int ret = fd_size(fd, &size);

	if (ret < 0)
		return error_set_errno(err, ret, "kernel: cannot be sized");
	if (size == 0)
		return error_set(err, -ENODATA, "kernel: file is empty");
	if (size > LIMIT_KERNEL_BYTES)
		return error_set(err, -EFBIG, "kernel: file of %llu MiB is too large, at most %llu",
				 ull(size / MIB), ull(LIMIT_KERNEL_BYTES / MIB));
	*ret_size = size;
	return 0;
}

bool loader_is_elf(int fd)
{
	char magic[SELFMAG];

	return fd_pread_all(fd, magic, sizeof(magic), 0) == 0 && !memcmp(magic, ELFMAG, SELFMAG);
}

/* What is known of the file while it is loaded. */
struct elf_file {
	const struct guest_mem *mem;
	int fd;
	uint64_t size;
	uint64_t floor;
	Elf64_Ehdr header;
	Elf64_Phdr *segments; /* header.e_phnum */
};

static int check_header(const struct elf_file *f, uint16_t machine, struct error *err)
{
	const Elf64_Ehdr *h = &f->header;
	uint64_t table;

	if (memcmp(h->e_ident, ELFMAG, SELFMAG))
		return error_set(err, -EINVAL, "kernel: not an ELF file");
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
		return error_set(err, -EINVAL, "kernel: not a 64-bit little-endian ELF file");
	if (h->e_machine != machine)
		return error_set(err, -EINVAL, "kernel: ELF file for machine %u, need %u",
				 h->e_machine, machine);
	if (h->e_type != ET_EXEC && h->e_type != ET_DYN)
		return error_set(err, -EINVAL, "kernel: ELF file of type %u is no executable",
				 h->e_type);
	if (h->e_phentsize != sizeof(Elf64_Phdr))
		return error_set(err, -EINVAL, "kernel: ELF program headers of %u bytes, need %zu",
				 h->e_phentsize, sizeof(Elf64_Phdr));
	if (h->e_phnum == 0 || h->e_phnum > LIMIT_ELF_PHDRS)
		return error_set(err, -EINVAL, "kernel: %u ELF program headers, need 1 to %d",
				 h->e_phnum, LIMIT_ELF_PHDRS);
	table = (uint64_t)h->e_phnum * sizeof(Elf64_Phdr);
	if (!range_inside(h->e_phoff, table, 0, f->size))
		return error_set(err, -ENODATA,
				 "kernel: file is truncated: ELF program headers lie beyond its end");
	return 0;
}

static int check_segment(const struct elf_file *f, uint32_t i, struct error *err)
{
	const Elf64_Phdr *p = &f->segments[i];
	uint32_t j;

	if (p->p_filesz > p->p_memsz)
		return error_set(err, -EINVAL, "kernel: ELF segment %u is larger in the file than "
				 "in memory", i);
	if (!range_inside(p->p_offset, p->p_filesz, 0, f->size))
		return error_set(err, -ENODATA,
				 "kernel: file is truncated: ELF segment %u lies beyond its end", i);
	if (p->p_paddr < f->floor || !guest_mem_span(f->mem, p->p_paddr, p->p_memsz))
		return error_set(err, -EFAULT,
				 "kernel: ELF segment %u at 0x%llx of 0x%llx bytes does not fit into "
				 "guest memory", i, ull(p->p_paddr), ull(p->p_memsz));
	for (j = 0; j < i; j++) {
		const Elf64_Phdr *q = &f->segments[j];

		if (q->p_type == PT_LOAD && q->p_memsz &&
		    ranges_overlap(p->p_paddr, p->p_memsz, q->p_paddr, q->p_memsz))
			return error_set(err, -EINVAL, "kernel: ELF segments %u and %u overlap", j,
					 i);
	}
	return 0;
}

static int load_segments(const struct elf_file *f, struct loader_elf *ret, struct error *err)
{
	uint32_t i;
	int code;

	ret->low = UINT64_MAX;
	ret->high = 0;
	for (i = 0; i < f->header.e_phnum; i++) {
		const Elf64_Phdr *p = &f->segments[i];

		if (p->p_type != PT_LOAD || p->p_memsz == 0)
			continue;
		code = check_segment(f, i, err);
		if (code < 0)
			return code;
		code = guest_mem_read_file(f->mem, p->p_paddr, f->fd, p->p_offset, p->p_filesz);
		if (code < 0)
			return error_set_errno(err, code, "kernel: ELF segment %u cannot be read",
					       i);
		if (p->p_paddr < ret->low)
			ret->low = p->p_paddr;
		if (p->p_paddr + p->p_memsz > ret->high)
			ret->high = p->p_paddr + p->p_memsz;
	}
	if (ret->high == 0)
		return error_set(err, -EINVAL, "kernel: ELF file has nothing to load");
	return 0;
}

/* Value of a PHYS32_ENTRY note: 4 or 8 bytes, but an address below 4 GiB. */
static int pvh_note_value(const uint8_t *desc, uint32_t size, struct loader_elf *ret,
			  struct error *err)
{
	uint64_t entry;

	if (size == 4)
		entry = load_le32(desc);
	else if (size == 8)
		entry = load_le64(desc);
	else
		return error_set(err, -EINVAL, "kernel: PVH note of %u bytes, need 4 or 8", size);
	if (entry > UINT32_MAX)
		return error_set(err, -EINVAL, "kernel: PVH entry 0x%llx is above 4 GiB",
				 ull(entry));
	ret->has_pvh_entry = true;
	ret->pvh_entry = (uint32_t)entry;
	return 0;
}

/*
 * Walks the notes in notes[0..size); every step moves on by 12 bytes or more.
 * They end at one that is longer than what is left: they are a hint, and the
 * kernel has its other entry.
 */
static int walk_notes(const uint8_t *notes, uint64_t size, uint64_t align, struct loader_elf *ret,
		      struct error *err)
{
	uint64_t at = 0;

	while (size - at >= sizeof(Elf64_Nhdr)) {
		uint32_t name_size = load_le32(notes + at);
		uint32_t desc_size = load_le32(notes + at + 4);
		uint32_t type = load_le32(notes + at + 8);
		uint64_t name = at + sizeof(Elf64_Nhdr);
		uint64_t desc = align_up(name + name_size, align);
		uint64_t end = desc + desc_size;

		if (name + name_size > size || end > size) {
			log_debug("kernel: ELF note at 0x%llx is longer than its segment", ull(at));
			return 0;
		}
		if (type == XEN_ELFNOTE_PHYS32_ENTRY && name_size == sizeof("Xen") &&
		    !memcmp(notes + name, "Xen", sizeof("Xen")))
			return pvh_note_value(notes + desc, desc_size, ret, err);
		at = align_up(end, align);
		if (at > size)
			break;
	}
	return 0;
}

static int read_notes(const struct elf_file *f, const Elf64_Phdr *p, struct loader_elf *ret,
		      struct error *err)
{
	_cleanup_free_ uint8_t *notes = NULL;
	int code;

	if (p->p_filesz > NOTE_BYTES_MAX || !range_inside(p->p_offset, p->p_filesz, 0, f->size)) {
		log_debug("kernel: %llu bytes of ELF notes at 0x%llx are not read",
			  ull(p->p_filesz), ull(p->p_offset));
		return 0;
	}
	if (p->p_filesz == 0)
		return 0;
	notes = malloc(p->p_filesz);
	if (!notes)
		return error_set(err, -ENOMEM, "kernel: no memory for its ELF notes");
	code = fd_pread_all(f->fd, notes, p->p_filesz, p->p_offset);
	if (code < 0)
		return error_set_errno(err, code, "kernel: ELF notes cannot be read");
	return walk_notes(notes, p->p_filesz, p->p_align == 8 ? 8 : 4, ret, err);
}

static int find_pvh_entry(const struct elf_file *f, struct loader_elf *ret, struct error *err)
{
	uint32_t i;
	int code;

	for (i = 0; i < f->header.e_phnum && !ret->has_pvh_entry; i++) {
		if (f->segments[i].p_type != PT_NOTE)
			continue;
		code = read_notes(f, &f->segments[i], ret, err);
		if (code < 0)
			return code;
	}
	if (ret->has_pvh_entry && (ret->pvh_entry < ret->low || ret->pvh_entry >= ret->high))
		return error_set(err, -EINVAL, "kernel: PVH entry 0x%x is outside of what is loaded",
				 ret->pvh_entry);
	return 0;
}

static int load_elf(struct elf_file *f, uint16_t machine, struct loader_elf *ret,
		    struct error *err)
{
	_cleanup_free_ Elf64_Phdr *segments = NULL;
	size_t bytes;
	int code;

	if (f->size < sizeof(f->header))
		return error_set(err, -ENODATA, "kernel: file of %llu bytes is too short for an ELF "
				 "header", ull(f->size));
	code = fd_pread_all(f->fd, &f->header, sizeof(f->header), 0);
	if (code < 0)
		return error_set_errno(err, code, "kernel: ELF header cannot be read");
	code = check_header(f, machine, err);
	if (code < 0)
		return code;
	bytes = f->header.e_phnum * sizeof(Elf64_Phdr);
	segments = malloc(bytes);
	if (!segments)
		return error_set(err, -ENOMEM, "kernel: no memory for its ELF program headers");
	code = fd_pread_all(f->fd, segments, bytes, f->header.e_phoff);
	if (code < 0)
		return error_set_errno(err, code, "kernel: ELF program headers cannot be read");
	f->segments = segments;
	code = load_segments(f, ret, err);
	if (code < 0)
		return code;
	ret->entry = f->header.e_entry;
	return find_pvh_entry(f, ret, err);
}

int loader_elf(const struct guest_mem *m, int fd, uint16_t machine, uint64_t floor,
	       struct loader_elf *ret, struct error *err)
{
	struct elf_file f = { .mem = m, .fd = fd, .floor = floor };
	struct loader_elf loaded = { 0 };
	int code = loader_kernel_size(fd, &f.size, err);

	if (code == 0)
		code = load_elf(&f, machine, &loaded, err);
	if (code < 0)
		return code;
	if (!loaded.has_pvh_entry && (loaded.entry < loaded.low || loaded.entry >= loaded.high))
		return error_set(err, -EINVAL,
				 "kernel: ELF entry 0x%llx is outside of what is loaded",
				 ull(loaded.entry));
	*ret = loaded;
	return 0;
}

/* The highest page-aligned place for `size` bytes in one region, or false. */
static bool place_below(const struct guest_mem *m, uint64_t size, uint64_t floor,
			uint64_t ceiling, uint64_t *ret_gpa)
{
	uint32_t i = m->count;

	while (i-- > 0) {
		const struct guest_mem_region *r = &m->regions[i];
		uint64_t top = r->gpa + r->size < ceiling ? r->gpa + r->size : ceiling;
		uint64_t bottom = r->gpa > floor ? r->gpa : floor;
		uint64_t gpa;

		if (top <= bottom || size > top - bottom)
			continue;
		gpa = align_down(top - size, PAGE_BYTES);
		if (gpa < bottom)
			continue;
		*ret_gpa = gpa;
		return true;
	}
	return false;
}

int loader_initrd(const struct guest_mem *m, int fd, uint64_t floor, uint64_t ceiling,
		  uint64_t *ret_gpa, uint64_t *ret_size, struct error *err)
{
	uint64_t size, gpa;
	int ret = fd_size(fd, &size);

	if (ret < 0)
		return error_set_errno(err, ret, "initrd: cannot be sized");
	if (size == 0)
		return error_set(err, -ENODATA, "initrd: file is empty");
	if (!place_below(m, size, floor, ceiling, &gpa))
		return error_set(err, -EFBIG,
				 "initrd: file of %llu KiB does not fit into guest memory beside the "
				 "kernel, which ends at 0x%llx", ull(size / KIB), ull(floor));
	ret = guest_mem_read_file(m, gpa, fd, 0, size);
	if (ret == -ENODATA)
		return error_set(err, ret, "initrd: file was truncated while it was read");
	if (ret < 0)
		return error_set_errno(err, ret, "initrd: cannot be read");
	*ret_gpa = gpa;
	*ret_size = size;
	return 0;
}

int loader_check_cmdline(const char *cmdline, size_t added, struct error *err)
{
	size_t len = strlen(cmdline), i;

	if (len >= LIMIT_CMDLINE)
		return error_set(err, -E2BIG,
				 "boot_args: a command line of %zu characters, and %zu that the "
				 "machine adds, are more than %d", len - added, added, LIMIT_CMDLINE - 1);
	for (i = 0; i < len; i++)
		if (cmdline[i] < 0x20 || cmdline[i] > 0x7E)
			return error_set(err, -EINVAL,
					 "boot_args: character %zu of the command line (0x%02x) is "
					 "not printable ASCII", i, (unsigned char)cmdline[i]);
	return 0;
}
