/* KVM's statistics, those of a kernel and those of an enemy. */
#include "kvm_fixture.h"

#include <string.h>

#include "vmm/kvm_stats.h"

static struct kvm_stats stats;

static int stats_setup(void **state)
{
	kvm_stats_init(&stats);
	return setup(state);
}

static int stats_teardown(void **state)
{
	kvm_stats_close(&stats);
	return teardown(state);
}

static void values_are_found_by_name(void **state)
{
	struct fixture *f = *state;

	fake_kvm_set_stat(FAKE_STATS_OF_VM, "remote_tlb_flush", 7);
	assert_int_equal(kvm_stats_open(&stats, f->vm), 0);
	assert_int_equal(kvm_stats_read(&stats), 0);
	assert_int_equal(kvm_stats_value(&stats, "remote_tlb_flush"), 7);
	assert_int_equal(kvm_stats_value(&stats, "exits"), 0);
	assert_null(kvm_stats_find(&stats, "exits"));
	assert_null(kvm_stats_find(&stats, ""));
}

static void each_read_takes_them_anew(void **state)
{
	static const struct fake_step wait[] = { FAKE_WAIT() };
	struct fixture *f = *state;

	MAKE_VCPU(f, wait);
	assert_int_equal(kvm_stats_open(&stats, f->vcpu), 0);
	fake_kvm_set_stat(0, "exits", 1);
	assert_int_equal(kvm_stats_read(&stats), 0);
	fake_kvm_set_stat(0, "exits", UINT64_MAX);
	assert_int_equal(kvm_stats_value(&stats, "exits"), 1);
	assert_int_equal(kvm_stats_read(&stats), 0);
	assert_true(kvm_stats_value(&stats, "exits") == UINT64_MAX);
}

static void a_histogram_has_all_its_values(void **state)
{
	static const struct fake_step wait[] = { FAKE_WAIT() };
	uint64_t values[FAKE_HISTOGRAM] = { [0] = 3, [31] = 9 };
	const struct kvm_stat *stat;
	struct fixture *f = *state;

	MAKE_VCPU(f, wait);
	fake_kvm_set_histogram(0, "halt_wait_hist", values);
	assert_int_equal(kvm_stats_open(&stats, f->vcpu), 0);
	assert_int_equal(kvm_stats_read(&stats), 0);
	stat = kvm_stats_find(&stats, "halt_wait_hist");
	assert_non_null(stat);
	assert_int_equal(stat->count, FAKE_HISTOGRAM);
	assert_int_equal(stat->exponent, -9);
	assert_int_equal(stat->flags & KVM_STATS_TYPE_MASK, KVM_STATS_TYPE_LOG_HIST);
	assert_memory_equal(&stats.values[stat->first], values, sizeof(values));
}

static void what_is_not_open_cannot_be_read(void **state)
{
	assert_int_equal(kvm_stats_read(&stats), -EBADF);
	assert_int_equal(kvm_stats_value(&stats, "exits"), 0);
}

static void a_kernel_without_them_is_an_error(void **state)
{
	struct fixture *f = *state;

	fake_kvm_fail(KVM_GET_STATS_FD, 1, ENOTTY);
	assert_int_equal(kvm_stats_open(&stats, f->vm), -ENOTTY);
	assert_int_equal(kvm_stats_read(&stats), -EBADF);
}

static void a_read_that_fails_is_tried_again(void **state)
{
	struct fixture *f = *state;
	unsigned call;

	assert_int_equal(kvm_stats_open(&stats, f->vm), 0);
	for (call = 1; call <= 3; call++) { /* header, names, values */
		fake_kvm_fail(FAKE_PREAD, call, EIO);
		assert_int_equal(kvm_stats_read(&stats), -EIO);
		assert_null(kvm_stats_find(&stats, "remote_tlb_flush"));
	}
	assert_int_equal(kvm_stats_read(&stats), 0);
	assert_non_null(kvm_stats_find(&stats, "remote_tlb_flush"));
}

static void an_interrupted_read_goes_on(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(kvm_stats_open(&stats, f->vm), 0);
	fake_kvm_fail(FAKE_PREAD, 2, EINTR);
	assert_int_equal(kvm_stats_read(&stats), 0);
	assert_true(fake_kvm_failed());
}

/* Descriptors of an enemy: one statistic, "x", whose every field a test may spoil. */

#define NAME 8
struct enemy {
	struct kvm_stats_header header;
	uint32_t flags;
	int16_t exponent;
	uint16_t size;
	uint32_t offset;
	uint32_t bucket_size;
	char name[NAME];
	uint64_t values[4];
};

static struct enemy good(void)
{
	return (struct enemy){
		.header = { .name_size = NAME, .num_desc = 1,
			    .desc_offset = offsetof(struct enemy, flags),
			    .data_offset = offsetof(struct enemy, values) },
		.size = 1,
		.name = "x",
		.values = { 5, 6, 7, 8 },
	};
}

static int read_enemy(const struct fixture *f, const void *bytes, size_t size)
{
	int ret;

	fake_kvm_set_stats_bytes(bytes, size);
	assert_int_equal(kvm_stats_open(&stats, f->vm), 0);
	ret = kvm_stats_read(&stats);
	if (ret < 0) {
		assert_null(kvm_stats_find(&stats, "x"));
		assert_int_equal(stats.count, 0);
		kvm_stats_close(&stats);
	}
	return ret;
}

#define READ(f, e) read_enemy(f, &(e), sizeof(e))

static void the_plain_descriptor_is_good(void **state)
{
	struct enemy e = good();

	e.offset = 16;
	e.size = 2;
	assert_int_equal(READ(*state, e), 0);
	assert_int_equal(kvm_stats_value(&stats, "x"), 7);
}

static void a_short_file_is_none_of_kvms(void **state)
{
	struct enemy e = good();
	size_t size;

	for (size = 0; size < sizeof(e) - 3 * sizeof(uint64_t); size++)
		assert_int_equal(read_enemy(*state, &e, size), -EPROTO);
	assert_int_equal(read_enemy(*state, &e, size), 0);
}

static void odd_headers_are_errors(void **state)
{
	static const struct {
		size_t offset;
		uint32_t value;
		int error;
	} cases[] = {
		{ offsetof(struct kvm_stats_header, name_size), 0, -EPROTO },
		{ offsetof(struct kvm_stats_header, name_size), LIMIT_KVM_STAT_NAME + 1, -EPROTO },
		{ offsetof(struct kvm_stats_header, name_size), UINT32_MAX, -EPROTO },
		{ offsetof(struct kvm_stats_header, num_desc), 0, -EPROTO },
		{ offsetof(struct kvm_stats_header, num_desc), LIMIT_KVM_STATS + 1, -E2BIG },
		{ offsetof(struct kvm_stats_header, num_desc), UINT32_MAX, -E2BIG },
		{ offsetof(struct kvm_stats_header, num_desc), LIMIT_KVM_STATS, -EPROTO },
		{ offsetof(struct kvm_stats_header, desc_offset), 0, -EPROTO },
		{ offsetof(struct kvm_stats_header, desc_offset), UINT32_MAX, -EPROTO },
		{ offsetof(struct kvm_stats_header, data_offset), 0, -EPROTO },
		{ offsetof(struct kvm_stats_header, data_offset), UINT32_MAX, -EPROTO },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct enemy e = good();

		memcpy((char *)&e.header + cases[i].offset, &cases[i].value, sizeof(uint32_t));
		assert_int_equal(READ(*state, e), cases[i].error);
	}
}

static void odd_descriptors_are_errors(void **state)
{
	struct enemy e = good();

	memset(e.name, 'n', NAME); /* no end */
	assert_int_equal(READ(*state, e), -EPROTO);
	e = good();
	e.name[0] = '\0';
	assert_int_equal(READ(*state, e), -EPROTO);
	e = good();
	e.size = 0;
	assert_int_equal(READ(*state, e), -EPROTO);
	e = good();
	e.offset = 4;
	assert_int_equal(READ(*state, e), -EPROTO);
	e = good();
	e.offset = 32; /* behind the values there are */
	assert_int_equal(READ(*state, e), -EPROTO);
}

static void values_have_a_limit(void **state)
{
	struct enemy e = good();

	e.offset = UINT32_MAX - 7;
	e.size = UINT16_MAX;
	assert_int_equal(READ(*state, e), -E2BIG);
	e = good();
	e.offset = LIMIT_KVM_STATS_BYTES;
	assert_int_equal(READ(*state, e), -E2BIG);
	e.offset = LIMIT_KVM_STATS_BYTES - 8; /* the last there may be, but not in this file */
	assert_int_equal(READ(*state, e), -EPROTO);
}

/* As many, with names as long, as we take. */
static void the_most_there_may_be_is_taken(void **state)
{
	const size_t each = sizeof(struct kvm_stats_desc) + LIMIT_KVM_STAT_NAME;
	const struct kvm_stats_header h = {
		.name_size = LIMIT_KVM_STAT_NAME, .num_desc = LIMIT_KVM_STATS,
		.desc_offset = sizeof(h),
		.data_offset = sizeof(h) + (uint32_t)(LIMIT_KVM_STATS * each),
	};
	char *bytes = calloc(1, h.data_offset + 8);
	size_t i;

	memcpy(bytes, &h, sizeof(h));
	for (i = 0; i < LIMIT_KVM_STATS; i++) {
		const struct kvm_stats_desc d = { .size = 1 };

		memcpy(bytes + sizeof(h) + i * each, &d, sizeof(d));
		memset(bytes + sizeof(h) + i * each + sizeof(d), 'y', LIMIT_KVM_STAT_NAME - 1);
	}
	assert_int_equal(read_enemy(*state, bytes, h.data_offset + 8), 0);
	assert_int_equal(stats.count, LIMIT_KVM_STATS);
	assert_int_equal(strlen(stats.stats[0].name), LIMIT_KVM_STAT_NAME - 1);
	fake_kvm_set_stats_bytes(NULL, 0);
	free(bytes);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, stats_setup, stats_teardown)
	static const struct CMUnitTest tests[] = {
		TEST(values_are_found_by_name),
		TEST(each_read_takes_them_anew),
		TEST(a_histogram_has_all_its_values),
		TEST(what_is_not_open_cannot_be_read),
		TEST(a_kernel_without_them_is_an_error),
		TEST(a_read_that_fails_is_tried_again),
		TEST(an_interrupted_read_goes_on),
		TEST(the_plain_descriptor_is_good),
		TEST(a_short_file_is_none_of_kvms),
		TEST(odd_headers_are_errors),
		TEST(odd_descriptors_are_errors),
		TEST(values_have_a_limit),
		TEST(the_most_there_may_be_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
