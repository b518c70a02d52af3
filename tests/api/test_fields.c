/* Field tables: reading every kind, the errors, printing. */
#include "tests/api/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/fields.h"
#include "api/schema.h"
#include "vmm/limits.h"

enum colour { RED, GREEN };

struct inner {
	uint64_t size;
	bool present;
};

struct sample {
	bool flag;
	uint32_t small;
	uint64_t large;
	char text[8];
	char note[8];
	bool has_note;
	enum colour colour;
	uint8_t mac[6];
	bool has_mac;
	struct inner inner;
	struct inner list[3];
	uint32_t list_count;
};

static const struct field_name colours[] = { { "Red", RED }, { "Green", GREEN }, { 0 } };
static const struct field_name words[] = { { "Known", 0 }, { "Later", 0, true }, { 0 } };

static const struct field inner_fields[] = {
	F_U64("size", struct inner, size, "u64", .flags = FIELD_REQUIRED),
};
static const struct field_table inner_table =
	FIELD_TABLE("struct Inner", struct inner, inner_fields);

static const struct field sample_fields[] = {
	F_BOOL("flag", struct sample, flag, .flags = FIELD_REQUIRED),
	F_U32("small", struct sample, small, 255, "u8"),
	F_U64("large", struct sample, large, "u64", .flags = FIELD_ZERO_NONE),
	F_STRING("text", struct sample, text),
	F_STRING("note", struct sample, note, .flags = FIELD_NULL,
		 F_HAS(struct sample, has_note)),
	F_ENUM("colour", struct sample, colour, enum colour, colours),
	F_MAC("mac", struct sample, mac, .flags = FIELD_NULL, F_HAS(struct sample, has_mac)),
	F_OBJECT("inner", struct sample, inner, struct inner, inner_table,
		 F_HAS(struct sample, inner.present)),
	F_ARRAY("list", struct sample, list, list_count, struct inner, inner_table),
	F_WORD("word", words),
	F_REFUSED("later", FIELD_NULL),
};
static const struct field_table sample_table =
	FIELD_TABLE("struct Sample", struct sample, sample_fields);

static const struct json_limits limits = { LIMIT_JSON_DEPTH, LIMIT_JSON_TOKENS };
static struct sample sample;
static struct field_error fault;
static uint64_t given;

static int read_as(enum fields_mode mode, const char *text)
{
	return fields_read_text(&sample_table, text, strlen(text), &limits, mode, &sample, &given,
				&fault);
}

static int read_text(const char *text)
{
	return read_as(FIELDS_WHOLE, text);
}

static void expect_fault(const char *text, enum field_fault kind, const char *field,
			 const char *message)
{
	assert_int_equal(read_text(text), -EINVAL);
	assert_int_equal(fault.fault, kind);
	assert_string_equal(fault.field, field);
	assert_string_equal(fault.text, message);
}

static void every_kind_is_read(void **state)
{
	assert_int_equal(read_text("{\"flag\":true,\"small\":255,\"large\":18446744073709551615,"
				   "\"text\":\"abcdefg\",\"note\":\"\",\"colour\":\"Green\","
				   "\"mac\":\"06:00:Ac:10:00:fF\",\"inner\":{\"size\":3},"
				   "\"list\":[{\"size\":1},{\"size\":2}],\"word\":\"Known\"}"), 0);
	assert_true(sample.flag);
	assert_int_equal(sample.small, 255);
	assert_true(sample.large == UINT64_MAX);
	assert_string_equal(sample.text, "abcdefg");
	assert_true(sample.has_note && sample.has_mac && sample.inner.present);
	assert_int_equal(sample.colour, GREEN);
	assert_memory_equal(sample.mac, "\x06\x00\xac\x10\x00\xff", 6);
	assert_int_equal(sample.inner.size, 3);
	assert_int_equal(sample.list_count, 2);
	assert_int_equal(sample.list[1].size, 2);
	assert_int_equal(given, 0x3ff);
}

static void absent_fields_are_zero(void **state)
{
	memset(&sample, 0xff, sizeof(sample));
	assert_int_equal(read_text("{\"flag\":false}"), 0);
	assert_int_equal(sample.small, 0);
	assert_string_equal(sample.text, "");
	assert_false(sample.has_note);
	assert_int_equal(given, 1);
}

static void null_counts_as_absent(void **state)
{
	assert_int_equal(read_text("{\"flag\":true,\"small\":null,\"note\":null,\"inner\":null,"
				   "\"list\":null,\"later\":null,\"mac\":null}"), 0);
	assert_false(sample.has_note || sample.inner.present || sample.has_mac);
	assert_int_equal(given, 1);
}

static void null_is_no_value_for_a_required_field(void **state)
{
	expect_fault("{\"flag\":null}", FIELD_FAULT_TYPE, "flag",
		     "invalid type: null, expected a boolean in field `flag`");
}

static void missing_field_is_named_with_its_place(void **state)
{
	expect_fault("{\"small\": 12}", FIELD_FAULT_MISSING, "flag",
		     "missing field `flag` at line 1 column 13");
	expect_fault("{\"flag\":true,\"inner\":{}}", FIELD_FAULT_MISSING, "inner.size",
		     "missing field `size`");
}

static void unknown_field_lists_the_known_ones(void **state)
{
	expect_fault("{\"flag\":true,\"inner\":{\"size\":1,\"x\":2}}", FIELD_FAULT_UNKNOWN,
		     "inner.x", "unknown field `x`, expected `size`");
	expect_fault("{\"nope\":1}", FIELD_FAULT_UNKNOWN, "nope",
		     "unknown field `nope`, expected one of `flag`, `small`, `large`, `text`, "
		     "`note`, `colour`, `mac`, `inner`, `list`, `word`");
}

static void unknown_field_of_two_says_or(void **state)
{
	static const char text[] = "{\"iface_id\":\"a\",\"host_dev_name\":\"b\","
				   "\"rx_rate_limiter\":{\"x\":1}}";
	struct net_config net;

	assert_int_equal(fields_read_text(&net_table, text, strlen(text), &limits, FIELDS_WHOLE,
					  &net, NULL, &fault), -EINVAL);
	assert_string_equal(fault.text, "unknown field `x`, expected `bandwidth` or `ops`");
	assert_string_equal(fault.field, "rx_rate_limiter.x");
}

static void unknown_variant_lists_the_known_ones(void **state)
{
	expect_fault("{\"flag\":true,\"colour\":\"foo\"}", FIELD_FAULT_RANGE, "colour",
		     "unknown variant `foo`, expected `Red` or `Green` in field `colour`");
	expect_fault("{\"flag\":true,\"colour\":\"red\"}", FIELD_FAULT_RANGE, "colour",
		     "unknown variant `red`, expected `Red` or `Green` in field `colour`");
}

static void wrong_types_show_the_value(void **state)
{
	expect_fault("{\"flag\":true,\"small\":\"-2\"}", FIELD_FAULT_TYPE, "small",
		     "invalid type: string \"-2\", expected u8 in field `small`");
	expect_fault("{\"flag\":1}", FIELD_FAULT_TYPE, "flag",
		     "invalid type: integer `1`, expected a boolean in field `flag`");
	expect_fault("{\"flag\":true,\"large\":1.5}", FIELD_FAULT_TYPE, "large",
		     "invalid type: floating point `1.5`, expected u64 in field `large`");
	expect_fault("{\"flag\":true,\"text\":true}", FIELD_FAULT_TYPE, "text",
		     "invalid type: boolean `true`, expected a string in field `text`");
	expect_fault("{\"flag\":true,\"inner\":[]}", FIELD_FAULT_TYPE, "inner",
		     "invalid type: sequence, expected struct Inner in field `inner`");
	expect_fault("{\"flag\":true,\"list\":{}}", FIELD_FAULT_TYPE, "list",
		     "invalid type: map, expected a sequence in field `list`");
}

static void body_must_be_an_object(void **state)
{
	expect_fault("[]", FIELD_FAULT_TYPE, "", "invalid type: sequence, expected struct Sample");
	expect_fault("12", FIELD_FAULT_TYPE, "",
		     "invalid type: integer `12`, expected struct Sample");
	expect_fault("null", FIELD_FAULT_TYPE, "", "invalid type: null, expected struct Sample");
	expect_fault("\"x\"", FIELD_FAULT_TYPE, "",
		     "invalid type: string \"x\", expected struct Sample");
}

static void numbers_end_at_their_range(void **state)
{
	assert_int_equal(read_text("{\"flag\":true,\"small\":0}"), 0);
	expect_fault("{\"flag\":true,\"small\":256}", FIELD_FAULT_RANGE, "small",
		     "invalid value: integer `256`, expected u8 in field `small`");
	expect_fault("{\"flag\":true,\"large\":-1}", FIELD_FAULT_RANGE, "large",
		     "invalid value: integer `-1`, expected u64 in field `large`");
	assert_int_equal(read_text("{\"flag\":true,\"large\":18446744073709551616}"), -EINVAL);
	assert_non_null(strstr(fault.text, "invalid type"));
}

static void strings_end_at_their_capacity(void **state)
{
	assert_int_equal(read_text("{\"flag\":true,\"text\":\"1234567\"}"), 0);
	expect_fault("{\"flag\":true,\"text\":\"12345678\"}", FIELD_FAULT_RANGE, "text",
		     "invalid length 8, expected a string of at most 7 bytes in field `text`");
}

static void arrays_end_at_their_capacity(void **state)
{
	assert_int_equal(read_text("{\"flag\":true,\"list\":[{\"size\":1},{\"size\":2},"
				   "{\"size\":3}]}"), 0);
	expect_fault("{\"flag\":true,\"list\":[{\"size\":1},{\"size\":2},{\"size\":3},"
		     "{\"size\":4}]}", FIELD_FAULT_RANGE, "list",
		     "invalid length 4, expected at most 3 elements in field `list`");
}

static void duplicate_field_is_named(void **state)
{
	assert_int_equal(read_text("{\"flag\":true,\"flag\":false}"), -EEXIST);
	assert_int_equal(fault.fault, FIELD_FAULT_DUPLICATE);
	assert_string_equal(fault.field, "flag");
	assert_ptr_equal(strstr(fault.text, "duplicate field `flag`"), fault.text);
}

static void mac_addresses_are_strict(void **state)
{
	static const char *const bad[] = { "", "06:00:ac:10:00", "06:00:ac:10:00:2",
					   "06-00-ac-10-00-02", "06:00:ac:10:00:0g",
					   "06:00:ac:10:00:02:03", "060:0:ac:10:00:02" };
	uint8_t mac[6];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(fields_parse_mac(bad[i], mac), -EINVAL);
	expect_fault("{\"flag\":true,\"mac\":\"x\"}", FIELD_FAULT_RANGE, "mac",
		     "The provided MAC address is invalid. in field `mac`");
}

static void refused_fields_and_values_say_so(void **state)
{
	expect_fault("{\"flag\":true,\"later\":{}}", FIELD_FAULT_REFUSED, "later",
		     "field `later` is not supported by this version");
	expect_fault("{\"flag\":true,\"word\":\"Later\"}", FIELD_FAULT_REFUSED, "word",
		     "field `word`: value `Later` is not supported by this version");
	assert_int_equal(read_text("{\"flag\":true,\"later\":[]}"), 0);
}

static void partial_reading_keeps_the_rest(void **state)
{
	assert_int_equal(read_text("{\"flag\":true,\"small\":7,\"text\":\"abc\"}"), 0);
	assert_int_equal(read_as(FIELDS_PARTIAL, "{\"text\":\"xyz\"}"), 0);
	assert_int_equal(sample.small, 7);
	assert_string_equal(sample.text, "xyz");
	assert_int_equal(given, 1u << 3);
}

static void long_client_text_is_clipped_in_messages(void **state)
{
	char text[700];

	snprintf(text, sizeof(text), "{\"%0600d\":1}", 0);
	assert_int_equal(read_text(text), -EINVAL);
	assert_non_null(strstr(fault.text, "0...`, expected one of `flag`"));
	assert_true(strlen(fault.field) < 100);
}

static void struct_prints_as_it_was_read(void **state)
{
	static const char text[] = "{\"flag\":true,\"small\":9,\"text\":\"a\\\"b\",\"note\":\"\","
				   "\"colour\":\"Green\",\"mac\":\"06:00:ac:10:00:02\","
				   "\"inner\":{\"size\":5},\"list\":[{\"size\":1}],"
				   "\"later\":null}";
	struct buf out;

	assert_int_equal(read_text(text), 0);
	buf_init(&out, 4096);
	fields_print(&sample_table, &sample, &out);
	assert_string_equal(buf_text(&out), text);
	buf_fini(&out);
}

static void absent_fields_print_as_null_or_not_at_all(void **state)
{
	struct buf out;

	assert_int_equal(read_text("{\"flag\":false}"), 0);
	buf_init(&out, 4096);
	fields_print(&sample_table, &sample, &out);
	assert_string_equal(buf_text(&out), "{\"flag\":false,\"small\":0,\"note\":null,"
					    "\"colour\":\"Red\",\"mac\":null,\"list\":[],"
					    "\"later\":null}");
	buf_fini(&out);
}

static void open_tables_pass_over_unknown_keys(void **state)
{
	static const char text[] = "{\"metrics_path\":\"m\",\"emit_id\":false,\"x\":[1,{}]}";
	struct metrics_config m;

	assert_int_equal(fields_read_text(&metrics_table, text, strlen(text), &limits,
					  FIELDS_WHOLE, &m, NULL, &fault), 0);
	assert_string_equal(m.metrics_path, "m");
}

static void log_level_is_taken_in_any_case(void **state)
{
	static const char text[] = "{\"level\":\"wArNiNg\"}";
	struct logger_config l;

	assert_int_equal(fields_read_text(&logger_table, text, strlen(text), &limits, FIELDS_WHOLE,
					  &l, NULL, &fault), 0);
	assert_int_equal(l.level, LOG_LEVEL_WARN);
}

static void logger_starts_from_level_info(void **state)
{
	struct logger_config l;

	assert_int_equal(fields_read_text(&logger_table, "{}", 2, &limits, FIELDS_WHOLE, &l, NULL,
					  &fault), 0);
	assert_int_equal(l.level, LOG_LEVEL_INFO);
}

static int read_cpus(const char *text, struct affinity_params *out, struct field_error *err)
{
	return fields_read_text(&cpus_table, text, strlen(text), &limits, FIELDS_WHOLE, out, NULL,
				err);
}

static void cpus_are_read_into_a_set_and_printed(void **state)
{
	struct affinity_params p;
	struct field_error err;
	struct buf out;

	assert_int_equal(read_cpus("{\"cpus\":[1023,0,5,0]}", &p, &err), 0);
	assert_int_equal(CPU_COUNT(&p.cpus), 3);
	buf_init(&out, 256);
	fields_print(&cpus_table, &p, &out);
	assert_string_equal(buf_text(&out), "{\"cpus\":[0,5,1023]}");
	fields_print_cpus(NULL, &out);
	assert_non_null(strstr(buf_text(&out), "}null"));
	buf_fini(&out);
}

static void cpus_that_are_none_are_refused(void **state)
{
	static const char *const bad[] = {
		"{\"cpus\":[]}",     "{\"cpus\":[1024]}", "{\"cpus\":[-1]}", "{\"cpus\":[1,null]}",
		"{\"cpus\":[\"1\"]}", "{\"cpus\":[1.0]}",  "{\"cpus\":1}",    "{\"cpus\":\"0-3\"}",
		"{\"cpus\":null}",   "{}",               "{\"cpus\":[18446744073709551615]}",
	};
	struct affinity_params p;
	struct field_error err;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(read_cpus(bad[i], &p, &err), -EINVAL);
		assert_string_equal(err.field, "cpus");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpus_are_read_into_a_set_and_printed),
		cmocka_unit_test(cpus_that_are_none_are_refused),
		cmocka_unit_test(every_kind_is_read),
		cmocka_unit_test(absent_fields_are_zero),
		cmocka_unit_test(null_counts_as_absent),
		cmocka_unit_test(null_is_no_value_for_a_required_field),
		cmocka_unit_test(missing_field_is_named_with_its_place),
		cmocka_unit_test(unknown_field_lists_the_known_ones),
		cmocka_unit_test(unknown_field_of_two_says_or),
		cmocka_unit_test(unknown_variant_lists_the_known_ones),
		cmocka_unit_test(wrong_types_show_the_value),
		cmocka_unit_test(body_must_be_an_object),
		cmocka_unit_test(numbers_end_at_their_range),
		cmocka_unit_test(strings_end_at_their_capacity),
		cmocka_unit_test(arrays_end_at_their_capacity),
		cmocka_unit_test(duplicate_field_is_named),
		cmocka_unit_test(mac_addresses_are_strict),
		cmocka_unit_test(refused_fields_and_values_say_so),
		cmocka_unit_test(partial_reading_keeps_the_rest),
		cmocka_unit_test(long_client_text_is_clipped_in_messages),
		cmocka_unit_test(struct_prints_as_it_was_read),
		cmocka_unit_test(absent_fields_print_as_null_or_not_at_all),
		cmocka_unit_test(open_tables_pass_over_unknown_keys),
		cmocka_unit_test(log_level_is_taken_in_any_case),
		cmocka_unit_test(logger_starts_from_level_info),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
