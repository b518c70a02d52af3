/*
 * Interrupt lines of the VM's interrupt controllers.
 *
 * A line is one GSI, a pin of the PIC or IOAPIC, driven by KVM_IRQ_LINE: in
 * place, under no lock of ours (KVM takes its controllers' spinlocks). An irqfd
 * would be slower here: for pins KVM hands its signal to a work queue.
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
	_Atomic uint64_t *raised; /* counts edges, of this line alone; may be NULL */
};

/* Drives a level-sensitive line. */
void irq_line_set(const struct irq_line *line, bool level);
/* One edge on an edge-sensitive line: high, then low. */
void irq_line_pulse(const struct irq_line *line);

#endif
