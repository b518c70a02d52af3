/*
 * Scope-bound release, and taking out of it.
 */
#include "tests/vmm/base/base_test.h"

#include <fcntl.h>

#include "vmm/base/cleanup.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int open_and_drop(void)
{
	_cleanup_close_ int fd = dup(STDERR_FILENO);

	assert_true(is_open(fd));
	return fd; /* the number outlives the descriptor */
}

static int open_and_take(void)
{
	_cleanup_close_ int fd = dup(STDERR_FILENO);

	return fd_take(&fd);
}

static void dropped_descriptor_is_closed(void **state)
{
	assert_false(is_open(open_and_drop()));
}

static void taken_descriptor_stays_open(void **state)
{
	int fd = open_and_take();

	assert_true(is_open(fd));
	close(fd);
}

static void closing_keeps_errno(void **state)
{
	errno = ENOENT;
	{
		_cleanup_close_ int bad = 1000000;

		assert_int_equal(bad, 1000000);
	}
	assert_int_equal(errno, ENOENT);
}

static void taken_pointer_is_not_freed(void **state)
{
	char *kept;

	{
		_cleanup_free_ char *p = strdup("kept");

		kept = ptr_take(&p);
		assert_null(p);
	}
	assert_string_equal(kept, "kept");
	free(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dropped_descriptor_is_closed),
		cmocka_unit_test(taken_descriptor_stays_open),
		cmocka_unit_test(closing_keeps_errno),
		cmocka_unit_test(taken_pointer_is_not_freed),
	};

	return cmocka_run_group_tests_name("cleanup", tests, NULL, NULL);
}
