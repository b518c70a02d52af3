/*
 * The buses: which regions fit, who answers at which edge, widths, and the
 * lookup table of a vCPU when its lines collide.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/base/bits.h"
#include "vmm/bus.h"

/* A device that remembers the last access and answers with its own number. */
struct spy {
	uint64_t offset, value;
	unsigned width, reads, writes;
	enum bus_action action;
	uint64_t answer;
};

static uint64_t spy_read(void *device, uint64_t offset, unsigned width)
{
	struct spy *s = device;

	s->offset = offset;
	s->width = width;
	s->reads++;
	return s->answer;
}

static enum bus_action spy_write(void *device, uint64_t offset, unsigned width, uint64_t value)
{
	struct spy *s = device;

	s->offset = offset;
	s->width = width;
	s->value = value;
	s->writes++;
	return s->action;
}

static const struct bus_ops spy_ops = { .read = spy_read, .write = spy_write };

struct fixture {
	struct bus bus;
	struct bus_lookup lookup;
	struct spy spies[LIMIT_BUS_REGIONS + 1];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	unsigned i;

	bus_init(&f->bus);
	for (i = 0; i <= LIMIT_BUS_REGIONS; i++)
		f->spies[i].answer = i;
	assert_int_equal(bus_lookup_init(&f->lookup, &f->bus), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	bus_fini(&((struct fixture *)*state)->bus);
	free(*state);
	return 0;
}

static int add(struct fixture *f, enum bus_kind kind, uint64_t base, uint64_t size, unsigned spy)
{
	const struct bus_region r = { .name = "spy", .base = base, .size = size,
				      .min_access = 1, .max_access = 4,
				      .ops = &spy_ops, .device = &f->spies[spy] };

	int ret = bus_add(&f->bus, kind, &r, NULL);

	bus_lookup_serve(&f->lookup);
	return ret;
}

static int add_widths(struct fixture *f, uint64_t base, unsigned min, unsigned max)
{
	const struct bus_region r = { .name = "spy", .base = base, .size = 16,
				      .min_access = (uint8_t)min, .max_access = (uint8_t)max,
				      .ops = &spy_ops, .device = &f->spies[0] };

	int ret = bus_add(&f->bus, BUS_MMIO, &r, NULL);

	bus_lookup_serve(&f->lookup);
	return ret;
}

static void unknown_addresses_read_all_ones(void **state)
{
	struct fixture *f = *state;

	assert_true(bus_read(&f->lookup, BUS_PIO, 0x3f8, 1) == UINT64_MAX);
	assert_int_equal(bus_write(&f->lookup, BUS_MMIO, 0xd0000000, 4, 1), BUS_DONE);
	assert_true(bus_read(&f->lookup, BUS_MMIO, UINT64_MAX, 8) == UINT64_MAX);
}

static void device_sees_offset_width_and_value(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, BUS_PIO, 0x3f8, 8, 7), 0);
	assert_int_equal(bus_read(&f->lookup, BUS_PIO, 0x3fd, 1), 7);
	assert_int_equal(f->spies[7].offset, 5);
	assert_int_equal(f->spies[7].width, 1);
	assert_int_equal(bus_write(&f->lookup, BUS_PIO, 0x3fa, 2, 0xabcd), BUS_DONE);
	assert_int_equal(f->spies[7].offset, 2);
	assert_int_equal(f->spies[7].width, 2);
	assert_int_equal(f->spies[7].value, 0xabcd);
}

static void action_of_the_device_is_returned(void **state)
{
	struct fixture *f = *state;

	add(f, BUS_PIO, 0x600, 3, 0);
	f->spies[0].action = BUS_GUEST_POWEROFF;
	assert_int_equal(bus_write(&f->lookup, BUS_PIO, 0x600, 1, 0), BUS_GUEST_POWEROFF);
	f->spies[0].action = BUS_GUEST_RESET;
	assert_int_equal(bus_write(&f->lookup, BUS_PIO, 0x600, 1, 0), BUS_GUEST_RESET);
}

static void edges_of_a_region_are_exact(void **state)
{
	struct fixture *f = *state;

	add(f, BUS_PIO, 0x60, 5, 1);
	assert_true(bus_read(&f->lookup, BUS_PIO, 0x5f, 1) == UINT64_MAX);
	assert_int_equal(bus_read(&f->lookup, BUS_PIO, 0x60, 1), 1);
	assert_int_equal(bus_read(&f->lookup, BUS_PIO, 0x64, 1), 1);
	assert_true(bus_read(&f->lookup, BUS_PIO, 0x65, 1) == UINT64_MAX);
	assert_int_equal(f->spies[1].reads, 2);
}

/* An access that starts inside and ends outside is nobody's. */
static void access_over_the_end_is_refused(void **state)
{
	struct fixture *f = *state;

	add(f, BUS_MMIO, 0x1000, 6, 1);
	assert_int_equal(bus_read(&f->lookup, BUS_MMIO, 0x1002, 4), 1);
	assert_true(bus_read(&f->lookup, BUS_MMIO, 0x1003, 4) == UINT64_MAX);
	assert_true(bus_read(&f->lookup, BUS_MMIO, 0x0fff, 2) == UINT64_MAX);
	assert_int_equal(bus_write(&f->lookup, BUS_MMIO, 0x1005, 2, 1), BUS_DONE);
	assert_int_equal(f->spies[1].writes, 0);
}

/* Every width against every pair of limits. */
static void widths_outside_the_limits_are_refused(void **state)
{
	struct fixture *f = *state;
	unsigned min, max, width;
	uint64_t base = 0x1000;

	for (min = 1; min <= 8; min *= 2) {
		for (max = min; max <= 8; max *= 2, base += 0x100) {
			assert_int_equal(add_widths(f, base, min, max), 0);
			for (width = 1; width <= 8; width *= 2) {
				bool ok = width >= min && width <= max;
				uint64_t got = bus_read(&f->lookup, BUS_MMIO, base, width);

				assert_true(got == (ok ? 0 : UINT64_MAX));
			}
		}
	}
}

static void bad_widths_and_sizes_are_not_added(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add_widths(f, 0, 0, 1), -EINVAL);
	assert_int_equal(add_widths(f, 0, 1, 0), -EINVAL);
	assert_int_equal(add_widths(f, 0, 4, 2), -EINVAL);
	assert_int_equal(add_widths(f, 0, 3, 4), -EINVAL);
	assert_int_equal(add_widths(f, 0, 1, 16), -EINVAL);
	assert_int_equal(add(f, BUS_PIO, 0x10, 0, 0), -EINVAL);
	assert_int_equal(add(f, BUS_MMIO, UINT64_MAX, 2, 0), -EINVAL);
	assert_int_equal(bus_count(&f->bus, BUS_PIO) + bus_count(&f->bus, BUS_MMIO), 0);
}

static void neighbours_fit_and_overlaps_do_not(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, BUS_PIO, 0x100, 0x10, 1), 0);
	assert_int_equal(add(f, BUS_PIO, 0x110, 0x10, 2), 0);
	assert_int_equal(add(f, BUS_PIO, 0xf0, 0x10, 3), 0);
	assert_int_equal(add(f, BUS_PIO, 0x10f, 1, 4), -EEXIST);
	assert_int_equal(add(f, BUS_PIO, 0xef, 2, 4), -EEXIST);
	assert_int_equal(add(f, BUS_PIO, 0x11f, 2, 4), -EEXIST);
	assert_int_equal(add(f, BUS_PIO, 0, 0x1000, 4), -EEXIST);
	assert_int_equal(add(f, BUS_PIO, 0x100, 0x10, 4), -EEXIST);
	assert_int_equal(bus_count(&f->bus, BUS_PIO), 3);
}

static void kinds_are_separate(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, BUS_PIO, 0x100, 0x10, 1), 0);
	assert_int_equal(add(f, BUS_MMIO, 0x100, 0x10, 2), 0);
	assert_int_equal(bus_read(&f->lookup, BUS_PIO, 0x100, 1), 1);
	assert_int_equal(bus_read(&f->lookup, BUS_MMIO, 0x100, 1), 2);
}

/* At the limit all are found, added in any order; one more is refused. */
static void bus_is_bounded_and_every_region_found(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	for (i = 0; i < LIMIT_BUS_REGIONS; i++) {
		unsigned at = i * 37 % LIMIT_BUS_REGIONS;

		assert_int_equal(add(f, BUS_MMIO, 0xd0000000 + at * 0x1000, 0x200, at), 0);
	}
	assert_int_equal(add(f, BUS_MMIO, 0x1000, 1, LIMIT_BUS_REGIONS), -ENOSPC);
	for (i = 0; i < LIMIT_BUS_REGIONS; i++) {
		uint64_t base = 0xd0000000 + i * 0x1000;

		assert_int_equal(bus_read(&f->lookup, BUS_MMIO, base, 4), i);
		assert_int_equal(bus_read(&f->lookup, BUS_MMIO, base + 0x1fc, 4), i);
		assert_true(bus_read(&f->lookup, BUS_MMIO, base + 0x200, 4) == UINT64_MAX);
	}
}

static void repeated_access_hits_the_table(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	add(f, BUS_PIO, 0x3f8, 8, 1);
	for (i = 0; i < 100; i++)
		bus_read(&f->lookup, BUS_PIO, 0x3f8 + i % 8, 1);
	assert_int_equal(f->lookup.misses, 8);
}

/* Two addresses of one line push each other out, and both stay right. */
static void colliding_addresses_stay_right(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	add(f, BUS_MMIO, 0x40000, 0x40, 1);
	add(f, BUS_MMIO, 0x80000, 0x40, 2);
	for (i = 0; i < 10; i++) {
		assert_int_equal(bus_read(&f->lookup, BUS_MMIO, 0x40000, 1), 1);
		assert_int_equal(bus_read(&f->lookup, BUS_MMIO, 0x80000, 1), 2);
	}
	assert_int_equal(f->lookup.misses, 20);
}

/* A table line must match the whole address: each low pattern, many high ones. */
static void table_never_answers_for_another_address(void **state)
{
	struct fixture *f = *state;
	uint64_t a;
	unsigned i;

	add(f, BUS_MMIO, 0x0, 0x1000, 1);
	for (i = 0; i < 0x1000; i++)
		bus_read(&f->lookup, BUS_MMIO, i, 1);
	for (a = 0x1000; a; a <<= 1) {
		for (i = 0; i < 64; i++)
			assert_true(bus_read(&f->lookup, BUS_MMIO, a + i, 1) == UINT64_MAX);
	}
}

static void address_zero_is_an_address(void **state)
{
	struct fixture *f = *state;

	assert_true(bus_read(&f->lookup, BUS_PIO, 0, 1) == UINT64_MAX);
	add(f, BUS_PIO, 0, 4, 3);
	assert_int_equal(bus_read(&f->lookup, BUS_PIO, 0, 1), 3);
	assert_int_equal(bus_read(&f->lookup, BUS_PIO, 0, 1), 3);
}

static void region_at_the_top_of_the_address_space_works(void **state)
{
	struct fixture *f = *state;
	uint64_t base = UINT64_MAX - 0x10;

	assert_int_equal(add(f, BUS_MMIO, base, 0x10, 5), 0);
	assert_int_equal(bus_read(&f->lookup, BUS_MMIO, base, 4), 5);
	assert_int_equal(bus_read(&f->lookup, BUS_MMIO, base + 0xc, 4), 5);
	assert_true(bus_read(&f->lookup, BUS_MMIO, base + 0xd, 4) == UINT64_MAX);
	assert_true(bus_read(&f->lookup, BUS_MMIO, UINT64_MAX, 1) == UINT64_MAX);
}

static void two_lookups_share_a_bus(void **state)
{
	struct fixture *f = *state;
	struct bus_lookup other;

	add(f, BUS_PIO, 0x70, 2, 6);
	assert_int_equal(bus_lookup_init(&other, &f->bus), 0);
	assert_int_equal(bus_read(&f->lookup, BUS_PIO, 0x71, 1), 6);
	assert_int_equal(bus_read(&other, BUS_PIO, 0x71, 1), 6);
	assert_int_equal(other.misses, 1);
	assert_int_equal(f->lookup.misses, 1);
}

/* A lookup of every vCPU there can be; one more is refused. */
static void lookups_are_bounded(void **state)
{
	struct fixture *f = *state;
	struct bus_lookup *more = calloc(LIMIT_VCPUS, sizeof(*more));
	unsigned i;

	for (i = 0; i < LIMIT_VCPUS - 1; i++)
		assert_int_equal(bus_lookup_init(&more[i], &f->bus), 0);
	assert_int_equal(bus_lookup_init(&more[i], &f->bus), -ENOSPC);
	free(more);
}

static void what_nobody_answers_is_searched_for_once(void **state)
{
	struct fixture *f = *state;
	unsigned i;

	for (i = 0; i < 10; i++)
		assert_true(bus_read(&f->lookup, BUS_PIO, 0xcfc, 4) == UINT64_MAX);
	assert_int_equal(f->lookup.misses, 1);
}

static void widths_of_one_address_are_separate_lines(void **state)
{
	struct fixture *f = *state;

	add_widths(f, 0x1000, 4, 4);
	assert_int_equal(bus_read(&f->lookup, BUS_MMIO, 0x1000, 4), 0);
	assert_true(bus_read(&f->lookup, BUS_MMIO, 0x1000, 2) == UINT64_MAX);
	assert_int_equal(bus_read(&f->lookup, BUS_MMIO, 0x1000, 4), 0);
}

/* A change while a vCPU runs: at once for the next access, without its thread's help. */
static void a_change_is_seen_by_the_next_access(void **state)
{
	struct fixture *f = *state;
	const struct bus_region r = { .name = "spy", .base = 0x3f8, .size = 8, .min_access = 1,
				      .max_access = 1, .ops = &spy_ops, .device = &f->spies[7] };

	assert_true(bus_read(&f->lookup, BUS_PIO, 0x3f8, 1) == UINT64_MAX);
	assert_int_equal(bus_add(&f->bus, BUS_PIO, &r, NULL), 0);
	assert_int_equal(bus_read(&f->lookup, BUS_PIO, 0x3f8, 1), 7);
	assert_int_equal(bus_remove(&f->bus, BUS_PIO, 0x3f8, NULL), 0);
	assert_true(bus_read(&f->lookup, BUS_PIO, 0x3f8, 1) == UINT64_MAX);
}

static void a_poisoned_table_takes_no_lines_until_it_is_served(void **state)
{
	struct fixture *f = *state;
	const struct bus_region r = { .name = "spy", .base = 0x3f8, .size = 8, .min_access = 1,
				      .max_access = 1, .ops = &spy_ops, .device = &f->spies[7] };
	unsigned i;

	assert_int_equal(bus_add(&f->bus, BUS_PIO, &r, NULL), 0);
	for (i = 0; i < 3; i++)
		bus_read(&f->lookup, BUS_PIO, 0x3f8, 1);
	assert_int_equal(f->lookup.misses, 3);
	bus_lookup_serve(&f->lookup);
	for (i = 0; i < 3; i++)
		bus_read(&f->lookup, BUS_PIO, 0x3f8, 1);
	assert_int_equal(f->lookup.misses, 4);
}

static void only_a_region_that_is_there_can_be_removed(void **state)
{
	struct fixture *f = *state;

	add(f, BUS_PIO, 0x70, 2, 6);
	add(f, BUS_PIO, 0x80, 1, 8);
	assert_int_equal(bus_remove(&f->bus, BUS_PIO, 0x71, NULL), -ENOENT);
	assert_int_equal(bus_remove(&f->bus, BUS_MMIO, 0x70, NULL), -ENOENT);
	assert_int_equal(bus_remove(&f->bus, BUS_PIO, 0x70, NULL), 0);
	assert_int_equal(bus_remove(&f->bus, BUS_PIO, 0x70, NULL), -ENOENT);
	assert_int_equal(bus_read(&f->lookup, BUS_PIO, 0x80, 1), 8);
	assert_int_equal(bus_remove(&f->bus, BUS_PIO, 0x80, NULL), 0);
	assert_int_equal(bus_count(&f->bus, BUS_PIO), 0);
}

/* What a lookup may still use is kept until its owner takes it. */
static void replaced_maps_are_kept_for_their_owner(void **state)
{
	struct fixture *f = *state;
	struct bus_map *maps;

	assert_null(bus_take_replaced(&f->bus));
	add(f, BUS_PIO, 0x70, 2, 6);
	assert_null(bus_take_replaced(&f->bus)); /* there was none before */
	add(f, BUS_PIO, 0x80, 1, 8);
	bus_remove(&f->bus, BUS_PIO, 0x70, NULL);
	maps = bus_take_replaced(&f->bus);
	assert_non_null(maps);
	assert_non_null(maps->next);
	assert_null(maps->next->next);
	bus_free_maps(maps);
	assert_null(bus_take_replaced(&f->bus));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(unknown_addresses_read_all_ones),
		T(device_sees_offset_width_and_value),
		T(action_of_the_device_is_returned),
		T(edges_of_a_region_are_exact),
		T(access_over_the_end_is_refused),
		T(widths_outside_the_limits_are_refused),
		T(bad_widths_and_sizes_are_not_added),
		T(neighbours_fit_and_overlaps_do_not),
		T(kinds_are_separate),
		T(bus_is_bounded_and_every_region_found),
		T(repeated_access_hits_the_table),
		T(colliding_addresses_stay_right),
		T(table_never_answers_for_another_address),
		T(address_zero_is_an_address),
		T(region_at_the_top_of_the_address_space_works),
		T(two_lookups_share_a_bus),
		T(lookups_are_bounded),
		T(what_nobody_answers_is_searched_for_once),
		T(widths_of_one_address_are_separate_lines),
		T(a_change_is_seen_by_the_next_access),
		T(a_poisoned_table_takes_no_lines_until_it_is_served),
		T(only_a_region_that_is_there_can_be_removed),
		T(replaced_maps_are_kept_for_their_owner),
	};

	return cmocka_run_group_tests_name("bus", tests, NULL, NULL);
}
