/*
 * Interrupt lines. Threads: any. Locks: none.
 */
#include "vmm/irq.h"

#include <stdatomic.h>
#include <stddef.h>

#include "vmm/base/log.h"

static void drive(const struct irq_line *line, bool level)
{
	int ret = line->ops->set(line->chip, line->gsi, level);

	if (ret < 0)
		log_error("interrupt line %u: cannot be driven: error %d", line->gsi, -ret);
}

void irq_line_set(const struct irq_line *line, bool level)
{
	drive(line, level);
	if (level && line->raised)
		atomic_fetch_add_explicit(line->raised, 1, memory_order_relaxed);
}

void irq_line_pulse(const struct irq_line *line)
{
	drive(line, true);
	drive(line, false);
	if (line->raised)
		atomic_fetch_add_explicit(line->raised, 1, memory_order_relaxed);
}
