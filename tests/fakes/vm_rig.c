/*
 * A VM for tests of the core. Threads: the test's is the main thread.
 */
#include "vm_rig.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/log.h"
#include "vmm/vcpu.h"

/* Open backends point here, as a class has no context. */
static struct vm_rig *rig;

static int backend_open(const void *config, void **ret_backend, struct error *err)
{
	if (rig->open_code < 0)
		return error_set(err, rig->open_code, "the backend cannot be opened");
	*ret_backend = malloc(1);
	rig->backends_open++;
	return 0;
}

static void backend_close(void *backend)
{
	if (!backend)
		return;
	rig->backends_open--;
	free(backend);
}

static const struct device_class fake_class = {
	.type = "fake",
	.open = backend_open,
	.close = backend_close,
};

static void on_end(void *arg)
{
	struct vm_rig *r = arg;

	r->ended = true;
	event_loop_stop(r->loop);
}

void vm_rig_init(struct vm_rig *r, uint32_t vcpus, uint64_t mem_mib)
{
	static bool once;
	struct error err;

	if (!once) {
		log_init("test");
		log_set_level(LOG_LEVEL_OFF);
		if (vcpu_signals_init(&err) < 0)
			exit(2);
		once = true;
	}
	memset(r, 0, sizeof(*r));
	rig = r;
	fake_kvm_reset();
	r->loop = event_loop_new();
	r->metrics = metrics_new();
	r->classes = (struct device_classes){ &fake_class, &fake_class, &fake_class };
	r->vm = vm_new("test", r->loop, &fake_kvm_ops, &r->classes, r->metrics, &err);
	r->vm->on_end = on_end;
	r->vm->on_end_arg = r;
	r->vm->config.machine.vcpu_count = vcpus;
	r->vm->config.machine.mem_size_mib = mem_mib;
}

void vm_rig_fini(struct vm_rig *r)
{
	r->vm = vm_free(r->vm);
	r->metrics = metrics_free(r->metrics);
	r->loop = event_loop_free(r->loop);
}

uint64_t vm_rig_exits(const struct vm_rig *r)
{
	uint64_t sum = 0;
	uint32_t i, reason;

	for (i = 0; i < r->vm->vcpu_count; i++) {
		for (reason = 0; reason < VCPU_EXIT_REASONS; reason++)
			sum += vcpu_exits(r->vm->vcpus[i], reason);
	}
	return sum;
}

void vm_rig_done(void *arg, int code, const struct error *err)
{
	struct vm_rig *r = arg;

	r->answers++;
	r->code = code;
	if (err)
		r->err = *err;
	event_loop_stop(r->loop);
}

void vm_rig_run_until(struct vm_rig *r, unsigned answers)
{
	while (r->answers < answers)
		event_loop_run(r->loop);
}

static void stop_loop(void *arg)
{
	event_loop_stop(arg);
}

void vm_rig_run_for(struct vm_rig *r, unsigned ms)
{
	struct event_source *timer = event_loop_add_timer(r->loop, stop_loop, r->loop);

	event_source_arm(timer, ms * 1000000ull);
	event_loop_run(r->loop);
	event_source_free(timer);
}

static int ask(struct vm_rig *r, void (*what)(struct vm *vm, control_done_fn done, void *arg))
{
	unsigned wanted = r->answers + 1;

	what(r->vm, vm_rig_done, r);
	vm_rig_run_until(r, wanted);
	return r->code;
}

int vm_rig_start(struct vm_rig *r)
{
	return ask(r, vm_start);
}

int vm_rig_pause(struct vm_rig *r)
{
	return ask(r, vm_pause);
}

int vm_rig_resume(struct vm_rig *r)
{
	return ask(r, vm_resume);
}

enum vm_end_reason vm_rig_wait_end(struct vm_rig *r)
{
	while (!r->ended)
		event_loop_run(r->loop);
	return r->vm->state.reason;
}

enum vm_end_reason vm_rig_end(struct vm_rig *r)
{
	vm_end(r->vm, VM_END_STOPPED);
	return vm_rig_wait_end(r);
}

unsigned vm_rig_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}
