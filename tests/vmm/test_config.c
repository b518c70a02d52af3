/* Defaults of the configuration and the relations between its fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "vmm/config.h"

static struct error err;

static struct machine_config machine(uint32_t vcpus, uint64_t mib)
{
	return (struct machine_config){ .vcpu_count = vcpus, .mem_size_mib = mib };
}

static int check(struct machine_config m)
{
	return config_check_machine(&m, &err);
}

static void defaults_are_one_vcpu_and_128_mib(void **state)
{
	struct vm_config c;

	memset(&c, 0xff, sizeof(c));
	config_init(&c);
	assert_int_equal(c.machine.vcpu_count, 1);
	assert_int_equal(c.machine.mem_size_mib, 128);
	assert_int_equal(c.serial.console, CONSOLE_STDIO);
	assert_int_equal(c.logger.level, LOG_LEVEL_INFO);
	assert_int_equal(c.drive_count + c.net_count, 0);
	assert_int_equal(check(c.machine), 0);
}

static void vcpus_are_1_to_32(void **state)
{
	assert_int_equal(check(machine(0, 128)), -EINVAL);
	assert_int_equal(check(machine(1, 128)), 0);
	assert_int_equal(check(machine(LIMIT_VCPUS, 128)), 0);
	assert_int_equal(check(machine(LIMIT_VCPUS + 1, 128)), -EINVAL);
	assert_non_null(strstr(err.text, "greater than 0, less than 32"));
}

static void smt_wants_one_or_an_even_number(void **state)
{
	struct machine_config m = machine(3, 128);

#if defined(__aarch64__)
	skip();
#endif
	m.smt = true;
	assert_int_equal(check(m), -EINVAL);
	m.vcpu_count = 4;
	assert_int_equal(check(m), 0);
	m.vcpu_count = 1;
	assert_int_equal(check(m), 0);
}

static void memory_is_more_than_nothing_and_below_the_limit(void **state)
{
	assert_int_equal(check(machine(1, 0)), -EINVAL);
	assert_int_equal(check(machine(1, 1)), 0);
	assert_int_equal(check(machine(1, LIMIT_MEM_MIB)), 0);
	assert_int_equal(check(machine(1, LIMIT_MEM_MIB + 1)), -EINVAL);
	assert_int_equal(check(machine(1, UINT64_MAX)), -EINVAL);
}

static void huge_pages_want_whole_pages(void **state)
{
	struct machine_config m = machine(1, 129);

	assert_int_equal(check(m), 0);
	m.huge_pages = HUGE_PAGES_2M;
	assert_int_equal(check(m), -EINVAL);
	assert_non_null(strstr(err.text, "not a multiple of the configured page size"));
	m.mem_size_mib = 130;
	assert_int_equal(check(m), 0);
}

static int check_args(const char *args)
{
	struct boot_source_config b = { .kernel_image_path = "k" };

	snprintf(b.boot_args, sizeof(b.boot_args), "%s", args);
	return config_check_boot_source(&b, &err);
}

static void command_line_is_printable_and_bounded(void **state)
{
	char args[LIMIT_CMDLINE + 1];

	snprintf(args, sizeof(args), "%0*d", LIMIT_CMDLINE - 1, 0);
	assert_int_equal(check_args(args), 0);
	snprintf(args, sizeof(args), "%0*d", LIMIT_CMDLINE, 0);
	assert_int_equal(check_args(args), -EINVAL);
	assert_int_equal(check_args("console=ttyS0 -- a=\"b c\""), 0);
	assert_int_equal(check_args("a\nb"), -EINVAL);
	assert_int_equal(check_args("\xc3\xa4"), -EINVAL);
}

static void kernel_path_is_required(void **state)
{
	struct boot_source_config b = { .kernel_image_path = "" };

	assert_int_equal(config_check_boot_source(&b, &err), -EINVAL);
}

static struct drive_config drive(const char *id, bool root)
{
	struct drive_config d = { .is_root_device = root, .path_on_host = "p" };

	snprintf(d.drive_id, sizeof(d.drive_id), "%s", id);
	return d;
}

static void one_drive_is_the_root(void **state)
{
	struct drive_config a = drive("a", true), b = drive("b", true);
	struct vm_config c;

	config_init(&c);
	assert_int_equal(config_check_drive(&c, &a, &err), 0);
	c.drives[c.drive_count++] = a;
	assert_int_equal(config_check_drive(&c, &a, &err), 0);
	assert_int_equal(config_check_drive(&c, &b, &err), -EINVAL);
	assert_string_equal(err.text, "A root block device already exists!");
	b.is_root_device = false;
	assert_int_equal(config_check_drive(&c, &b, &err), 0);
}

static void drives_have_a_path_and_a_plain_id(void **state)
{
	static const char *const bad[] = { "", "a b", "a/b", "..", "\xc3\xa4", "a\"b" };
	struct drive_config d;
	struct vm_config c;
	size_t i;

	config_init(&c);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		d = drive(bad[i], false);
		assert_int_equal(config_check_drive(&c, &d, &err), -EINVAL);
	}
	d = drive("root-fs_1", false);
	assert_int_equal(config_check_drive(&c, &d, &err), 0);
	d.path_on_host[0] = '\0';
	assert_int_equal(config_check_drive(&c, &d, &err), -EINVAL);
}

static struct net_config net(const char *id, uint8_t mac)
{
	struct net_config n = { .host_dev_name = "tap", .has_guest_mac = true,
				.guest_mac = { 6, 0, 0, 0, 0, mac } };

	snprintf(n.iface_id, sizeof(n.iface_id), "%s", id);
	return n;
}

static void addresses_are_used_once(void **state)
{
	struct net_config a = net("a", 1), b = net("b", 1);
	struct vm_config c;

	config_init(&c);
	c.nets[c.net_count++] = a;
	assert_int_equal(config_check_net(&c, &a, &err), 0);
	assert_int_equal(config_check_net(&c, &b, &err), -EINVAL);
	assert_string_equal(err.text, "The MAC address is already in use: 06:00:00:00:00:01");
	b.guest_mac[5] = 2;
	assert_int_equal(config_check_net(&c, &b, &err), 0);
	b = net("b", 1);
	b.has_guest_mac = false;
	assert_int_equal(config_check_net(&c, &b, &err), 0);
}

static void mtu_is_within_its_range(void **state)
{
	static const uint32_t mtus[] = { 0, 67, 68, 65535, 65536 };
	static const int want[] = { 0, -EINVAL, 0, 0, -EINVAL };
	struct net_config n = net("n", 1);
	struct vm_config c;
	size_t i;

	config_init(&c);
	for (i = 0; i < 5; i++) {
		n.mtu = mtus[i];
		assert_int_equal(config_check_net(&c, &n, &err), want[i]);
	}
}

static void drives_and_interfaces_are_found_by_id(void **state)
{
	struct vm_config c;

	config_init(&c);
	c.drives[c.drive_count++] = drive("a", true);
	c.drives[c.drive_count++] = drive("b", false);
	c.nets[c.net_count++] = net("n", 1);
	assert_int_equal(config_find_drive(&c, "b"), 1);
	assert_int_equal(config_find_drive(&c, "c"), -ENOENT);
	assert_int_equal(config_find_net(&c, "n"), 0);
	assert_int_equal(config_find_net(&c, ""), -ENOENT);
}

static int check_spin(uint32_t period_ms, uint32_t halt_poll_ns, uint32_t max_ns)
{
	const struct spin_config c = { .period_ms = period_ms, .halt_poll_ns = halt_poll_ns,
				       .has_halt_poll_ns = true, .halt_poll_max_ns = max_ns };

	return config_check_spin(&c, &err);
}

static void spin_policy_has_bounds(void **state)
{
	const struct spin_config defaults = SPIN_CONFIG_DEFAULTS;

	assert_int_equal(config_check_spin(&defaults, &err), 0);
	assert_int_equal(check_spin(LIMIT_SPIN_PERIOD_MIN_MS, 0, 0), 0);
	assert_int_equal(check_spin(LIMIT_SPIN_PERIOD_MIN_MS - 1, 0, 0), -EINVAL);
	assert_string_equal(err.text, "period_ms must be from 100 to 60000");
	assert_int_equal(check_spin(LIMIT_SPIN_PERIOD_MAX_MS, LIMIT_HALT_POLL_NS,
				    LIMIT_HALT_POLL_NS), 0);
	assert_int_equal(check_spin(LIMIT_SPIN_PERIOD_MAX_MS + 1, 0, 0), -EINVAL);
	assert_int_equal(check_spin(1000, LIMIT_HALT_POLL_NS + 1, 0), -EINVAL);
	assert_string_equal(err.text, "halt_poll_ns must be from 0 to 10000000");
	assert_int_equal(check_spin(1000, 0, LIMIT_HALT_POLL_NS + 1), -EINVAL);
	assert_string_equal(err.text, "halt_poll_max_ns must be from 0 to 10000000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_one_vcpu_and_128_mib),
		cmocka_unit_test(vcpus_are_1_to_32),
		cmocka_unit_test(smt_wants_one_or_an_even_number),
		cmocka_unit_test(memory_is_more_than_nothing_and_below_the_limit),
		cmocka_unit_test(huge_pages_want_whole_pages),
		cmocka_unit_test(command_line_is_printable_and_bounded),
		cmocka_unit_test(kernel_path_is_required),
		cmocka_unit_test(one_drive_is_the_root),
		cmocka_unit_test(drives_have_a_path_and_a_plain_id),
		cmocka_unit_test(addresses_are_used_once),
		cmocka_unit_test(mtu_is_within_its_range),
		cmocka_unit_test(drives_and_interfaces_are_found_by_id),
		cmocka_unit_test(spin_policy_has_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
