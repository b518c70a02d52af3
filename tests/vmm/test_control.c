/*
 * Commands and questions of clients: what is taken, what is refused and keeps
 * the configuration, what is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_arch.h"
#include "fake_device.h"
#include "vm_rig.h"
#include "vmm/control.h"
#include "vmm/device_thread.h"
#include "vmm/vcpu.h"

#define NOWHERE 0x999

static struct error err;
static char folder[64];
static char kernel[96];

static int setup(void **state)
{
	struct vm_rig *r;

	if (vm_rig_setup(state) < 0)
		return -1;
	r = *state;
	r->vm->config.machine.vcpu_count = 2;
	fake_arch.build = NULL;
	memset(&err, 0, sizeof(err));
	return 0;
}

static void text(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from);
}

static int put_boot(struct vm_rig *r, const char *path, const char *initrd, const char *args)
{
	struct boot_source_config b = { .has_boot_args = args != NULL };

	text(b.kernel_image_path, sizeof(b.kernel_image_path), path);
	text(b.initrd_path, sizeof(b.initrd_path), initrd);
	text(b.boot_args, sizeof(b.boot_args), args ? args : "");
	return control_put_boot_source(r->vm, &b, &err);
}

static int put_drive(struct vm_rig *r, const char *id, bool root)
{
	struct drive_config d = { .is_root_device = root };

	text(d.drive_id, sizeof(d.drive_id), id);
	text(d.path_on_host, sizeof(d.path_on_host), "image");
	return control_put_drive(r->vm, &d, &err);
}

static int put_net(struct vm_rig *r, const char *id, uint8_t mac)
{
	struct net_config n = { .guest_mac = { 2, 0, 0, 0, 0, mac }, .has_guest_mac = true };

	text(n.iface_id, sizeof(n.iface_id), id);
	text(n.host_dev_name, sizeof(n.host_dev_name), "tap0");
	return control_put_net(r->vm, &n, &err);
}

/* Configuration */

static void a_machine_is_taken_whole_or_not(void **state)
{
	struct vm_rig *r = *state;
	struct machine_config good = { .vcpu_count = 3, .mem_size_mib = 64 };
	struct machine_config bad = { .vcpu_count = 33, .mem_size_mib = 128 };

	assert_int_equal(control_put_machine(r->vm, &good, &err), 0);
	assert_int_equal(control_put_machine(r->vm, &bad, &err), -EINVAL);
	assert_int_equal(control_get_config(r->vm)->machine.vcpu_count, 3);
	assert_int_equal(control_get_config(r->vm)->machine.mem_size_mib, 64);
}

static void a_kernel_that_cannot_be_opened_keeps_the_old_one(void **state)
{
	struct vm_rig *r = *state;
	int fd;

	assert_int_equal(put_boot(r, kernel, "", "a"), 0);
	fd = r->vm->kernel_fd;
	assert_int_equal(put_boot(r, "/nonexistent", "", "b"), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent"));
	assert_int_equal(put_boot(r, folder, "", "b"), -EISDIR);
	assert_int_equal(put_boot(r, "/dev/null", "", "b"), -EINVAL);
	assert_int_equal(r->vm->kernel_fd, fd);
	assert_string_equal(control_get_config(r->vm)->boot_source.boot_args, "a");
}

static void an_initrd_that_cannot_be_opened_keeps_all_as_it_was(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(put_boot(r, kernel, "/nonexistent", NULL), -ENOENT);
	assert_string_equal(err.text, "The initrd file cannot be opened due to invalid path or invalid "
				      "permissions. No such file or directory (os error 2) /nonexistent");
	assert_int_equal(r->vm->kernel_fd, -EBADF);
	assert_false(control_get_config(r->vm)->has_boot_source);
}

static void a_boot_source_given_again_leaks_no_descriptor(void **state)
{
	struct vm_rig *r = *state;
	unsigned fds;
	int i;

	assert_int_equal(put_boot(r, kernel, kernel, NULL), 0);
	fds = vm_rig_open_fds();
	for (i = 0; i < 20; i++)
		assert_int_equal(put_boot(r, kernel, kernel, NULL), 0);
	assert_int_equal(vm_rig_open_fds(), fds);
	assert_int_equal(put_boot(r, kernel, "", NULL), 0);
	assert_int_equal(vm_rig_open_fds(), fds - 1);
}

static void a_command_line_has_a_longest_length(void **state)
{
	struct vm_rig *r = *state;
	char args[LIMIT_CMDLINE + 1];

	memset(args, 'a', sizeof(args));
	args[LIMIT_CMDLINE - 1] = '\0';
	assert_int_equal(put_boot(r, kernel, "", args), 0);
	args[LIMIT_CMDLINE - 1] = 'a';
	args[LIMIT_CMDLINE] = '\0';
	assert_int_equal(put_boot(r, kernel, "", args), -EINVAL);
	assert_non_null(strstr(err.text, "boot_args"));
}

static void a_drive_given_again_replaces_the_first(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(put_drive(r, "a", false), 0);
	assert_int_equal(put_drive(r, "b", false), 0);
	assert_int_equal(put_drive(r, "a", true), 0);
	assert_int_equal(control_get_config(r->vm)->drive_count, 2);
	assert_true(control_get_config(r->vm)->drives[0].is_root_device);
	assert_int_equal(r->backends_open, 2);
}

static void a_second_root_drive_is_refused(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(put_drive(r, "a", true), 0);
	assert_int_equal(put_drive(r, "b", true), -EINVAL);
	assert_string_equal(err.text, "A root block device already exists!");
	assert_int_equal(control_get_config(r->vm)->drive_count, 1);
	assert_int_equal(put_drive(r, "a", true), 0);
}

static void a_drive_that_cannot_be_opened_is_not_added(void **state)
{
	struct vm_rig *r = *state;

	r->open_code = -ENOENT;
	assert_int_equal(put_drive(r, "a", false), -ENOENT);
	assert_int_equal(control_get_config(r->vm)->drive_count, 0);
}

/* The old file was closed before the new one was tried: the start opens it again. */
static void a_drive_whose_replacement_fails_still_starts(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(put_drive(r, "a", false), 0);
	r->open_code = -EACCES;
	assert_int_equal(put_drive(r, "a", true), -EACCES);
	assert_false(control_get_config(r->vm)->drives[0].is_root_device);
	r->open_code = 0;
	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(r->backends_open, 1);
}

static void drives_have_a_limit(void **state)
{
	struct vm_rig *r = *state;
	char id[16];
	int i;

	for (i = 0; i < LIMIT_DRIVES; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		assert_int_equal(put_drive(r, id, false), 0);
	}
	assert_int_equal(put_drive(r, "more", false), -ENOSPC);
	assert_int_equal(put_drive(r, "d3", false), 0);
	assert_int_equal(r->backends_open, LIMIT_DRIVES);
}

static void networks_have_a_limit(void **state)
{
	struct vm_rig *r = *state;
	char id[16];
	int i;

	for (i = 0; i < LIMIT_NETS; i++) {
		snprintf(id, sizeof(id), "eth%d", i);
		assert_int_equal(put_net(r, id, (uint8_t)i), 0);
	}
	assert_int_equal(put_net(r, "more", 99), -ENOSPC);
	assert_int_equal(control_get_config(r->vm)->net_count, LIMIT_NETS);
}

static void two_networks_have_two_addresses(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(put_net(r, "eth0", 1), 0);
	assert_int_equal(put_net(r, "eth1", 1), -EINVAL);
	assert_non_null(strstr(err.text, "02:00:00:00:00:01"));
	assert_int_equal(put_net(r, "eth0", 1), 0);
}

static void metrics_have_one_target(void **state)
{
	struct vm_rig *r = *state;
	struct metrics_config m = { 0 };
	char path[128];

	snprintf(path, sizeof(path), "%s/metrics", folder);
	text(m.metrics_path, sizeof(m.metrics_path), path);
	assert_int_equal(control_put_metrics(r->vm, &m, &err), 0);
	assert_int_equal(control_put_metrics(r->vm, &m, &err), -EALREADY);
	assert_true(control_get_config(r->vm)->has_metrics);
	assert_int_equal(control_flush_metrics(r->vm, &err), 0);
}

static void a_log_file_that_cannot_be_made_keeps_the_logger(void **state)
{
	struct vm_rig *r = *state;
	struct logger_config l = { .level = LOG_LEVEL_DEBUG };

	text(l.log_path, sizeof(l.log_path), "/nonexistent/log");
	assert_int_equal(control_put_logger(r->vm, &l, &err), -ENOENT);
	assert_false(control_get_config(r->vm)->has_logger);
	assert_false(log_enabled(LOG_LEVEL_ERROR));
}

/* Life cycle */

static void a_start_needs_a_kernel(void **state)
{
	struct vm_rig *r = *state;

	control_start(r->vm, vm_rig_done, r);
	assert_int_equal(r->code, -EINVAL);
	assert_string_equal(r->err.text, "Cannot start microvm without kernel configuration.");
	assert_int_equal(r->vm->state.phase, VM_CONFIGURING);
}

/* Clients see "not started" until it runs, and could change it under our hands. */
static void the_configuration_is_frozen_during_the_start(void **state)
{
	struct vm_rig *r = *state;
	struct machine_config m = { .vcpu_count = 1, .mem_size_mib = 64 };
	struct entropy_config e = { 0 };
	struct serial_config s = { 0 };
	struct rtc_config rtc = { 0 };

	vm_start(r->vm, vm_rig_done, r);
	assert_int_equal(control_put_machine(r->vm, &m, &err), -EBUSY);
	assert_int_equal(put_boot(r, kernel, "", NULL), -EBUSY);
	assert_int_equal(put_drive(r, "a", false), -EBUSY);
	assert_int_equal(put_net(r, "eth0", 1), -EBUSY);
	assert_int_equal(control_put_entropy(r->vm, &e, &err), -EBUSY);
	assert_int_equal(control_put_serial(r->vm, &s, &err), -EBUSY);
	assert_int_equal(control_put_rtc(r->vm, &rtc, &err), -EBUSY);
	assert_non_null(strstr(err.text, "starting"));
	assert_int_equal(r->backends_open, 0);
	vm_rig_run_until(r, 1);
	assert_int_equal(control_vcpu_count(r->vm), 2);
}

static enum control_phase phase_of(struct vm_rig *r, const char *state)
{
	struct control_vm_info info;

	control_get_info(r->vm, &info);
	assert_string_equal(info.state, state);
	return info.phase;
}

static void clients_see_each_phase(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(phase_of(r, "configuring"), CONTROL_NOT_STARTED);
	assert_int_equal(put_boot(r, kernel, "", NULL), 0);
	control_start(r->vm, vm_rig_done, r);
	assert_int_equal(phase_of(r, "starting"), CONTROL_NOT_STARTED);
	vm_rig_run_until(r, 1);
	assert_int_equal(phase_of(r, "running"), CONTROL_RUNNING);
	control_pause(r->vm, vm_rig_done, r);
	assert_int_equal(phase_of(r, "pausing"), CONTROL_RUNNING);
	vm_rig_run_until(r, 2);
	assert_int_equal(phase_of(r, "paused"), CONTROL_PAUSED);
	assert_int_equal(vm_rig_resume(r), 0);
	control_stop(r->vm, "test");
	assert_int_equal(phase_of(r, "stopping"), CONTROL_ENDED);
	vm_rig_wait_end(r);
	assert_int_equal(phase_of(r, "ended"), CONTROL_ENDED);
}

static void info_tells_who_and_how_long(void **state)
{
	struct vm_rig *r = *state;
	struct control_vm_info info;

	control_get_info(r->vm, &info);
	assert_string_equal(info.id, "test");
	assert_string_equal(info.reason, "");
	assert_int_equal(info.pid, getpid());
	assert_int_equal(info.uptime_ms, 0);
	assert_int_equal(vm_rig_start(r), 0);
	vm_rig_run_for(r, 20);
	control_get_info(r->vm, &info);
	assert_in_range(info.uptime_ms, 20, 20000);
	vm_rig_end(r);
	control_get_info(r->vm, &info);
	assert_string_equal(info.reason, "stopped");
}

/* Not since a start that failed. */
static void uptime_is_zero_after_a_failed_start(void **state)
{
	struct vm_rig *r = *state;
	struct control_vm_info info;

	fake_arch.load_code = -EINVAL;
	assert_int_equal(vm_rig_start(r), -EINVAL);
	vm_rig_run_for(r, 5);
	control_get_info(r->vm, &info);
	assert_int_equal(info.uptime_ms, 0);
}

static void vcpus_are_there_only_while_the_guest_is(void **state)
{
	struct vm_rig *r = *state;
	struct control_vcpu_info info;

	assert_int_equal(control_vcpu_count(r->vm), 0);
	assert_int_equal(control_get_vcpu(r->vm, 0, &info), -ENOENT);
	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(control_vcpu_count(r->vm), 2);
	assert_int_equal(control_get_vcpu(r->vm, 1, &info), 0);
	assert_int_equal(info.index, 1);
	assert_string_equal(info.state, "running");
	assert_true(info.tid > 0);
	assert_int_equal(control_get_vcpu(r->vm, 2, &info), -ENOENT);
	assert_int_equal(vm_rig_pause(r), 0);
	assert_int_equal(control_get_vcpu(r->vm, 0, &info), 0);
	assert_string_equal(info.state, "paused");
}

struct seen {
	uint64_t io, mmio, interrupted, other;
};

static void see(void *arg, const char *reason, uint64_t count)
{
	struct seen *s = arg;

	*(!strcmp(reason, "io")            ? &s->io :
	  !strcmp(reason, "mmio")          ? &s->mmio :
	  !strcmp(reason, "interrupted")   ? &s->interrupted :
					     &s->other) += count;
}

static void exits_are_told_by_reason_and_in_sum(void **state)
{
	static const struct fake_step steps[] = {
		FAKE_OUT(NOWHERE, 1, 0), FAKE_IN(NOWHERE, 1), FAKE_MMIO_W(0xe0000000, 4, 0),
		FAKE_WAIT(),
	};
	struct vm_rig *r = *state;
	struct control_vcpu_info info;
	struct seen seen = { 0 };

	FAKE_SCRIPT(0, steps);
	assert_int_equal(vm_rig_start(r), 0);
	vm_rig_run_for(r, 20);
	assert_int_equal(vm_rig_pause(r), 0);
	control_vcpu_exits(r->vm, 0, see, &seen);
	control_get_vcpu(r->vm, 0, &info);
	assert_int_equal(seen.io, 2);
	assert_int_equal(seen.mmio, 1);
	assert_int_equal(seen.interrupted, 1);
	assert_int_equal(info.exits, 4);
	control_vcpu_exits(r->vm, 7, see, &seen);
}

/* Devices */

static struct fake_device *drive;

static int build_drive(struct vm *vm, struct error *e)
{
	drive = fake_device_new("a");
	drive->own_thread = true;
	drive->dev.base = 0xd0000000;
	drive->dev.size = 0x1000;
	drive->dev.gsi = 5;
	return device_set_add(&vm->devices, &drive->dev, e);
}

static void devices_are_told_with_their_place_and_thread(void **state)
{
	struct vm_rig *r = *state;
	struct control_device_info info;

	fake_arch.build = build_drive;
	assert_int_equal(control_device_count(r->vm), 0);
	assert_int_equal(vm_rig_start(r), 0);
	assert_int_equal(control_device_count(r->vm), 1);
	assert_int_equal(control_get_device(r->vm, 0, &info), 0);
	assert_string_equal(info.id, "a");
	assert_string_equal(info.status, "active");
	assert_int_equal(info.base, 0xd0000000);
	assert_int_equal(info.gsi, 5);
	assert_int_equal(control_get_device(r->vm, 1, &info), -ENOENT);
	vm_rig_pause(r);
	assert_int_equal(info.tid, device_thread_tid(drive->dev.thread));
	assert_int_equal(control_get_device(r->vm, 0, &info), 0);
	assert_string_equal(info.status, "paused");
}

static struct {
	void *backend;
	pid_t tid;
	int code;
	unsigned slow_us;
} exchanged;

static int exchange(struct device *d, void *backend, struct error *e)
{
	usleep(exchanged.slow_us);
	exchanged.tid = gettid();
	exchanged.backend = backend;
	if (exchanged.code < 0)
		return error_set(e, exchanged.code, "the drive does not take it");
	free(backend); /* it is the device's now, and this one needs it no longer */
	return 0;
}

/* A running VM with a drive "a" that can be exchanged. */
static void start_with_a_drive(struct vm_rig *r, int code)
{
	static struct device_ops ops;

	fake_arch.build = build_drive;
	exchanged.code = code;
	exchanged.slow_us = 0;
	exchanged.backend = NULL;
	assert_int_equal(put_drive(r, "a", true), 0);
	assert_int_equal(vm_rig_start(r), 0);
	ops = *drive->dev.ops;
	ops.exchange = exchange;
	drive->dev.ops = &ops;
}

static void a_drive_is_exchanged_on_its_own_thread(void **state)
{
	struct vm_rig *r = *state;

	start_with_a_drive(r, 0);
	control_patch_drive(r->vm, "a", "other", vm_rig_done, r);
	assert_int_equal(r->answers, 1); /* the start's: this one does not wait */
	vm_rig_run_until(r, 2);
	assert_int_equal(r->code, 0);
	assert_non_null(exchanged.backend);
	assert_int_equal(exchanged.tid, device_thread_tid(drive->dev.thread));
	assert_string_equal(control_get_config(r->vm)->drives[0].path_on_host, "other");
	r->backends_open--; /* freed by exchange() */
}

static void a_drive_that_refuses_its_exchange_keeps_its_path(void **state)
{
	struct vm_rig *r = *state;
	unsigned open;

	start_with_a_drive(r, -EBUSY);
	open = r->backends_open;
	control_patch_drive(r->vm, "a", "other", vm_rig_done, r);
	vm_rig_run_until(r, 2);
	assert_int_equal(r->code, -EBUSY);
	assert_non_null(strstr(r->err.text, "does not take it"));
	assert_string_equal(control_get_config(r->vm)->drives[0].path_on_host, "image");
	assert_int_equal(r->backends_open, open);
}

/* The drive is slow to answer, and the end does not wait for it. */
static void an_exchange_that_the_end_overtakes_is_answered_once(void **state)
{
	struct vm_rig *r = *state;

	start_with_a_drive(r, -EBUSY);
	exchanged.slow_us = 100000;
	control_patch_drive(r->vm, "a", "other", vm_rig_done, r);
	vm_rig_end(r);
	assert_int_equal(r->answers, 2);
	assert_int_equal(r->code, -ECANCELED);
}

static void only_a_drive_there_is_can_be_exchanged(void **state)
{
	struct vm_rig *r = *state;

	start_with_a_drive(r, 0);
	control_patch_drive(r->vm, "b", "other", vm_rig_done, r);
	assert_int_equal(r->code, -ENOENT);
	r->open_code = -EACCES;
	control_patch_drive(r->vm, "a", "other", vm_rig_done, r);
	assert_int_equal(r->code, -EACCES);
	assert_null(exchanged.backend);
	assert_string_equal(control_get_config(r->vm)->drives[0].path_on_host, "image");
}

static void a_machine_without_a_keyboard_says_so(void **state)
{
	struct vm_rig *r = *state;

	assert_int_equal(control_send_ctrl_alt_del(r->vm, &err), -ENOTSUP);
}

static int make_files(void **state)
{
	FILE *file;

	snprintf(folder, sizeof(folder), "/tmp/lull-control-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(kernel, sizeof(kernel), "%s/kernel", folder);
	file = fopen(kernel, "w");
	return file && fclose(file) == 0 ? 0 : -1;
}

static int remove_files(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/metrics", folder);
	unlink(path);
	unlink(kernel);
	return rmdir(folder);
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, setup, vm_rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(a_machine_is_taken_whole_or_not),
		WITH_RIG(a_kernel_that_cannot_be_opened_keeps_the_old_one),
		WITH_RIG(an_initrd_that_cannot_be_opened_keeps_all_as_it_was),
		WITH_RIG(a_boot_source_given_again_leaks_no_descriptor),
		WITH_RIG(a_command_line_has_a_longest_length),
		WITH_RIG(a_drive_given_again_replaces_the_first),
		WITH_RIG(a_second_root_drive_is_refused),
		WITH_RIG(a_drive_that_cannot_be_opened_is_not_added),
		WITH_RIG(a_drive_whose_replacement_fails_still_starts),
		WITH_RIG(drives_have_a_limit),
		WITH_RIG(networks_have_a_limit),
		WITH_RIG(two_networks_have_two_addresses),
		WITH_RIG(metrics_have_one_target),
		WITH_RIG(a_log_file_that_cannot_be_made_keeps_the_logger),
		WITH_RIG(a_start_needs_a_kernel),
		WITH_RIG(the_configuration_is_frozen_during_the_start),
		WITH_RIG(clients_see_each_phase),
		WITH_RIG(info_tells_who_and_how_long),
		WITH_RIG(uptime_is_zero_after_a_failed_start),
		WITH_RIG(vcpus_are_there_only_while_the_guest_is),
		WITH_RIG(exits_are_told_by_reason_and_in_sum),
		WITH_RIG(devices_are_told_with_their_place_and_thread),
		WITH_RIG(a_drive_is_exchanged_on_its_own_thread),
		WITH_RIG(a_drive_that_refuses_its_exchange_keeps_its_path),
		WITH_RIG(an_exchange_that_the_end_overtakes_is_answered_once),
		WITH_RIG(only_a_drive_there_is_can_be_exchanged),
		WITH_RIG(a_machine_without_a_keyboard_says_so),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, make_files, remove_files);
}
