/*
 * The VM's interrupt lines and doorbells, over KVM. Threads: any. Locks: none.
 */
#include "vmm/kvm.h"
#include "vmm/vm.h"

static int chip_set(void *chip, uint32_t gsi, bool level)
{
	const struct vm *vm = chip;

	return kvm_irq_line(vm->fd, gsi, level);
}

static const struct irq_ops chip_ops = { .set = chip_set };

void vm_irq_line_init(struct vm *vm, struct irq_line *line, uint32_t gsi)
{
	*line = (struct irq_line){
		.ops = &chip_ops,
		.chip = vm,
		.gsi = gsi,
		.raised = gsi < VM_IRQ_LINES ? &vm->irq_counts[gsi].triggers : NULL,
	};
}

static int assign_doorbell(void *arg, enum bus_kind kind, uint64_t address, unsigned width,
			   uint64_t value, int fd, bool on)
{
	const struct vm *vm = arg;

	return kvm_ioeventfd(vm->fd, kind == BUS_PIO, address, width, value, fd, on);
}

const struct doorbell_ops vm_doorbell_ops = { .assign = assign_doorbell };
