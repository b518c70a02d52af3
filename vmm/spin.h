/*
 * The spin policy of a VM: who shall notice that a vCPU spins for a lock whose
 * holder does not run. PAUSE and WFE exits are served inside KVM; user space
 * decides whether they happen and what the guest is told, which is done here
 * once, before the first vCPU exists.
 *
 * Threads: main. Locks: none.
 */
#ifndef LULL_SPIN_H
#define LULL_SPIN_H

#include <stddef.h>

#include "vmm/base/error.h"
#include "vmm/config.h"
#include "vmm/spin_report.h"

struct vm;

struct spin {
	const char *root;    /* before each path of the host's files: "" but in tests */
	enum spin_mode mode; /* in force; SPIN_AUTO before the start */
	char why[SPIN_WHY];  /* it is that one */
	struct spin_control controls[SPIN_CONTROLS];
	uint32_t control_count;
	int64_t halt_poll_ns; /* KVM's limit for this VM; -1: not known */
};

void spin_init(struct spin *s);

/* The host's CPUs, as the choice of a mode sees them. */
struct spin_cpus {
	uint32_t vcpus;
	uint32_t allowed; /* host CPUs that our threads may run on; 0: not known */
	uint32_t online;  /* host CPUs there are */
};

/* The mode that `asked` comes to, SHARED or DEDICATED; `why` has SPIN_WHY bytes. */
enum spin_mode spin_choose(enum spin_mode asked, const struct spin_cpus *cpus, char *why);

/*
 * The VM's descriptor exists, nothing else: chooses the mode, and applies what
 * every architecture has. Fails only if what was asked for by number is refused.
 */
int spin_begin(struct vm *vm, struct error *err);

/* Sets KVM's limit of polling at a halt; in force from the next halt of each vCPU on. */
int spin_set_halt_poll(struct vm *vm, uint32_t ns);

/* Host CPUs that our threads may run on now; `cpus` gets the first `room` of them. 0: not known. */
uint32_t spin_host_cpus(uint32_t *cpus, uint32_t room);

/* For the architecture: notes a control. `why` may be NULL. */
void spin_note(struct spin *s, const char *name, bool asked, enum spin_granted granted,
	       const char *why);

#endif
