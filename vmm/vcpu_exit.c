/*
 * What an exit from KVM_RUN leads to: one table, one short handler a reason.
 *
 * Threads: the vCPU's. Locks: none here; a device takes its own.
 * Not here: reasons of one architecture only (arch_vcpu_exit()).
 */
#include "vmm/vcpu.h"

#include <errno.h>
#include <string.h>

#include "vmm/base/big_lock.h"
#include "vmm/base/bits.h"
#include "vmm/base/log.h"
#include "vmm/kvm_coalesced.h"
#include "vmm/vm.h"

const struct metric_field vcpu_metric_fields[] = {
	METRIC(struct vcpu_metrics, exit_io_in),
	METRIC(struct vcpu_metrics, exit_io_out),
	METRIC(struct vcpu_metrics, exit_mmio_read),
	METRIC(struct vcpu_metrics, exit_mmio_write),
	METRIC(struct vcpu_metrics, failures),
	METRIC(struct vcpu_metrics, polls_parked),
	METRIC(struct vcpu_metrics, polls_changed),
	{ 0 },
};

typedef enum vcpu_exit_result (*exit_fn)(struct vcpu *v);

static enum vcpu_exit_result end(struct vcpu *v, enum vm_end_reason reason)
{
	vm_request_end(v->vm, reason);
	return VCPU_STOP;
}

static __attribute__((noinline)) enum vcpu_exit_result act(struct vcpu *v, enum bus_action action)
{
	switch (action) {
	case BUS_DONE:
		return VCPU_CONTINUE;
	case BUS_GUEST_RESET:
		return end(v, VM_END_GUEST_RESET);
	case BUS_GUEST_POWEROFF:
		return end(v, VM_END_GUEST_POWEROFF);
	}
	return VCPU_CONTINUE;
}

/*
 * Values of accesses. Both hosts that run KVM for us are little-endian, as their
 * guests' buses are. Always 8 bytes are moved, of which KVM and we look at the
 * first `width`: there is room behind them, in struct kvm_run as in its page of
 * port data.
 */
static inline uint64_t load_value(const uint8_t *data, uint8_t width)
{
	static const uint64_t masks[256] = { [1] = 0xff, [2] = 0xffff, [4] = UINT32_MAX,
					     [8] = UINT64_MAX };
	uint64_t value;

	memcpy(&value, data, sizeof(value));
	return value & masks[width];
}

static inline void store_value(uint8_t *data, uint64_t value)
{
	memcpy(data, &value, sizeof(value));
}

/*
 * String instructions (INS, OUTS) come with a count: all of it is done in one exit.
 * Not inline, as the rest that is rare: the common path needs few registers.
 */
static __attribute__((noinline)) enum vcpu_exit_result io_string(struct vcpu *v, uint8_t *data)
{
	const struct kvm_run *run = v->run;
	bool in = run->io.direction == KVM_EXIT_IO_IN;
	unsigned width = run->io.size;
	uint64_t value;
	uint32_t i;

	metric_count(in ? &v->metrics.exit_io_in : &v->metrics.exit_io_out);
	if (width > 4 || run->io.data_offset + (uint64_t)width * run->io.count > v->run_bytes)
		return end(v, VM_END_INTERNAL);
	for (i = 0; i < run->io.count; i++, data += width) {
		enum bus_action action = BUS_DONE;

		value = 0;
		if (in) {
			value = bus_read(&v->lookup, BUS_PIO, run->io.port, width);
			memcpy(data, &value, width);
		} else {
			memcpy(&value, data, width);
			action = bus_write(&v->lookup, BUS_PIO, run->io.port, width, value);
		}
		if (action != BUS_DONE)
			return act(v, action);
	}
	return VCPU_CONTINUE;
}

static enum vcpu_exit_result exit_io(struct vcpu *v)
{
	struct kvm_run *run = v->run;
	uint64_t offset = run->io.data_offset;
	uint8_t *data = (uint8_t *)run + offset;
	unsigned width = run->io.size;
	enum bus_action action;

	if (__builtin_expect(run->io.count != 1 || offset + sizeof(uint64_t) > v->run_bytes, 0))
		return io_string(v, data);
	if (run->io.direction == KVM_EXIT_IO_IN) {
		metric_count(&v->metrics.exit_io_in);
		store_value(data, bus_read(&v->lookup, BUS_PIO, run->io.port, width));
		return VCPU_CONTINUE;
	}
	metric_count(&v->metrics.exit_io_out);
	action = bus_write(&v->lookup, BUS_PIO, run->io.port, width, load_value(data, width));
	return __builtin_expect(action == BUS_DONE, 1) ? VCPU_CONTINUE : act(v, action);
}

static __attribute__((noinline)) enum vcpu_exit_result exit_mmio(struct vcpu *v)
{
	struct kvm_run *run = v->run;
	uint64_t address = run->mmio.phys_addr;
	unsigned width = run->mmio.len;

	metric_count(run->mmio.is_write ? &v->metrics.exit_mmio_write :
					  &v->metrics.exit_mmio_read);
	if (__builtin_expect(width > sizeof(run->mmio.data) || !is_power_of_two(width), 0)) {
		/* an access split over pages or a vector: nothing of ours takes it */
		memset(run->mmio.data, 0xff, sizeof(run->mmio.data));
		return VCPU_CONTINUE;
	}
	if (run->mmio.is_write)
		return act(v, bus_write(&v->lookup, BUS_MMIO, address, width,
					load_value(run->mmio.data, width)));
	store_value(run->mmio.data, bus_read(&v->lookup, BUS_MMIO, address, width));
	return VCPU_CONTINUE;
}

static enum vcpu_exit_result exit_shutdown(struct vcpu *v)
{
	char text[512];

	arch_vcpu_describe(v, text, sizeof(text));
	log_warn("vCPU %u: triple fault: %s", v->index, text);
	return end(v, VM_END_GUEST_TRIPLE_FAULT);
}

static enum vcpu_exit_result exit_system_event(struct vcpu *v)
{
	switch (v->run->system_event.type) {
	case KVM_SYSTEM_EVENT_SHUTDOWN:
		return end(v, VM_END_GUEST_POWEROFF);
	case KVM_SYSTEM_EVENT_RESET:
		return end(v, VM_END_GUEST_RESET);
	default:
		log_error("vCPU %u: system event %u: the guest has crashed", v->index,
			  v->run->system_event.type);
		return end(v, VM_END_VCPU_FAILED);
	}
}

static enum vcpu_exit_result exit_fail_entry(struct vcpu *v)
{
	metric_count(&v->metrics.failures);
	log_error("vCPU %u: KVM cannot enter the guest: hardware reason 0x%llx", v->index,
		  (unsigned long long)v->run->fail_entry.hardware_entry_failure_reason);
	return end(v, VM_END_VCPU_FAILED);
}

static enum vcpu_exit_result exit_internal_error(struct vcpu *v)
{
	char text[512];

	metric_count(&v->metrics.failures);
	arch_vcpu_describe(v, text, sizeof(text));
	log_error("vCPU %u: KVM internal error %u: %s", v->index, v->run->internal.suberror, text);
	return end(v, VM_END_VCPU_FAILED);
}

/* Reasons that ask nothing of us. */
static enum vcpu_exit_result exit_nothing(struct vcpu *v)
{
	return VCPU_CONTINUE;
}

static const struct {
	const char *name;
	exit_fn fn;
} exits[VCPU_EXIT_REASONS] = {
	[KVM_EXIT_UNKNOWN] = { "unknown", NULL },
	[KVM_EXIT_EXCEPTION] = { "exception", NULL },
	[KVM_EXIT_IO] = { "io", NULL }, /* these two: vcpu_handle_exit() */
	[KVM_EXIT_HYPERCALL] = { "hypercall", NULL },
	[KVM_EXIT_DEBUG] = { "debug", exit_nothing },
	[KVM_EXIT_HLT] = { "hlt", NULL },
	[KVM_EXIT_MMIO] = { "mmio", NULL },
	[KVM_EXIT_IRQ_WINDOW_OPEN] = { "irq_window_open", exit_nothing },
	[KVM_EXIT_SHUTDOWN] = { "shutdown", exit_shutdown },
	[KVM_EXIT_FAIL_ENTRY] = { "fail_entry", exit_fail_entry },
	[KVM_EXIT_INTR] = { "intr", exit_nothing },
	[KVM_EXIT_INTERNAL_ERROR] = { "internal_error", exit_internal_error },
	[KVM_EXIT_SYSTEM_EVENT] = { "system_event", exit_system_event },
	[KVM_EXIT_IOAPIC_EOI] = { "ioapic_eoi", NULL },
	[KVM_EXIT_ARM_NISV] = { "arm_nisv", NULL },
	[KVM_EXIT_X86_RDMSR] = { "rdmsr", NULL },
	[KVM_EXIT_X86_WRMSR] = { "wrmsr", NULL },
	[KVM_EXIT_DIRTY_RING_FULL] = { "dirty_ring_full", NULL },
	[KVM_EXIT_X86_BUS_LOCK] = { "bus_lock", exit_nothing },
	[KVM_EXIT_NOTIFY] = { "notify", exit_nothing },
};

const char *vcpu_exit_name(uint32_t reason)
{
	return reason < VCPU_EXIT_REASONS ? exits[reason].name : NULL;
}

uint64_t vcpu_exits(const struct vcpu *v, uint32_t reason)
{
	const struct vcpu_metrics *m = &v->metrics;

	if (reason == KVM_EXIT_IO)
		return metric_read(&m->exit_io_in) + metric_read(&m->exit_io_out);
	if (reason == KVM_EXIT_MMIO)
		return metric_read(&m->exit_mmio_read) + metric_read(&m->exit_mmio_write);
	return metric_read(&v->exits[reason]);
}

/* I/O and MMIO count themselves, by direction. */
static __attribute__((noinline)) enum vcpu_exit_result exit_other(struct vcpu *v, uint32_t reason)
{
	metric_count(&v->exits[reason & (VCPU_EXIT_REASONS - 1)]);
	if (reason < VCPU_EXIT_REASONS && exits[reason].fn)
		return exits[reason].fn(v);
	return arch_vcpu_exit(v);
}

enum vcpu_exit_result vcpu_handle_exit(struct vcpu *v)
{
	uint32_t reason = v->run->exit_reason;

	if (__builtin_expect(kvm_coalesced_is_pending(v->ring), 0))
		kvm_coalesced_drain(v->coalesced, &v->lookup);
	if (__builtin_expect(reason == KVM_EXIT_IO, 1))
		return exit_io(v);
	if (reason == KVM_EXIT_MMIO)
		return exit_mmio(v);
	return exit_other(v, reason);
}

enum vcpu_exit_result vcpu_handle_exit_big_locked(struct vcpu *v)
{
	enum vcpu_exit_result result;

	big_lock_take();
	result = vcpu_handle_exit(v);
	big_lock_release();
	return result;
}
