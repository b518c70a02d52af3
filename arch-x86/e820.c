/*
 * The guest's memory map. Threads: main. Locks: none.
 */
#include "arch-x86/e820.h"

#include "arch-x86/layout.h"

static void add(struct e820_entry *entries, uint32_t *count, uint64_t from, uint64_t to,
		enum e820_type type)
{
	if (from < to)
		entries[(*count)++] = (struct e820_entry){
			.addr = from,
			.size = to - from,
			.type = type,
		};
}

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint32_t e820_build(const struct guest_mem *m, struct e820_entry entries[E820_ENTRIES])
{
	uint32_t count = 0, i;

	for (i = 0; i < m->count; i++) {
		uint64_t from = m->regions[i].gpa;
		uint64_t to = from + m->regions[i].size;

		if (from == 0) {
			add(entries, &count, 0, min64(to, LAYOUT_EBDA), E820_RAM);
			add(entries, &count, LAYOUT_EBDA, min64(to, LAYOUT_KERNEL),
			    E820_RESERVED);
			from = LAYOUT_KERNEL;
		}
		add(entries, &count, from, to, E820_RAM);
	}
	return count;
}
