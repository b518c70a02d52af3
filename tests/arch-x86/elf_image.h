/*
 * A small ELF kernel that loads, for tests to break: two segments, at 1 MiB
 * and 2 MiB, and a segment of notes.
 */
#ifndef LULL_TESTS_ELF_IMAGE_H
#define LULL_TESTS_ELF_IMAGE_H

#include <elf.h>

#include "tests/arch-x86/arch_test.h"

#define ELF_TEXT 0x100000ull
#define ELF_DATA 0x200000ull

struct elf_image {
	Elf64_Ehdr header;
	Elf64_Phdr text;
	Elf64_Phdr data;
	Elf64_Phdr note;
	uint8_t text_bytes[256];
	uint8_t data_bytes[256];
	uint8_t notes[256];
	uint64_t size; /* of the file; not part of it */
};

#define ELF_FILE_BYTES offsetof(struct elf_image, size)

static inline void elf_image_init(struct elf_image *e)
{
	memset(e, 0, sizeof(*e));
	memcpy(e->header.e_ident, ELFMAG, SELFMAG);
	e->header.e_ident[EI_CLASS] = ELFCLASS64;
	e->header.e_ident[EI_DATA] = ELFDATA2LSB;
	e->header.e_ident[EI_VERSION] = EV_CURRENT;
	e->header.e_type = ET_EXEC;
	e->header.e_machine = EM_X86_64;
	e->header.e_entry = ELF_TEXT + 16;
	e->header.e_phoff = offsetof(struct elf_image, text);
	e->header.e_phentsize = sizeof(Elf64_Phdr);
	e->header.e_phnum = 3;
	e->text = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_offset = offsetof(struct elf_image, text_bytes),
		.p_paddr = ELF_TEXT,
		.p_filesz = sizeof(e->text_bytes),
		.p_memsz = 4096,
	};
	e->data = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_offset = offsetof(struct elf_image, data_bytes),
		.p_paddr = ELF_DATA,
		.p_filesz = sizeof(e->data_bytes),
		.p_memsz = sizeof(e->data_bytes),
	};
	e->note = (Elf64_Phdr){
		.p_type = PT_NOTE,
		.p_offset = offsetof(struct elf_image, notes),
		.p_align = 4,
	};
	memset(e->text_bytes, 0x90, sizeof(e->text_bytes));
	memset(e->data_bytes, 0xDA, sizeof(e->data_bytes));
	e->size = ELF_FILE_BYTES;
}

/* Appends a note; `align` as the segment's. */
static inline void elf_image_note(struct elf_image *e, const char *name, uint32_t type,
				  const void *desc, uint32_t desc_size, uint64_t align)
{
	uint32_t name_size = (uint32_t)strlen(name) + 1;
	uint64_t at = e->note.p_filesz;

	store_le32(e->notes + at, name_size);
	store_le32(e->notes + at + 4, desc_size);
	store_le32(e->notes + at + 8, type);
	memcpy(e->notes + at + 12, name, name_size);
	at = align_up(at + 12 + name_size, align);
	memcpy(e->notes + at, desc, desc_size);
	e->note.p_align = align;
	e->note.p_filesz = align_up(at + desc_size, align);
}

/* The PVH note, with an entry of 4 or 8 bytes. */
static inline void elf_image_pvh(struct elf_image *e, uint64_t entry, uint32_t bytes)
{
	uint8_t desc[8];

	store_le64(desc, entry);
	elf_image_note(e, "Xen", 18, desc, bytes, 4);
}

static inline int elf_image_file(const struct elf_image *e)
{
	return test_file(e, ELF_FILE_BYTES, e->size);
}

#endif
