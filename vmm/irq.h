/*
 * Interrupt lines of the VM's interrupt controllers.
 *
 * A line is one GSI. A pin of the PIC or IOAPIC is driven by KVM_IRQ_LINE
 * (direct: no lock of ours, none of KVM's global ones); a line whose GSI is
 * routed to a message takes an irqfd, whose signal is injected in place.
 *
 * Threads: lines are made on the main thread; irq_line_*() on any thread.
 * Locks: none in user space.
 */
#ifndef LULL_IRQ_H
#define LULL_IRQ_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/error.h"

struct irq_ops {
	/* drives the GSI; 0 or negative errno */
	int (*set)(void *chip, uint32_t gsi, bool level);
};

struct irq_line {
	const struct irq_ops *ops;
	void *chip;
	uint32_t gsi;
	_Atomic uint64_t *raised; /* counts edges for the metrics; may be NULL */
};

/* Drives a level-sensitive line. */
void irq_line_set(const struct irq_line *line, bool level);
/* One edge on an edge-sensitive line: high, then low. */
void irq_line_pulse(const struct irq_line *line);

#endif
