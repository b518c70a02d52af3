/*
 * Commands and questions of clients. Threads: main. Locks: none.
 * Not here: JSON and status codes (api/), how the VM does it (vm.c).
 */
#include "vmm/control.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

#include "vmm/arch.h"
#include "vmm/base/cleanup.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/ratelimit.h"
#include "vmm/device_thread.h"
#include "vmm/vcpu.h"
#include "vmm/vm.h"
#include "vmm/vm_cpus.h"

/* Questions */

static enum control_phase client_phase(const struct vm *vm)
{
	switch (vm->state.phase) {
	case VM_CONFIGURING:
	case VM_STARTING:
		return CONTROL_NOT_STARTED;
	case VM_RUNNING:
	case VM_PAUSING:
		return CONTROL_RUNNING;
	case VM_PAUSED:
	case VM_RESUMING:
		return CONTROL_PAUSED;
	case VM_STOPPING:
	case VM_ENDED:
	case VM_PHASES:
		break;
	}
	return CONTROL_ENDED;
}

void control_get_info(const struct vm *vm, struct control_vm_info *ret)
{
	enum control_phase phase = client_phase(vm);

	*ret = (struct control_vm_info){
		.id = vm->id,
		.phase = phase,
		.state = vm_phase_name(vm->state.phase),
		.reason = vm_end_reason_name(vm->state.reason),
		.pid = getpid(),
	};
	if (vm->started_ns)
		ret->uptime_ms = ((vm->ended_ns ? vm->ended_ns : ratelimit_now()) -
				  vm->started_ns) / 1000000;
}

const struct vm_config *control_get_config(const struct vm *vm)
{
	return &vm->config;
}

void control_get_topology(struct vm *vm, struct topology *ret)
{
	if (vm->state.phase == VM_CONFIGURING || !vm->topology.sockets)
		vm_cpus_preview(vm, ret);
	else
		*ret = vm->topology;
}

size_t control_device_count(const struct vm *vm)
{
	return vm->devices.count;
}

int control_get_device(const struct vm *vm, size_t index, struct control_device_info *ret)
{
	const struct device *d;

	if (index >= vm->devices.count)
		return -ENOENT;
	d = vm->devices.devices[index];
	*ret = (struct control_device_info){
		.id = d->id,
		.type = d->type,
		.status = vm->devices.paused ? "paused" :
			  d->ops->status     ? d->ops->status(d) :
					       "active",
		.base = d->base,
		.size = d->size,
		.gsi = d->gsi,
		.tid = d->thread ? device_thread_tid(d->thread) : 0,
		.affinity = vm_cpus_of_device(vm, d),
	};
	return 0;
}

/* Configuration */

/* Clients see a VM that is starting as one not started: what it is made of is frozen. */
static int check_configuring(const struct vm *vm, struct error *err)
{
	if (vm->state.phase == VM_CONFIGURING)
		return 0;
	return error_set(err, -EBUSY, "the VM is %s", vm_phase_name(vm->state.phase));
}

int control_put_machine(struct vm *vm, const struct machine_config *m, struct error *err)
{
	int ret = check_configuring(vm, err);

	if (ret == 0)
		ret = config_check_machine(m, err);
	if (ret == 0)
		ret = vm_cpus_check(vm, &vm->config.topology, m, err);
	if (ret == 0)
		vm->config.machine = *m;
	return ret;
}

int control_put_topology(struct vm *vm, const struct topology_config *t, struct error *err)
{
	int ret = check_configuring(vm, err);

	if (ret == 0)
		ret = vm_cpus_check(vm, t, &vm->config.machine, err);
	if (ret == 0)
		vm->config.topology = *t;
	return ret;
}

static void replace_fd(int *fd, int with)
{
	if (*fd >= 0)
		close(*fd);
	*fd = with;
}

int control_put_boot_source(struct vm *vm, const struct boot_source_config *b, struct error *err)
{
	_cleanup_close_ int kernel = -EBADF, initrd = -EBADF;
	int ret = check_configuring(vm, err);

	if (ret == 0)
		ret = config_check_boot_source(b, err);
	if (ret < 0)
		return ret;
	kernel = fd_open_file(b->kernel_image_path, false, false, "The kernel file cannot be opened",
			      err);
	if (kernel < 0)
		return kernel;
	if (b->initrd_path[0]) {
		initrd = fd_open_file(b->initrd_path, false, false,
				      "The initrd file cannot be opened due to invalid path or "
				      "invalid permissions.", err);
		if (initrd < 0)
			return initrd;
	}
	replace_fd(&vm->kernel_fd, fd_take(&kernel));
	replace_fd(&vm->initrd_fd, fd_take(&initrd));
	vm->config.boot_source = *b;
	vm->config.has_boot_source = true;
	return 0;
}

int control_put_drive(struct vm *vm, const struct drive_config *d, struct error *err)
{
	int at = config_find_drive(&vm->config, d->drive_id);
	int ret = check_configuring(vm, err);
	void *backend;

	if (ret == 0)
		ret = config_check_drive(&vm->config, d, err);
	if (ret < 0)
		return ret;
	if (at < 0 && vm->config.drive_count == LIMIT_DRIVES)
		return error_set(err, -ENOSPC, "more than %d drives", LIMIT_DRIVES);
	/* The same file again shares its lock with the one that is open. */
	ret = vm->classes->block->open(d, &backend, err);
	if (ret < 0)
		return ret;
	if (at < 0)
		at = (int)vm->config.drive_count++;
	vm->classes->block->close(vm->drive_backends[at]);
	vm->config.drives[at] = *d;
	vm->drive_backends[at] = backend;
	return 0;
}

/* A TAP can be opened once only: the same one is kept, another one replaces it. */
static bool keeps_backend(const struct vm *vm, int at, const struct net_config *n)
{
	return at >= 0 && vm->net_backends[at] &&
	       !strcmp(vm->config.nets[at].host_dev_name, n->host_dev_name);
}

int control_put_net(struct vm *vm, const struct net_config *n, struct error *err)
{
	int at = config_find_net(&vm->config, n->iface_id);
	int ret = check_configuring(vm, err);
	void *backend;

	if (ret == 0)
		ret = config_check_net(&vm->config, n, err);
	if (ret < 0)
		return ret;
	if (at < 0 && vm->config.net_count == LIMIT_NETS)
		return error_set(err, -ENOSPC, "more than %d network interfaces", LIMIT_NETS);
	if (!keeps_backend(vm, at, n)) {
		ret = vm->classes->net->open(n, &backend, err);
		if (ret < 0) {
			error_prefix(err, "Could not create the network device: ");
			return ret;
		}
		if (at < 0)
			at = (int)vm->config.net_count++;
		vm->classes->net->close(vm->net_backends[at]);
		vm->net_backends[at] = backend;
	}
	vm->config.nets[at] = *n;
	return 0;
}

int control_put_entropy(struct vm *vm, const struct entropy_config *e, struct error *err)
{
	int ret = check_configuring(vm, err);

	if (ret < 0)
		return ret;
	vm->config.entropy = *e;
	vm->config.has_entropy = true;
	return 0;
}

int control_put_serial(struct vm *vm, const struct serial_config *s, struct error *err)
{
	int ret = check_configuring(vm, err);

	if (ret == 0)
		vm->config.serial = *s;
	return ret;
}

int control_put_rtc(struct vm *vm, const struct rtc_config *r, struct error *err)
{
	int ret = check_configuring(vm, err);

	if (ret == 0)
		vm->config.rtc = *r;
	return ret;
}

int control_put_spin(struct vm *vm, const struct spin_config *s, struct error *err)
{
	int ret = check_configuring(vm, err);

	if (ret == 0)
		ret = config_check_spin(s, err);
	if (ret == 0)
		vm->config.spin = *s;
	return ret;
}

int control_put_logger(struct vm *vm, const struct logger_config *l, struct error *err)
{
	int ret = l->log_path[0] ? log_set_target(l->log_path, err) : 0;

	if (ret < 0)
		return ret;
	log_set_level(l->level);
	log_set_format(l->show_level, l->show_log_origin);
	log_set_module(l->module);
	vm->config.logger = *l;
	vm->config.has_logger = true;
	return 0;
}

int control_put_metrics(struct vm *vm, const struct metrics_config *m, struct error *err)
{
	int ret = metrics_set_target(vm->metrics, m->metrics_path, err);

	if (ret < 0)
		return ret;
	vm->config.metrics = *m;
	vm->config.has_metrics = true;
	return 0;
}

int control_put_vcpu_affinity(struct vm *vm, uint32_t index, const cpu_set_t *cpus,
			      struct error *err)
{
	return vm_cpus_pin_vcpu(vm, index, cpus, err);
}

int control_put_device_affinity(struct vm *vm, const char *name, const cpu_set_t *cpus,
				struct error *err)
{
	return vm_cpus_pin_device(vm, name, cpus, err);
}

const cpu_set_t *control_vcpu_affinity(const struct vm *vm, uint32_t index)
{
	return vm_cpus_of_vcpu(vm, index);
}

int control_device_affinity(const struct vm *vm, const char *name, const cpu_set_t **ret,
			    struct error *err)
{
	return vm_cpus_of_named(vm, name, ret, err);
}

/* A drive gets another file while the guest runs. */

struct patch_job {
	struct patch_job *next; /* of the VM's */
	struct vm *vm;
	struct event_post ask;
	struct event_post answer;
	struct device *device;
	int drive;
	struct drive_config config;
	void *backend;
	int code; /* 1 until the device has answered */
	struct error err;
	control_done_fn done;
	void *arg;
};

static void patch_unlink(struct patch_job *job)
{
	struct patch_job **at = &job->vm->patch_jobs;

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
}

static void patch_free(struct patch_job *job)
{
	if (job->code != 0)
		job->vm->classes->block->close(job->backend);
	free(job);
}

static void patch_finish(void *arg)
{
	struct patch_job *job = arg;

	if (job->code == 0)
		job->vm->config.drives[job->drive] = job->config;
	if (job->done)
		job->done(job->arg, job->code, job->code ? &job->err : NULL);
	patch_unlink(job);
	patch_free(job);
}

static void patch_exchange(void *arg)
{
	struct patch_job *job = arg;

	job->code = job->device->ops->exchange(job->device, job->backend, &job->err);
	event_loop_post_node(job->vm->loop, &job->answer, patch_finish, job);
}

/*
 * Called twice: when the VM has ended, clients are answered, while device threads
 * may still hold jobs; when the devices are gone, the jobs are freed.
 */
void control_drop_patches(struct vm *vm)
{
	struct patch_job *job, *next;
	struct error err;

	error_set(&err, -ECANCELED, "the VM has ended");
	for (job = vm->patch_jobs; job; job = job->next) {
		if (job->done)
			job->done(job->arg, -ECANCELED, &err);
		job->done = NULL;
	}
	if (vm->devices.count)
		return;
	for (job = vm->patch_jobs; job; job = next) {
		next = job->next;
		patch_free(job);
	}
	vm->patch_jobs = NULL;
}

/* Opens the new file; a negative errno leaves nothing behind but the job. */
static int patch_prepare(struct patch_job *job, const char *drive_id, const char *path)
{
	struct vm *vm = job->vm;

	job->drive = config_find_drive(&vm->config, drive_id);
	job->device = device_set_find(&vm->devices, vm->classes->block->type, drive_id);
	if (job->drive < 0 || !job->device || !job->device->ops->exchange)
		return error_set(&job->err, -ENOENT,
				 "Failed perform action on device: Device not found");
	job->config = vm->config.drives[job->drive];
	snprintf(job->config.path_on_host, sizeof(job->config.path_on_host), "%s", path);
	return vm->classes->block->open(&job->config, &job->backend, &job->err);
}

void control_patch_drive(struct vm *vm, const char *drive_id, const char *path_on_host,
			 control_done_fn done, void *arg)
{
	struct patch_job *job = calloc(1, sizeof(*job));
	struct error err;
	int ret;

	if (!job) {
		error_set(&err, -ENOMEM, "no memory for the update");
		done(arg, -ENOMEM, &err);
		return;
	}
	job->vm = vm;
	job->done = done;
	job->arg = arg;
	ret = patch_prepare(job, drive_id, path_on_host);
	if (ret < 0) {
		done(arg, ret, &job->err);
		free(job);
		return;
	}
	job->code = 1;
	job->next = vm->patch_jobs;
	vm->patch_jobs = job;
	event_loop_post_node(device_thread_loop(job->device->thread), &job->ask, patch_exchange,
			     job);
}

/* Life cycle */

void control_start(struct vm *vm, control_done_fn done, void *arg)
{
	struct error err;

	if (vm->config.has_boot_source) {
		vm_start(vm, done, arg);
		return;
	}
	error_set(&err, -EINVAL, "Cannot start microvm without kernel configuration.");
	done(arg, -EINVAL, &err);
}

void control_pause(struct vm *vm, control_done_fn done, void *arg)
{
	vm_pause(vm, done, arg);
}

void control_resume(struct vm *vm, control_done_fn done, void *arg)
{
	vm_resume(vm, done, arg);
}

int control_send_ctrl_alt_del(struct vm *vm, struct error *err)
{
	return arch_ctrl_alt_del(vm, err);
}

int control_flush_metrics(struct vm *vm, struct error *err)
{
	return metrics_flush(vm->metrics, err);
}

void control_stop(struct vm *vm, const char *reason)
{
	log_always("the VM is asked to stop: %s", reason);
	vm_end(vm, VM_END_STOPPED);
}
