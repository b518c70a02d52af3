/*
 * For tests of booting: cmocka, guest memory, and files made of bytes.
 */
#ifndef LULL_TESTS_ARCH_TEST_H
#define LULL_TESTS_ARCH_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm/base/bits.h"
#include "vmm/base/error.h"
#include "vmm/base/fd.h"
#include "vmm/guest_mem.h"

/* Guest RAM in one or two ranges, as the x86 board lays it out. */
static inline void test_mem_init(struct guest_mem *m, uint64_t low, uint64_t high)
{
	struct guest_mem_range ranges[2] = {
		{ .gpa = 0, .size = low },
		{ .gpa = 4 * GIB, .size = high },
	};
	struct error err;

	assert_int_equal(guest_mem_init(m, ranges, high ? 2 : 1, HUGE_PAGES_NONE, false, &err), 0);
}

/* A file with these bytes, and as long as `size` says. */
static inline int test_file(const void *bytes, size_t n, uint64_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, bytes, n), 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static inline uint8_t test_byte(const struct guest_mem *m, uint64_t gpa)
{
	uint8_t byte;

	assert_int_equal(guest_mem_copy_in(m, gpa, &byte, 1), 0);
	return byte;
}

static inline uint64_t test_u64(const struct guest_mem *m, uint64_t gpa)
{
	uint8_t bytes[8];

	assert_int_equal(guest_mem_copy_in(m, gpa, bytes, sizeof(bytes)), 0);
	return load_le64(bytes);
}

/* The bytes of a table add up to nothing. */
static inline uint8_t test_sum(const uint8_t *p, size_t n)
{
	uint8_t sum = 0;

	while (n--)
		sum = (uint8_t)(sum + *p++);
	return sum;
}

#define KERNEL_ERROR \
	"System configuration error: Cannot load kernel due to invalid memory configuration or " \
	"invalid kernel image: "

static inline void assert_begins(const char *text, const char *with)
{
	if (strncmp(text, with, strlen(with)))
		fail_msg("\"%s\" does not begin with \"%s\"", text, with);
}

static inline void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

/* A test of a table of cases: the case is the state that the test is given. */
struct test_case {
	const char *name;
};

#define CASE_TEST(function, case_ptr)                                                        \
	(struct CMUnitTest)                                                                  \
	{                                                                                    \
		.name = (case_ptr)->name, .test_func = function,                             \
		.initial_state = (void *)(uintptr_t)(case_ptr),                              \
	}

#endif
