/*
 * A machine that only pretends. Threads: as in the header. Locks: none.
 */
#include "tests/fakes/fake_control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct topology_host unknown_host;

void fake_control_init(struct vm *vm)
{
	memset(vm, 0, sizeof(*vm));
	config_init(&vm->config);
	vm->phase = CONTROL_NOT_STARTED;
	vm->id = "anonymous-instance";
	vm->state = "configuring";
	vm->reason = "";
	vm->spin = (struct control_spin_info){ .why = "", .halt_poll_ns = -1 };
}

size_t fake_control_called(const struct vm *vm, const char *name)
{
	size_t i, n = 0;

	for (i = 0; i < vm->call_count; i++)
		n += !strcmp(vm->calls[i], name);
	return n;
}

static int note(struct vm *vm, const char *name, struct error *err)
{
	if (vm->call_count < FAKE_CALLS)
		vm->calls[vm->call_count++] = name;
	return vm->code ? error_set(err, vm->code, "%s", vm->text ? vm->text : "told to fail") : 0;
}

static void answer(void *arg)
{
	struct vm *vm = arg;
	struct fake_answer a = vm->waiting[0];
	struct error err;

	vm->waiting_count--;
	memmove(vm->waiting, vm->waiting + 1, vm->waiting_count * sizeof(a));
	if (vm->code)
		error_set(&err, vm->code, "%s", vm->text ? vm->text : "told to fail");
	else
		vm->phase = a.then;
	a.done(a.arg, vm->code, vm->code ? &err : NULL);
}

void fake_control_release(struct vm *vm)
{
	vm->hold = false;
	while (vm->waiting_count > 0)
		answer(vm);
}

static void answer_later(struct vm *vm, const char *name, enum control_phase then,
			 control_done_fn done, void *arg)
{
	struct error ignored;

	note(vm, name, &ignored);
	vm->waiting[vm->waiting_count++] = (struct fake_answer){ vm, done, arg, then };
	if (vm->hold)
		return;
	if (!vm->loop || event_loop_post(vm->loop, answer, vm) < 0)
		answer(vm);
}

void control_get_info(const struct vm *vm, struct control_vm_info *ret)
{
	*ret = (struct control_vm_info){
		.id = vm->id,
		.phase = vm->phase,
		.state = vm->state,
		.reason = vm->reason,
		.pid = 4711,
		.uptime_ms = vm->phase == CONTROL_NOT_STARTED ? 0 : 1234,
	};
}

const struct vm_config *control_get_config(const struct vm *vm)
{
	return &vm->config;
}

size_t control_vcpu_count(const struct vm *vm)
{
	return vm->vcpu_count;
}

int control_get_vcpu(const struct vm *vm, size_t index, struct control_vcpu_info *ret)
{
	if (index >= vm->vcpu_count)
		return -ENOENT;
	*ret = vm->vcpus[index];
	return 0;
}

void control_vcpu_exits(const struct vm *vm, size_t index,
			void (*fn)(void *arg, const char *reason, uint64_t count), void *arg)
{
	if (vm->vcpus[index].exits == 0)
		return;
	fn(arg, "io", vm->vcpus[index].exits - 1);
	fn(arg, "hlt", 1);
}

void control_describe_vcpu(struct vm *vm, size_t index, control_text_fn done, void *arg)
{
	int code = index < vm->vcpu_count ? vm->code : -ENOENT;

	done(arg, code, code ? NULL : "RIP 0010:0000000000100000");
}

void control_get_spin(const struct vm *vm, struct control_spin_info *ret)
{
	*ret = vm->spin;
}

void control_get_spin_controller(const struct vm *vm, struct control_spin_controller *ret)
{
	*ret = vm->controller;
}

const struct spin_event *control_get_spin_event(const struct vm *vm, size_t index)
{
	return index < vm->spin_event_count ? &vm->spin_events[index] : NULL;
}

void control_check_host(const struct vm *vm, struct spin_checks *ret)
{
	*ret = vm->checks;
}

int control_vcpu_sample(struct vm *vm, size_t index, struct spin_sample *ret)
{
	if (index >= vm->vcpu_count)
		return -ENOENT;
	*ret = vm->sample;
	return 0;
}

void control_vcpu_stats(const struct vm *vm, size_t index, control_stat_fn fn, void *arg)
{
	static const uint64_t histogram[] = { 0, 5, 0, 0 };

	if (!vm->sample.has_kvm)
		return;
	fn(arg, "exits", &vm->sample.exits, 1);
	fn(arg, "a \"hist\"", histogram, 4);
}

void control_vm_stats(struct vm *vm, control_stat_fn fn, void *arg)
{
	static const uint64_t flushes = 3;

	if (vm->sample.has_kvm)
		fn(arg, "remote_tlb_flush", &flushes, 1);
}

size_t control_device_count(const struct vm *vm)
{
	return vm->device_count;
}

int control_get_device(const struct vm *vm, size_t index, struct control_device_info *ret)
{
	if (index >= vm->device_count)
		return -ENOENT;
	*ret = vm->devices[index];
	return 0;
}

int control_put_machine(struct vm *vm, const struct machine_config *m, struct error *err)
{
	int ret = note(vm, "put_machine", err);
	struct topology t;

	if (ret == 0)
		ret = config_check_machine(m, err);
	if (ret == 0)
		ret = topology_build(&t, &vm->config.topology, m, &unknown_host, err);
	if (ret == 0)
		vm->config.machine = *m;
	return ret;
}

int control_put_topology(struct vm *vm, const struct topology_config *c, struct error *err)
{
	int ret = note(vm, "put_topology", err);
	struct topology t;

	if (ret == 0)
		ret = topology_build(&t, c, &vm->config.machine, &unknown_host, err);
	if (ret == 0)
		vm->config.topology = *c;
	return ret;
}

void control_get_topology(struct vm *vm, struct topology *ret)
{
	(void)topology_build(ret, &vm->config.topology, &vm->config.machine, &unknown_host, NULL);
	if (vm->l3_groups)
		topology_narrow_l3(ret, vm->l3_groups);
}

int control_put_boot_source(struct vm *vm, const struct boot_source_config *b, struct error *err)
{
	int ret = note(vm, "put_boot_source", err);

	if (ret == 0)
		ret = config_check_boot_source(b, err);
	if (ret < 0)
		return ret;
	vm->config.boot_source = *b;
	vm->config.has_boot_source = true;
	return 0;
}

int control_put_drive(struct vm *vm, const struct drive_config *d, struct error *err)
{
	int at = config_find_drive(&vm->config, d->drive_id);
	int ret = note(vm, "put_drive", err);

	if (ret == 0)
		ret = config_check_drive(&vm->config, d, err);
	if (ret < 0)
		return ret;
	if (at < 0 && vm->config.drive_count == LIMIT_DRIVES)
		return error_set(err, -ENOSPC, "more than %d drives", LIMIT_DRIVES);
	vm->config.drives[at < 0 ? (int)vm->config.drive_count++ : at] = *d;
	return 0;
}

int control_put_net(struct vm *vm, const struct net_config *n, struct error *err)
{
	int at = config_find_net(&vm->config, n->iface_id);
	int ret = note(vm, "put_net", err);

	if (ret == 0)
		ret = config_check_net(&vm->config, n, err);
	if (ret < 0)
		return ret;
	if (at < 0 && vm->config.net_count == LIMIT_NETS)
		return error_set(err, -ENOSPC, "more than %d network interfaces", LIMIT_NETS);
	vm->config.nets[at < 0 ? (int)vm->config.net_count++ : at] = *n;
	return 0;
}

int control_put_entropy(struct vm *vm, const struct entropy_config *e, struct error *err)
{
	int ret = note(vm, "put_entropy", err);

	if (ret == 0) {
		vm->config.entropy = *e;
		vm->config.has_entropy = true;
	}
	return ret;
}

int control_put_serial(struct vm *vm, const struct serial_config *s, struct error *err)
{
	int ret = note(vm, "put_serial", err);

	if (ret == 0)
		vm->config.serial = *s;
	return ret;
}

int control_put_rtc(struct vm *vm, const struct rtc_config *r, struct error *err)
{
	int ret = note(vm, "put_rtc", err);

	if (ret == 0)
		vm->config.rtc = *r;
	return ret;
}

int control_put_spin(struct vm *vm, const struct spin_config *s, struct error *err)
{
	int ret = note(vm, "put_spin", err);

	if (ret == 0)
		ret = config_check_spin(s, err);
	if (ret == 0)
		vm->config.spin = *s;
	return ret;
}

int control_put_logger(struct vm *vm, const struct logger_config *l, struct error *err)
{
	int ret = note(vm, "put_logger", err);

	if (ret == 0) {
		vm->config.logger = *l;
		vm->config.has_logger = true;
	}
	return ret;
}

int control_put_metrics(struct vm *vm, const struct metrics_config *m, struct error *err)
{
	int ret = note(vm, "put_metrics", err);

	if (ret == 0) {
		vm->config.metrics = *m;
		vm->config.has_metrics = true;
	}
	return ret;
}

static int note_pinned(struct vm *vm, const char *call, const char *name, const cpu_set_t *cpus,
		       struct error *err)
{
	int ret = note(vm, call, err);

	if (ret < 0)
		return ret;
	vm->pinned = *cpus;
	snprintf(vm->pinned_name, sizeof(vm->pinned_name), "%s", name);
	return 0;
}

int control_put_vcpu_affinity(struct vm *vm, uint32_t index, const cpu_set_t *cpus,
			      struct error *err)
{
	char name[16];

	snprintf(name, sizeof(name), "vcpu %u", index);
	return note_pinned(vm, "put_vcpu_affinity", name, cpus, err);
}

int control_put_device_affinity(struct vm *vm, const char *name, const cpu_set_t *cpus,
				struct error *err)
{
	return note_pinned(vm, "put_device_affinity", name, cpus, err);
}

const cpu_set_t *control_vcpu_affinity(const struct vm *vm, uint32_t index)
{
	char name[16];

	snprintf(name, sizeof(name), "vcpu %u", index);
	return strcmp(name, vm->pinned_name) ? NULL : &vm->pinned;
}

int control_device_affinity(const struct vm *vm, const char *name, const cpu_set_t **ret,
			    struct error *err)
{
	*ret = strcmp(name, vm->pinned_name) ? NULL : &vm->pinned;
	return vm->code ? error_set(err, vm->code, "told to fail") : 0;
}

void control_patch_drive(struct vm *vm, const char *drive_id, const char *path_on_host,
			 control_done_fn done, void *arg)
{
	snprintf(vm->patched_path, sizeof(vm->patched_path), "%s", path_on_host);
	answer_later(vm, "patch_drive", vm->phase, done, arg);
}

void control_start(struct vm *vm, control_done_fn done, void *arg)
{
	answer_later(vm, "start", CONTROL_RUNNING, done, arg);
}

void control_pause(struct vm *vm, control_done_fn done, void *arg)
{
	answer_later(vm, "pause", CONTROL_PAUSED, done, arg);
}

void control_resume(struct vm *vm, control_done_fn done, void *arg)
{
	answer_later(vm, "resume", CONTROL_RUNNING, done, arg);
}

int control_send_ctrl_alt_del(struct vm *vm, struct error *err)
{
	return note(vm, "ctrl_alt_del", err);
}

int control_flush_metrics(struct vm *vm, struct error *err)
{
	return note(vm, "flush_metrics", err);
}

void control_stop(struct vm *vm, const char *reason)
{
	struct error ignored;

	note(vm, "stop", &ignored);
	snprintf(vm->stop_reason, sizeof(vm->stop_reason), "%s", reason);
}
