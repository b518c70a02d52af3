/*
 * What can be told about a VM's spinning: plain structs, filled by the core and
 * shown by the API through vmm/control.h. No KVM, no pointers into the VM but
 * where noted.
 */
#ifndef LULL_SPIN_REPORT_H
#define LULL_SPIN_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_CONTROLS 16 /* of one architecture, at most */
#define SPIN_WHY 160     /* bytes of a reason, final NUL included */

enum spin_granted { SPIN_NO, SPIN_YES, SPIN_UNKNOWN };

/* One control of KVM's: what the policy asked of it, and what holds. */
struct spin_control {
	const char *name; /* a literal: "pause_exits" */
	bool asked;
	enum spin_granted granted;
	char why[SPIN_WHY]; /* they differ, or how we know; "" if there is nothing to say */
};

#endif
