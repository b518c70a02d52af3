/* I/O vectors: copying, skipping and cutting at every place. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "devices/virtio/iov.h"
#include "vmm/base/bits.h"

static char a[3], b[1], c[4];
static struct iovec iov[3];

static void fill(void)
{
	memcpy(a, "abc", 3);
	memcpy(b, "d", 1);
	memcpy(c, "efgh", 4);
	iov[0] = (struct iovec){ a, sizeof(a) };
	iov[1] = (struct iovec){ b, sizeof(b) };
	iov[2] = (struct iovec){ c, sizeof(c) };
}

static void bytes_are_summed(void **state)
{
	fill();
	assert_int_equal(iov_bytes(iov, 3), 8);
	assert_int_equal(iov_bytes(iov, 0), 0);
}

/* Every offset and length of the 8 bytes, and beyond. */
static void read_gives_every_slice(void **state)
{
	char buf[10];
	size_t offset, len, got;

	fill();
	for (offset = 0; offset <= 9; offset++) {
		for (len = 0; len <= 9; len++) {
			size_t left = offset < 8 ? 8 - offset : 0;

			got = iov_read(iov, 3, offset, buf, len);
			assert_int_equal(got, len < left ? len : left);
			assert_memory_equal(buf, &"abcdefgh"[offset < 8 ? offset : 8], got);
		}
	}
}

static void write_goes_to_every_slice(void **state)
{
	char buf[9] = "";

	fill();
	assert_int_equal(iov_write(iov, 3, 2, "XYZ", 3), 3);
	iov_read(iov, 3, 0, buf, 8);
	assert_string_equal(buf, "abXYZfgh");
	assert_int_equal(iov_write(iov, 3, 7, "12", 2), 1);
}

static void skip_leaves_the_tail(void **state)
{
	size_t n;

	for (n = 0; n <= 8; n++) {
		struct iovec *at = iov;
		uint32_t count = 3;
		char buf[8];

		fill();
		iov_skip(&at, &count, n);
		assert_int_equal(iov_bytes(at, count), 8 - n);
		assert_int_equal(iov_read(at, count, 0, buf, 8), 8 - n);
		assert_memory_equal(buf, &"abcdefgh"[n], 8 - n);
	}
}

static void skip_past_the_end_leaves_nothing(void **state)
{
	struct iovec *at = iov;
	uint32_t count = 3;

	fill();
	iov_skip(&at, &count, 100);
	assert_int_equal(count, 0);
}

static void cut_keeps_the_head(void **state)
{
	size_t n;

	for (n = 0; n <= 9; n++) {
		uint32_t count = 3;

		fill();
		iov_cut(iov, &count, n);
		assert_int_equal(iov_bytes(iov, count), n < 8 ? n : 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_summed),
		cmocka_unit_test(read_gives_every_slice),
		cmocka_unit_test(write_goes_to_every_slice),
		cmocka_unit_test(skip_leaves_the_tail),
		cmocka_unit_test(skip_past_the_end_leaves_nothing),
		cmocka_unit_test(cut_keeps_the_head),
	};

	return cmocka_run_group_tests_name("iov", tests, NULL, NULL);
}
