/*
 * Guest memory: the last byte and one more, holes, adjoining regions, lengths
 * that wrap, and how the host maps it.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/base/bits.h"
#include "vmm/guest_mem.h"

#define K64 0x10000ull
#define HOLE (2 * K64)  /* [HOLE, HIGH) is no RAM */
#define HIGH (4 * K64)
#define END (5 * K64)
#define FAR (GIB + 0x3000) /* odd within its 2 MiB */

static const struct guest_mem_range ranges[] = {
	{ 0, K64 }, { K64, K64 }, { HIGH, K64 }, { FAR, 4 * MIB },
};

static int setup(void **state)
{
	struct guest_mem *m = calloc(1, sizeof(*m));

	*state = m;
	return guest_mem_init(m, ranges, 4, HUGE_PAGES_NONE, false, NULL);
}

static int teardown(void **state)
{
	guest_mem_fini(*state);
	free(*state);
	return 0;
}

static void bytes_are_the_sum_of_the_regions(void **state)
{
	assert_int_equal(guest_mem_bytes(*state), 3 * K64 + 4 * MIB);
}

static void new_memory_is_zero(void **state)
{
	uint8_t byte = 1;
	uint64_t gpa;

	for (gpa = 0; gpa < HOLE; gpa += 4096) {
		assert_int_equal(guest_mem_copy_in(*state, gpa, &byte, 1), 0);
		assert_int_equal(byte, 0);
	}
}

static void what_goes_out_comes_in(void **state)
{
	char text[6] = "";

	assert_int_equal(guest_mem_copy_out(*state, 100, "hello", 5), 0);
	assert_int_equal(guest_mem_copy_in(*state, 100, text, 5), 0);
	assert_string_equal(text, "hello");
}

/* The last bytes before a hole and before the end are RAM; one more is not. */
static void access_may_end_exactly_at_the_end_of_ram(void **state)
{
	uint8_t buf[8] = { 0 };

	assert_int_equal(guest_mem_copy_in(*state, HOLE - 8, buf, 8), 0);
	assert_int_equal(guest_mem_copy_in(*state, HOLE - 7, buf, 8), -EFAULT);
	assert_int_equal(guest_mem_copy_out(*state, END - 8, buf, 8), 0);
	assert_int_equal(guest_mem_copy_out(*state, END - 7, buf, 8), -EFAULT);
	assert_int_equal(guest_mem_fill(*state, END - 8, 1, 8), 0);
	assert_int_equal(guest_mem_fill(*state, END - 7, 1, 8), -EFAULT);
	assert_int_equal(guest_mem_copy_in(*state, HIGH - 1, buf, 1), -EFAULT);
	assert_int_equal(guest_mem_copy_in(*state, HIGH, buf, 1), 0);
}

static void failed_access_changes_nothing(void **state)
{
	uint8_t buf[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, seen[4] = { 9, 9, 9, 9 };

	assert_int_equal(guest_mem_copy_out(*state, HOLE - 4, buf, 8), -EFAULT);
	assert_int_equal(guest_mem_fill(*state, HOLE - 4, 7, 8), -EFAULT);
	assert_int_equal(guest_mem_copy_in(*state, HOLE - 4, seen, 4), 0);
	assert_memory_equal(seen, "\0\0\0\0", 4);
	assert_int_equal(guest_mem_copy_in(*state, HOLE - 4, buf, 8), -EFAULT);
	assert_int_equal(buf[0], 1);
}

static void range_over_a_hole_is_refused(void **state)
{
	static uint8_t buf[3 * K64];

	assert_int_equal(guest_mem_copy_in(*state, K64, buf, sizeof(buf)), -EFAULT);
	assert_int_equal(guest_mem_copy_in(*state, HOLE, buf, 1), -EFAULT);
}

static void range_may_cross_adjoining_regions(void **state)
{
	uint8_t out[64], in[64];
	unsigned i;

	for (i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i + 1);
	assert_int_equal(guest_mem_copy_out(*state, K64 - 17, out, 64), 0);
	assert_int_equal(guest_mem_copy_in(*state, K64 - 17, in, 64), 0);
	assert_memory_equal(in, out, 64);
	assert_int_equal(guest_mem_fill(*state, K64 - 2, 0xee, 4), 0);
	assert_int_equal(guest_mem_copy_in(*state, K64 - 3, in, 6), 0);
	assert_memory_equal(in, "\x0f\xee\xee\xee\xee\x14", 6);
}

static void wrapping_ranges_are_refused(void **state)
{
	static const struct {
		uint64_t gpa, len;
	} bad[] = { { UINT64_MAX, 1 },	{ UINT64_MAX - 7, 16 }, { 0, UINT64_MAX },
		    { 8, UINT64_MAX },	{ FAR, UINT64_MAX - FAR + 2 }, { UINT64_MAX, UINT64_MAX } };
	uint8_t byte = 0;
	struct iovec iov[4];
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(guest_mem_copy_in(*state, bad[i].gpa, &byte, bad[i].len), -EFAULT);
		assert_int_equal(guest_mem_copy_out(*state, bad[i].gpa, &byte, bad[i].len),
				 -EFAULT);
		assert_int_equal(guest_mem_fill(*state, bad[i].gpa, 0, bad[i].len), -EFAULT);
		assert_int_equal(guest_mem_iov(*state, bad[i].gpa, bad[i].len, iov, 4, &n),
				 -EFAULT);
		assert_null(guest_mem_span(*state, bad[i].gpa, bad[i].len));
	}
	assert_int_equal(n, 0);
}

static void empty_copies_succeed_and_touch_nothing(void **state)
{
	assert_int_equal(guest_mem_copy_in(*state, HOLE, NULL, 0), 0);
	assert_int_equal(guest_mem_copy_out(*state, UINT64_MAX, NULL, 0), 0);
	assert_int_equal(guest_mem_fill(*state, HOLE, 0, 0), 0);
}

/* A span lies in one region, however the next one adjoins it. */
static void span_stays_inside_one_region(void **state)
{
	assert_non_null(guest_mem_span(*state, 0, K64));
	assert_non_null(guest_mem_span(*state, K64 - 1, 1));
	assert_null(guest_mem_span(*state, K64 - 1, 2));
	assert_null(guest_mem_span(*state, 0, 0));
	assert_null(guest_mem_span(*state, HOLE, 1));
	assert_non_null(guest_mem_span(*state, FAR, 4 * MIB));
	assert_null(guest_mem_span(*state, FAR + 1, 4 * MIB));
	assert_null(guest_mem_span(*state, FAR - 1, 1));
}

static void iov_has_one_piece_per_region(void **state)
{
	struct iovec iov[4] = { { 0 } };
	size_t n = 1;

	assert_int_equal(guest_mem_iov(*state, K64 - 10, 30, iov, 4, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(iov[1].iov_len, 10);
	assert_int_equal(iov[2].iov_len, 20);
	assert_ptr_equal(iov[1].iov_base, guest_mem_span(*state, K64 - 10, 10));
	assert_ptr_equal(iov[2].iov_base, guest_mem_span(*state, K64, 20));
}

/* Room for all pieces or none is appended. */
static void iov_at_its_maximum_and_above(void **state)
{
	struct iovec iov[2];
	size_t n = 0;

	assert_int_equal(guest_mem_iov(*state, K64 - 1, 2, iov, 2, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(guest_mem_iov(*state, 0, 1, iov, 2, &n), -ENOSPC);
	assert_int_equal(n, 2);
	n = 1;
	assert_int_equal(guest_mem_iov(*state, K64 - 1, 2, iov, 2, &n), -ENOSPC);
	assert_int_equal(n, 1);
	assert_int_equal(guest_mem_iov(*state, 0, 0, iov, 2, &n), -EINVAL);
	assert_int_equal(guest_mem_iov(*state, HOLE - 1, 2, iov, 2, &n), -EFAULT);
}

static int temp_file(const void *data, size_t n)
{
	char path[] = "/tmp/lull-guest-mem-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	assert_int_equal(write(fd, data, n), n);
	return fd;
}

static void file_is_read_across_regions(void **state)
{
	int fd = temp_file("0123456789", 10);
	char text[9] = "";

	assert_int_equal(guest_mem_read_file(*state, K64 - 4, fd, 2, 8), 0);
	assert_int_equal(guest_mem_copy_in(*state, K64 - 4, text, 8), 0);
	assert_string_equal(text, "23456789");
	assert_int_equal(guest_mem_read_file(*state, K64 - 4, fd, 0, 0), 0);
	close(fd);
}

static void short_file_and_bad_range_are_refused(void **state)
{
	int fd = temp_file("0123456789", 10);

	assert_int_equal(guest_mem_read_file(*state, 0, fd, 2, 9), -ENODATA);
	assert_int_equal(guest_mem_read_file(*state, 0, fd, 100, 1), -ENODATA);
	assert_int_equal(guest_mem_read_file(*state, HOLE - 4, fd, 0, 8), -EFAULT);
	assert_int_equal(guest_mem_read_file(*state, 8, fd, 0, UINT64_MAX), -EFAULT);
	assert_int_equal(guest_mem_read_file(*state, 0, -1, 0, 8), -EBADF);
	close(fd);
}

/* So that a 2 MiB page of the guest can be one of the host. */
static void host_addresses_are_congruent_modulo_2_mib(void **state)
{
	const struct guest_mem *m = *state;
	uint32_t i;

	for (i = 0; i < m->count; i++) {
		uint64_t hva = (uint64_t)(uintptr_t)m->regions[i].hva;

		assert_int_equal(hva % (2 * MIB), m->regions[i].gpa % (2 * MIB));
	}
}

/* The kernel refuses to read from a page that we may not read. */
static bool readable(const uint8_t *p)
{
	int fd[2];
	bool ok;

	assert_int_equal(pipe(fd), 0);
	ok = write(fd[1], p, 1) == 1;
	close(fd[0]);
	close(fd[1]);
	return ok;
}

static void regions_have_guard_pages(void **state)
{
	const struct guest_mem *m = *state;
	uint32_t i;

	for (i = 0; i < m->count; i++) {
		const struct guest_mem_region *r = &m->regions[i];

		assert_true(readable(r->hva));
		assert_true(readable(r->hva + r->size - 1));
		assert_false(readable(r->hva - 1));
		assert_false(readable(r->hva + r->size));
	}
}

static void shared_memory_is_a_sealed_memfd(void **state)
{
	const struct guest_mem_range range = { 0, K64 };
	struct guest_mem m;
	char text[3] = "";

	assert_int_equal(guest_mem_init(&m, &range, 1, HUGE_PAGES_NONE, true, NULL), 0);
	assert_true(m.regions[0].fd >= 0);
	assert_int_equal(guest_mem_copy_out(&m, 10, "ab", 2), 0);
	assert_int_equal(pread(m.regions[0].fd, text, 2, 10), 2);
	assert_string_equal(text, "ab");
	assert_int_equal(ftruncate(m.regions[0].fd, 0), -1);
	assert_int_equal(fcntl(m.regions[0].fd, F_GET_SEALS),
			 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	guest_mem_fini(&m);
	assert_int_equal(m.count, 0);
}

static void more_regions_than_the_limit_are_refused(void **state)
{
	struct guest_mem_range many[LIMIT_MEM_REGIONS + 1];
	struct error err = { 0 };
	struct guest_mem m;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = (struct guest_mem_range){ i * K64, 4096 };
	assert_int_equal(guest_mem_init(&m, many, i, HUGE_PAGES_NONE, false, &err), -EINVAL);
	assert_int_equal(guest_mem_init(&m, many, i - 1, HUGE_PAGES_NONE, false, &err), 0);
	guest_mem_fini(&m);
}

/* Nothing may be left behind by a map that fails half-way. */
static void impossible_size_is_an_error(void **state)
{
	const struct guest_mem_range huge[] = { { 0, K64 }, { GIB, 1ull << 60 } };
	struct error err = { 0 };
	struct guest_mem m;

	assert_true(guest_mem_init(&m, huge, 2, HUGE_PAGES_NONE, false, &err) < 0);
	assert_non_null(strstr(err.text, "guest memory"));
	assert_int_equal(m.count, 0);
	assert_null(m.regions[0].hva);
}

static void ring_words_are_little_endian(void **state)
{
	uint8_t *p = guest_mem_span(*state, 0x100, 8);

	guest_store16(p, 0x1234);
	guest_store_release16(p + 2, 0x5678);
	guest_store32(p + 4, 0x9abcdef0);
	assert_memory_equal(p, "\x34\x12\x78\x56\xf0\xde\xbc\x9a", 8);
	assert_int_equal(guest_load16(p), 0x1234);
	assert_int_equal(guest_load_acquire16(p + 2), 0x5678);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(bytes_are_the_sum_of_the_regions),
		T(new_memory_is_zero),
		T(what_goes_out_comes_in),
		T(access_may_end_exactly_at_the_end_of_ram),
		T(failed_access_changes_nothing),
		T(range_over_a_hole_is_refused),
		T(range_may_cross_adjoining_regions),
		T(wrapping_ranges_are_refused),
		T(empty_copies_succeed_and_touch_nothing),
		T(span_stays_inside_one_region),
		T(iov_has_one_piece_per_region),
		T(iov_at_its_maximum_and_above),
		T(file_is_read_across_regions),
		T(short_file_and_bad_range_are_refused),
		T(host_addresses_are_congruent_modulo_2_mib),
		T(regions_have_guard_pages),
		T(shared_memory_is_a_sealed_memfd),
		T(more_regions_than_the_limit_are_refused),
		T(impossible_size_is_an_error),
		T(ring_words_are_little_endian),
	};

	return cmocka_run_group_tests_name("guest_mem", tests, NULL, NULL);
}
