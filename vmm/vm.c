/*
 * The VM: built in numbered steps, unmade in reverse; start, pause, resume and
 * end as exchanges between the main thread, vCPU threads and device threads.
 *
 * Threads: main, except the functions that vm.h says vCPU threads call; those
 * only post to the main loop. Locks: none.
 * Not here: what clients may ask and when (control.c), phases (vm_state.c).
 */
#include "vmm/vm.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "vmm/arch.h"
#include "vmm/base/bits.h"
#include "vmm/base/log.h"
#include "vmm/base/ratelimit.h"
#include "vmm/host_cpu.h"
#include "vmm/vcpu.h"
#include "vmm/vm_cpus.h"

static void on_deadline(void *arg);

struct vm *vm_new(const char *id, struct event_loop *loop, const struct kvm_ops *ops,
		  const struct device_classes *classes, struct metrics *metrics,
		  struct error *err)
{
	struct vm *vm = calloc(1, sizeof(*vm));

	if (!vm) {
		error_set(err, -ENOMEM, "no memory for the VM");
		return NULL;
	}
	vm->id = id;
	vm->loop = loop;
	vm->kvm_ops = ops;
	vm->classes = classes;
	vm->metrics = metrics;
	vm->kernel_fd = -EBADF;
	vm->initrd_fd = -EBADF;
	vm->host_cpus = HOST_CPU_ROOT;
	vm->kvm.fd = -EBADF;
	vm->fd.fd = -EBADF;
	config_set_defaults(&vm->config);
	vm_state_init(&vm->state);
	device_set_init(&vm->devices, loop);
	spin_init(&vm->spin);
	spin_observer_init(&vm->observer);
	bus_init(&vm->bus);
	kvm_coalesced_init(&vm->coalesced);
	vm_safepoints_init(&vm->safepoints);
	vm->deadline = event_loop_add_timer(loop, on_deadline, vm);
	if (!vm->deadline) {
		error_set(err, -ENOMEM, "no memory for the VM");
		return vm_free(vm);
	}
	return vm;
}

/* Steps of construction. Each may fail half-way; vm_unmake() takes any state. */

static int make_kvm(struct vm *vm, struct error *err)
{
	int ret = kvm_open(vm->kvm_ops, &vm->kvm, err);

	if (ret == 0)
		ret = arch_check_host(vm, err);
	if (ret < 0)
		return ret;
	ret = kvm_create_vm(vm->kvm, &vm->fd);
	if (ret < 0)
		return error_set_errno(err, ret, "KVM_CREATE_VM");
	return spin_begin(vm, err);
}

static int check_host_memory(uint64_t bytes, struct error *err)
{
	struct sysinfo info;
	uint64_t host;

	if (sysinfo(&info) < 0)
		return 0;
	host = ((uint64_t)info.totalram + info.totalswap) * info.mem_unit;
	if (bytes <= host)
		return 0;
	return error_set(err, -ENOMEM,
			 "Invalid Memory Configuration: mem_size_mib is %llu, the host has %llu MiB",
			 (unsigned long long)(bytes / MIB), (unsigned long long)(host / MIB));
}

static int make_memory(struct vm *vm, struct error *err)
{
	uint64_t bytes = vm->config.machine.mem_size_mib * MIB;
	struct guest_mem_range ranges[LIMIT_MEM_REGIONS];
	uint32_t count, i;
	int ret = check_host_memory(bytes, err);

	if (ret < 0)
		return ret;
	arch_mem_layout(bytes, ranges, &count);
	ret = guest_mem_init(&vm->mem, ranges, count, vm->config.machine.huge_pages, false, err);
	if (ret < 0)
		return error_prefix(err, "Invalid Memory Configuration: ");
	for (i = 0; i < vm->mem.count; i++) {
		const struct guest_mem_region *r = &vm->mem.regions[i];

		ret = kvm_set_user_memory_region(vm->fd, i, 0, r->gpa, r->size, r->hva);
		if (ret < 0)
			return error_set_errno(err, ret, "KVM_SET_USER_MEMORY_REGION");
	}
	return 0;
}

static int make_vcpus(struct vm *vm, struct error *err)
{
	uint32_t i;

	for (i = 0; i < vm->config.machine.vcpu_count; i++) {
		vm->vcpus[i] = vcpu_new(vm, i, err);
		if (!vm->vcpus[i])
			return err->code;
		vm->vcpu_count = i + 1;
		if (metrics_add_group(vm->metrics, "vcpu", vcpu_metric_fields,
				      &vm->vcpus[i]->metrics) < 0)
			return error_set(err, -ENOMEM, "no memory for metrics");
	}
	return spin_observe(vm, err);
}

static const struct metric_field irq_fields[] = {
	METRIC(struct vm_irq_count, triggers),
	{ 0 },
};

static int make_devices(struct vm *vm, struct error *err)
{
	uint32_t i;
	int ret;

	for (i = 0; i < VM_IRQ_LINES; i++) {
		if (metrics_add_group(vm->metrics, "interrupts", irq_fields,
				      &vm->irq_counts[i]) < 0)
			return error_set(err, -ENOMEM, "no memory for metrics");
	}
	vm->doorbells = (struct doorbells){ .ops = &vm_doorbell_ops, .vm = vm };
	vm->env = (struct device_env){
		.mem = &vm->mem,
		.doorbells = &vm->doorbells,
		.metrics = vm->metrics,
	};
	ret = arch_board_build(vm, err);
	bus_free_maps(bus_take_replaced(&vm->bus)); /* no vCPU runs yet */
	return ret;
}

static int start_threads(struct vm *vm, struct error *err)
{
	uint32_t i;
	int ret = device_set_start(&vm->devices, err);

	for (i = 0; ret == 0 && i < vm->vcpu_count; i++) {
		ret = vcpu_start(vm->vcpus[i], err);
		if (ret == 0)
			vm->vcpus_started++;
	}
	return ret;
}

static int make(struct vm *vm, struct error *err)
{
	int ret = make_kvm(vm, err); /* 1: /dev/kvm, what it can do, the VM, how it may spin */

	if (ret == 0)
		ret = make_memory(vm, err); /* 2: guest RAM and its slots */
	if (ret == 0)
		ret = vm_cpus_make(vm, err) ?: arch_vm_init(vm, err); /* 3: topology, interrupt
								       * controllers, timers */
	if (ret == 0)
		arch_spin_apply(vm);
	if (ret == 0)
		ret = make_vcpus(vm, err); /* 4: vCPUs, not running */
	if (ret == 0)
		ret = make_devices(vm, err); /* 5: devices in their places on the buses */
	if (ret == 0)
		ret = arch_boot_load(vm, err); /* 6: kernel, initrd, tables into RAM */
	if (ret == 0)
		ret = start_threads(vm, err); /* 7: device threads, then vCPU threads */
	return ret;
}

static void unmake(struct vm *vm)
{
	uint32_t i;

	spin_controller_stop(vm);
	spin_observe_end(vm);
	for (i = 0; i < vm->vcpu_count; i++) {
		metrics_remove_group(vm->metrics, &vm->vcpus[i]->metrics);
		vm->vcpus[i] = vcpu_free(vm->vcpus[i]);
	}
	for (i = 0; i < VM_IRQ_LINES; i++)
		metrics_remove_group(vm->metrics, &vm->irq_counts[i]);
	vm->vcpu_count = 0;
	vm->vcpus_started = 0;
	vm->vcpus_stopped = 0;
	vm->vcpus_parked = 0;
	device_set_fini(&vm->devices);
	bus_fini(&vm->bus);
	arch_vm_fini(vm);
	kvm_close(&vm->fd);
	kvm_close(&vm->kvm);
	guest_mem_fini(&vm->mem);
}

static void close_backends(struct vm *vm)
{
	uint32_t i;

	for (i = 0; i < vm->config.drive_count; i++) {
		vm->classes->block->close(vm->drive_backends[i]);
		vm->drive_backends[i] = NULL;
	}
	for (i = 0; i < vm->config.net_count; i++) {
		vm->classes->net->close(vm->net_backends[i]);
		vm->net_backends[i] = NULL;
	}
}

struct vm *vm_free(struct vm *vm)
{
	if (!vm)
		return NULL;
	event_source_free(vm->deadline);
	unmake(vm);
	event_loop_drop_posts(vm->loop); /* the threads that post are gone; so are the nodes */
	control_drop_patches(vm);
	close_backends(vm);
	if (vm->kernel_fd >= 0)
		close(vm->kernel_fd);
	if (vm->initrd_fd >= 0)
		close(vm->initrd_fd);
	vm_safepoints_fini(&vm->safepoints);
	kvm_coalesced_fini(&vm->coalesced);
	free(vm);
	return NULL;
}

/* A failed start has used up the host files that its devices took over. */
static int reopen_backends(struct vm *vm, struct error *err)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; ret == 0 && i < vm->config.drive_count; i++) {
		if (!vm->drive_backends[i])
			ret = vm->classes->block->open(&vm->config.drives[i],
						       &vm->drive_backends[i], err);
	}
	for (i = 0; ret == 0 && i < vm->config.net_count; i++) {
		if (!vm->net_backends[i])
			ret = vm->classes->net->open(&vm->config.nets[i], &vm->net_backends[i],
						     err);
	}
	return ret;
}

/* A call-back may begin what is waited for next: the list is taken out first. */
static void answer(struct vm *vm, unsigned targets, int code, const struct error *err)
{
	struct vm_waiter waiters[VM_WAITERS];
	uint32_t count = vm->waiter_count, i;

	event_source_disarm(vm->deadline);
	memcpy(waiters, vm->waiters, sizeof(waiters));
	vm->waiter_count = 0;
	for (i = 0; i < count; i++) {
		if (!(targets & BIT(waiters[i].target)))
			vm->waiters[vm->waiter_count++] = waiters[i];
	}
	for (i = 0; i < count; i++) {
		if (targets & BIT(waiters[i].target))
			waiters[i].done(waiters[i].arg, code, err);
	}
}

static bool is_waited_for(const struct vm *vm, enum vm_phase target)
{
	uint32_t i;

	for (i = 0; i < vm->waiter_count; i++) {
		if (vm->waiters[i].target == target)
			return true;
	}
	return false;
}

#define ALL_TARGETS (BIT(VM_RUNNING) | BIT(VM_PAUSED))

static void wait_for_phase(struct vm *vm, enum vm_phase target, control_done_fn done, void *arg)
{
	struct error err;

	if (vm->waiter_count < VM_WAITERS) {
		vm->waiters[vm->waiter_count++] = (struct vm_waiter){ done, arg, target };
		return;
	}
	error_set(&err, -EBUSY, "too many clients wait for the VM");
	done(arg, -EBUSY, &err);
}

static void refuse(struct vm *vm, const char *what, control_done_fn done, void *arg)
{
	struct error err;

	error_set(&err, -EBUSY, "%s: the VM is %s", what, vm_phase_name(vm->state.phase));
	done(arg, -EBUSY, &err);
}

/* Start */

static void stop_vcpus(struct vm *vm)
{
	uint32_t i;

	for (i = 0; i < vm->vcpus_started; i++)
		vcpu_request(vm->vcpus[i], VCPU_REQ_STOP);
}

static void start_failed(struct vm *vm)
{
	struct error err = vm->start_error, reopen;

	unmake(vm);
	vm_state_move(&vm->state, VM_CONFIGURING);
	if (reopen_backends(vm, &reopen) < 0)
		log_warn("after a failed start: %s", reopen.text);
	answer(vm, ALL_TARGETS, err.code, &err);
}

void vm_start(struct vm *vm, control_done_fn done, void *arg)
{
	struct error *err = &vm->start_error;

	if (!vm_state_move(&vm->state, VM_STARTING)) {
		refuse(vm, "start", done, arg);
		return;
	}
	wait_for_phase(vm, VM_RUNNING, done, arg);
	err->code = 0;
	atomic_store(&vm->end_reason, VM_END_NONE);
	err->code = reopen_backends(vm, err);
	if (err->code == 0)
		err->code = make(vm, err);
	if (err->code == 0)
		return; /* each vCPU answers when it is set up */
	if (vm->vcpus_started)
		stop_vcpus(vm);
	else
		start_failed(vm);
}

static void begin_pause(struct vm *vm)
{
	uint32_t i;

	vm_state_move(&vm->state, VM_PAUSING);
	vm->vcpus_parked = 0;
	event_source_arm(vm->deadline, VM_PAUSE_LIMIT_MS * 1000000ull);
	for (i = 0; i < vm->vcpu_count; i++)
		vcpu_request(vm->vcpus[i], VCPU_REQ_PAUSE);
}

static void release_vcpus(struct vm *vm)
{
	uint32_t i;

	if (!vm->started_ns) {
		vm->started_ns = ratelimit_now();
		(void)metrics_flush(vm->metrics, NULL);
	}
	vm_state_move(&vm->state, VM_RUNNING);
	for (i = 0; i < vm->vcpu_count; i++)
		vcpu_release(vm->vcpus[i]);
	spin_controller_start(vm);
	answer(vm, BIT(VM_RUNNING), 0, NULL);
	if (vm->state.phase == VM_RUNNING && is_waited_for(vm, VM_PAUSED))
		begin_pause(vm);
}

static void all_set_up(struct vm *vm)
{
	uint32_t i;

	for (i = 0; i < vm->vcpus_started && vm->start_error.code == 0; i++) {
		if (vm->vcpus[i]->setup_code < 0)
			vm->start_error = vm->vcpus[i]->setup_error;
	}
	if (vm->start_error.code == 0)
		vm->start_error.code = vm_cpus_pin_all(vm, &vm->start_error);
	if (vm->start_error.code < 0)
		stop_vcpus(vm);
	else
		release_vcpus(vm);
}

/* Pause and resume */

static void on_devices_resumed(void *arg)
{
	struct vm *vm = arg;

	if (vm->state.phase == VM_RESUMING)
		release_vcpus(vm);
}

static void begin_resume(struct vm *vm)
{
	vm_state_move(&vm->state, VM_RESUMING);
	device_set_resume(&vm->devices, on_devices_resumed, vm);
}

static void on_devices_paused(void *arg)
{
	struct vm *vm = arg;

	if (vm->state.phase != VM_PAUSING)
		return;
	vm_state_move(&vm->state, VM_PAUSED);
	answer(vm, BIT(VM_PAUSED), 0, NULL);
	if (vm->state.phase == VM_PAUSED && is_waited_for(vm, VM_RUNNING))
		begin_resume(vm);
}

static void on_vcpu_parked(void *arg)
{
	struct vm *vm = arg;

	vm->vcpus_parked++;
	if (vm->vcpus_parked < vm->vcpu_count)
		return;
	if (vm->state.phase == VM_STARTING)
		all_set_up(vm);
	else if (vm->state.phase == VM_PAUSING)
		device_set_pause(&vm->devices, on_devices_paused, vm);
}

void vm_vcpu_parked(struct vcpu *v)
{
	event_loop_post_node(v->vm->loop, &v->parked_post, on_vcpu_parked, v->vm);
}

static bool is_started(const struct vm *vm)
{
	return vm->state.phase >= VM_RUNNING && vm->state.phase <= VM_RESUMING;
}

void vm_pause(struct vm *vm, control_done_fn done, void *arg)
{
	if (!is_started(vm)) {
		refuse(vm, "pause", done, arg);
	} else if (vm->state.phase == VM_PAUSED) {
		done(arg, 0, NULL);
	} else {
		wait_for_phase(vm, VM_PAUSED, done, arg);
		if (vm->state.phase == VM_RUNNING)
			begin_pause(vm);
	}
}

void vm_resume(struct vm *vm, control_done_fn done, void *arg)
{
	if (!is_started(vm)) {
		refuse(vm, "resume", done, arg);
	} else if (vm->state.phase == VM_RUNNING) {
		done(arg, 0, NULL);
	} else {
		wait_for_phase(vm, VM_RUNNING, done, arg);
		if (vm->state.phase == VM_PAUSED)
			begin_resume(vm);
	}
}

/* End */

static void on_ended(void *arg)
{
	struct vm *vm = arg;

	vm->on_end(vm->on_end_arg);
}

/* Something does not let go: storage that hangs, or a defect of ours. */
static void on_deadline(void *arg)
{
	struct vm *vm = arg;
	struct error err;

	if (vm->state.phase == VM_STOPPING) {
		log_error("%u of %u vCPUs have not left: the process ends without them",
			  vm->vcpus_started - vm->vcpus_stopped, vm->vcpus_started);
		vm->on_end(vm->on_end_arg);
		return;
	}
	log_error("the VM is still %s after %d s", vm_phase_name(vm->state.phase),
		  VM_PAUSE_LIMIT_MS / 1000);
	error_set(&err, -ETIMEDOUT, "Failed to message the vCPUs.");
	answer(vm, ALL_TARGETS, -ETIMEDOUT, &err);
}

static void ended(struct vm *vm)
{
	struct error err;

	vm_state_move(&vm->state, VM_ENDED);
	vm->ended_ns = ratelimit_now();
	error_set(&err, -ECANCELED, "the VM has ended: %s", vm_end_reason_name(vm->state.reason));
	answer(vm, ALL_TARGETS, -ECANCELED, &err);
	control_drop_patches(vm);
	event_loop_post_node(vm->loop, &vm->ended_post, on_ended, vm);
}

void vm_end(struct vm *vm, enum vm_end_reason reason)
{
	if (vm->state.phase == VM_STOPPING || vm->state.phase == VM_ENDED)
		return;
	vm->state.reason = reason;
	if (vm->state.phase == VM_CONFIGURING) {
		ended(vm);
		return;
	}
	vm_state_move(&vm->state, VM_STOPPING);
	event_source_arm(vm->deadline, VM_END_LIMIT_MS * 1000000ull);
	stop_vcpus(vm);
	if (vm->vcpus_stopped == vm->vcpus_started)
		ended(vm);
}

static void on_vcpu_stopped(void *arg)
{
	struct vm *vm = arg;

	vm->vcpus_stopped++;
	if (vm->vcpus_stopped < vm->vcpus_started)
		return;
	if (vm->state.phase == VM_STOPPING)
		ended(vm);
	else if (vm->state.phase == VM_STARTING)
		start_failed(vm);
}

void vm_vcpu_stopped(struct vcpu *v)
{
	event_loop_post_node(v->vm->loop, &v->stopped_post, on_vcpu_stopped, v->vm);
}

static void on_end_requested(void *arg)
{
	struct vm *vm = arg;

	vm_end(vm, (enum vm_end_reason)atomic_load(&vm->end_reason));
}

void vm_request_end(struct vm *vm, enum vm_end_reason reason)
{
	int none = VM_END_NONE;

	if (atomic_compare_exchange_strong(&vm->end_reason, &none, reason))
		event_loop_post_node(vm->loop, &vm->end_post, on_end_requested, vm);
}
