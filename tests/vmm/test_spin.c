/* The choice of a spin mode, halt polling at the start, the host's small files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "fake_kvm.h"
#include "host_tree.h"
#include "vm_rig.h"
#include "vmm/host_file.h"
#include "vmm/spin.h"

static enum spin_mode choose(enum spin_mode asked, uint32_t vcpus, uint32_t allowed,
			     uint32_t online)
{
	const struct spin_cpus cpus = { vcpus, allowed, online };
	char why[SPIN_WHY] = "";
	enum spin_mode mode = spin_choose(asked, &cpus, why);

	assert_true(strlen(why) > 0);
	return mode;
}

static void what_is_asked_for_by_name_is_chosen(void **state)
{
	assert_int_equal(choose(SPIN_SHARED, 1, 2, 64), SPIN_SHARED);
	assert_int_equal(choose(SPIN_DEDICATED, 8, 2, 2), SPIN_DEDICATED);
}

static void auto_is_shared_where_cpus_cannot_hold_all_vcpus(void **state)
{
	assert_int_equal(choose(SPIN_AUTO, 4, 2, 2), SPIN_SHARED);
	assert_int_equal(choose(SPIN_AUTO, 4, 3, 64), SPIN_SHARED);
	assert_int_equal(choose(SPIN_AUTO, 1, 0, 64), SPIN_SHARED);
}

static void auto_is_shared_where_cpus_are_everybodys(void **state)
{
	assert_int_equal(choose(SPIN_AUTO, 1, 2, 2), SPIN_SHARED);
	assert_int_equal(choose(SPIN_AUTO, 64, 64, 64), SPIN_SHARED);
	/* a pool that other VMs are confined to as well */
	assert_int_equal(choose(SPIN_AUTO, 2, 60, 64), SPIN_SHARED);
	assert_int_equal(choose(SPIN_AUTO, 2, 4, 64), SPIN_SHARED);
}

static void auto_is_dedicated_where_cpus_are_set_apart(void **state)
{
	assert_int_equal(choose(SPIN_AUTO, 2, 2, 64), SPIN_DEDICATED);
	assert_int_equal(choose(SPIN_AUTO, 2, 3, 64), SPIN_DEDICATED);
	assert_int_equal(choose(SPIN_AUTO, 1, 1, 2), SPIN_DEDICATED);
}

static struct fake_cap_calls cap_calls(unsigned capability)
{
	struct fake_cap_calls c;

	fake_kvm_get_cap_calls(capability, &c);
	return c;
}

static void a_start_notes_mode_and_controls(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(r->vm->spin.mode, SPIN_AUTO);
	r->vm->config.spin.mode = SPIN_SHARED;
	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(r->vm->spin.mode, SPIN_SHARED);
	assert_int_equal(r->vm->spin.control_count, 1);
	assert_string_equal(r->vm->spin.controls[0].name, "fake_exits");
	assert_int_equal(cap_calls(KVM_CAP_HALT_POLL).calls, 0);
}

static void halt_polling_is_set_where_it_was_asked_for(void **state)
{
	struct vm_rig *r = *state;

	r->vm->config.spin.has_halt_poll_ns = true;
	r->vm->config.spin.halt_poll_ns = 50000;
	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(cap_calls(KVM_CAP_HALT_POLL).calls, 1);
	assert_int_equal(cap_calls(KVM_CAP_HALT_POLL).argument, 50000);
	assert_int_equal(r->vm->spin.halt_poll_ns, 50000);
}

static void a_host_without_halt_polling_refuses_the_start(void **state)
{
	struct vm_rig *r = *state;

	r->vm->config.spin.has_halt_poll_ns = true;
	fake_kvm_set_cap(KVM_CAP_HALT_POLL, 0);
	assert_int_equal(vm_rig_start(r), -EINVAL);
	fake_kvm_set_cap(KVM_CAP_HALT_POLL, 1);
	assert_non_null(strstr(r->err.text, "halt_poll_ns"));
	assert_int_equal(vm_rig_start(r), 0);
}

static void a_second_start_begins_with_no_controls(void **state)
{
	struct vm_rig *r = *state;

	fake_kvm_fail(KVM_CREATE_VCPU, 1, ENOMEM);
	assert_int_equal(vm_rig_start(r), -ENOMEM);
	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(r->vm->spin.control_count, 1);
}

static void no_more_controls_than_fit_are_noted(void **state)
{
	struct spin s;
	unsigned i;

	spin_init(&s);
	for (i = 0; i < SPIN_CONTROLS + 2; i++)
		spin_note(&s, "x", false, SPIN_NO, NULL);
	assert_int_equal(s.control_count, SPIN_CONTROLS);
}

/* Files */

static const char *folder;

static void put_file(const char *text)
{
	assert_true(host_tree_put("/f", text));
}

static int make_folder(void **state)
{
	folder = host_tree_new();
	return folder ? 0 : -1;
}

static int remove_folder(void **state)
{
	host_tree_free();
	return 0;
}

static void a_number_of_the_hosts_is_read(void **state)
{
	int64_t n = 0;

	put_file("200000\n");
	assert_int_equal(host_file_number(folder, "/f", &n), 0);
	assert_int_equal(n, 200000);
	put_file("-1\n");
	assert_int_equal(host_file_number(folder, "/f", &n), 0);
	assert_int_equal(n, -1);
}

static void what_is_no_number_is_an_error(void **state)
{
	int64_t n;

	put_file("");
	assert_int_equal(host_file_number(folder, "/f", &n), -EINVAL);
	put_file("Y\n");
	assert_int_equal(host_file_number(folder, "/f", &n), -EINVAL);
	put_file("12x\n");
	assert_int_equal(host_file_number(folder, "/f", &n), -EINVAL);
	put_file("99999999999999999999\n");
	assert_int_equal(host_file_number(folder, "/f", &n), -EINVAL);
	assert_int_equal(host_file_number(folder, "/g", &n), -ENOENT);
	assert_int_equal(host_file_number(folder, "/", &n), -EISDIR);
}

static void a_long_file_is_cut_off(void **state)
{
	char text[5];

	put_file("abcdefgh\n");
	assert_int_equal(host_file_read(folder, "/f", text, sizeof(text)), 0);
	assert_string_equal(text, "abcd");
	put_file("a\n\n");
	assert_int_equal(host_file_read(folder, "/f", text, sizeof(text)), 0);
	assert_string_equal(text, "a");
}

int main(void)
{
#define VM(name) cmocka_unit_test_setup_teardown(name, vm_rig_setup, vm_rig_teardown)
#define FILES(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_for_by_name_is_chosen),
		cmocka_unit_test(auto_is_shared_where_cpus_cannot_hold_all_vcpus),
		cmocka_unit_test(auto_is_shared_where_cpus_are_everybodys),
		cmocka_unit_test(auto_is_dedicated_where_cpus_are_set_apart),
		VM(a_start_notes_mode_and_controls),
		VM(halt_polling_is_set_where_it_was_asked_for),
		VM(a_host_without_halt_polling_refuses_the_start),
		VM(a_second_start_begins_with_no_controls),
		cmocka_unit_test(no_more_controls_than_fit_are_noted),
		FILES(a_number_of_the_hosts_is_read),
		FILES(what_is_no_number_is_an_error),
		FILES(a_long_file_is_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
