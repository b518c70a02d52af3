/*
 * What of the host makes KVM's directed yield work, or not: the kernel, the
 * scheduler's class, cgroup and quota of the vCPUs' threads. Says so; changes
 * nothing.
 *
 * Threads: main. Locks: none. `root` stands before each path: "" but in tests.
 */
#ifndef LULL_SPIN_HOST_H
#define LULL_SPIN_HOST_H

#include <stdint.h>
#include <sys/types.h>

#include "vmm/spin_report.h"

/* Appends a row; without effect when all are taken. */
void spin_check_add(struct spin_checks *checks, const char *name, enum spin_check_status status,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Is kvm_vcpu_on_spin() or yield_to() of this kernel ("6.1.0-30-amd64") known to be broken? */
void spin_check_kernel(const char *root, const char *release, struct spin_checks *checks);

/* Class, cgroup and quota of these threads of ours. */
void spin_check_threads(const char *root, const pid_t *tids, uint32_t count,
			struct spin_checks *checks);

#endif
