/*
 * vmm/control.h over a plain struct: notes what was called, answers as told.
 *
 * Threads: that of the test, or the loop's if there is one. Locks: none.
 */
#ifndef LULL_FAKE_CONTROL_H
#define LULL_FAKE_CONTROL_H

#include <stdbool.h>

#include "vmm/control.h"
#include "vmm/event_loop.h"

#define FAKE_CALLS 256
#define FAKE_WAITING 64

struct fake_answer {
	struct vm *vm;
	control_done_fn done;
	void *arg;
	enum control_phase then; /* the phase after a good answer */
};

struct vm {
	struct vm_config config;
	enum control_phase phase;
	const char *id;
	const char *state;
	const char *reason;

	struct event_loop *loop; /* answers are posted to it; NULL: they come at once */
	bool hold;               /* answers wait for fake_control_release() */
	int code;                /* of all further commands; 0: they succeed */
	const char *text;        /* of their error */

	const char *calls[FAKE_CALLS]; /* names of the commands, oldest first */
	size_t call_count;
	struct fake_answer waiting[FAKE_WAITING];
	size_t waiting_count;
	char patched_path[LIMIT_PATH];
	char stop_reason[64];

	const int32_t *l3_groups; /* host caches of the vCPUs; NULL: they are not pinned */
	cpu_set_t pinned;          /* the CPUs of the last affinity; its vCPU or device */
	char pinned_name[LIMIT_DEVICE_NAME];
	struct control_vcpu_info vcpus[4];
	size_t vcpu_count;
	struct control_spin_info spin;
	struct control_spin_controller controller;
	struct spin_event spin_events[2];
	size_t spin_event_count;
	struct spin_checks checks;
	struct spin_sample sample; /* of each vCPU */
	struct control_device_info devices[4];
	size_t device_count;
};

void fake_control_init(struct vm *vm);
/* How often a command was called, by its name without "control_". */
size_t fake_control_called(const struct vm *vm, const char *name);
/* Gives all answers that are held back. */
void fake_control_release(struct vm *vm);

#endif
