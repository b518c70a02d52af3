/*
 * A KVM for tests: struct kvm_ops without /dev/kvm.
 *
 * Descriptors are real ones (of /dev/null); behind them are systems, VMs and
 * vCPUs that check what they are asked as the kernel does: order of creation,
 * overlap and alignment of slots, duplicate doorbells, room for CPUID leaves.
 * KVM_RUN runs a script: a list of steps that the "guest" takes, some of which
 * are exits. immediate_exit and signals behave as in the kernel: unfinished
 * I/O is completed first, then immediate_exit is read, once; from there on
 * only a signal ends KVM_RUN, and one that is handled before KVM_RUN begins
 * is gone. So a kick that is lost on real KVM is lost here too.
 *
 * There is one fake a process, as struct kvm_ops has no context.
 *
 * Threads: fake_kvm_reset() and the set-up calls before a VM is made; the
 * questions from any thread at any time.
 */
#ifndef LULL_FAKE_KVM_H
#define LULL_FAKE_KVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/kvm.h"

extern const struct kvm_ops fake_kvm_ops;

/* Scripts */

enum fake_op {
	FAKE_OP_PIO_WRITE,
	FAKE_OP_PIO_READ,
	FAKE_OP_MMIO_WRITE,
	FAKE_OP_MMIO_READ,
	FAKE_OP_MEM_WRITE,
	FAKE_OP_MEM_EXPECT,
	FAKE_OP_WAIT,
	FAKE_OP_SPIN,
	FAKE_OP_WAIT_IRQ,
	FAKE_OP_LOOP,
	FAKE_OP_EXIT,
	FAKE_OP_FAIL,
	FAKE_OP_CALL,
};

struct fake_step {
	enum fake_op op;
	uint8_t width;    /* of an access */
	bool until;       /* a read is repeated until it gives what is expected */
	uint32_t detail;  /* of an exit: event type, suberror, hardware reason */
	uint64_t address; /* port or guest physical address; GSI; exit reason; step to loop to */
	uint64_t value;   /* written or expected; times to loop, 0 for ever; errno */
	uint64_t mask;    /* what of a read is expected; 0: nothing */
	const void *data; /* bytes of a string write, of memory; argument of a call */
	uint32_t size;    /* of data; of a string instruction, the number of items */
	void (*call)(void *arg);
};

/*
 * Exits for port and memory-mapped I/O; a write that a doorbell or the ring of
 * coalesced writes takes is none.
 */
#define FAKE_OUT(port, width_, value_) \
	{ .op = FAKE_OP_PIO_WRITE, .address = port, .width = width_, .value = value_, .size = 1 }
#define FAKE_OUTS(port, width_, data_, items) \
	{ .op = FAKE_OP_PIO_WRITE, .address = port, .width = width_, .data = data_, .size = items }
#define FAKE_IN(port, width_) \
	{ .op = FAKE_OP_PIO_READ, .address = port, .width = width_, .size = 1 }
#define FAKE_INS(port, width_, items) \
	{ .op = FAKE_OP_PIO_READ, .address = port, .width = width_, .size = items }
#define FAKE_IN_EXPECT(port, width_, mask_, value_) \
	{ .op = FAKE_OP_PIO_READ, .address = port, .width = width_, .mask = mask_, \
	  .value = value_, .size = 1 }
#define FAKE_IN_UNTIL(port, width_, mask_, value_) \
	{ .op = FAKE_OP_PIO_READ, .address = port, .width = width_, .mask = mask_, \
	  .value = value_, .size = 1, .until = true }
#define FAKE_MMIO_W(gpa, width_, value_) \
	{ .op = FAKE_OP_MMIO_WRITE, .address = gpa, .width = width_, .value = value_ }
#define FAKE_MMIO_R(gpa, width_) \
	{ .op = FAKE_OP_MMIO_READ, .address = gpa, .width = width_ }
#define FAKE_MMIO_EXPECT(gpa, width_, mask_, value_) \
	{ .op = FAKE_OP_MMIO_READ, .address = gpa, .width = width_, .mask = mask_, .value = value_ }

/* Guest RAM, through the slots; not RAM is a failure of the test. */
#define FAKE_MEM_W(gpa, data_, bytes) \
	{ .op = FAKE_OP_MEM_WRITE, .address = gpa, .data = data_, .size = bytes }
#define FAKE_MEM_EXPECT(gpa, data_, bytes) \
	{ .op = FAKE_OP_MEM_EXPECT, .address = gpa, .data = data_, .size = bytes }

/* Halted until a signal, busy inside the guest until a signal. */
#define FAKE_WAIT() { .op = FAKE_OP_WAIT }
#define FAKE_SPIN() { .op = FAKE_OP_SPIN }
/* Halted until the line has risen, as an edge-triggered pin: that takes the edge. */
#define FAKE_WAIT_IRQ(gsi) { .op = FAKE_OP_WAIT_IRQ, .address = gsi }
/* Back to the step of that index, that many times; 0 for ever. */
#define FAKE_LOOP(step, times) { .op = FAKE_OP_LOOP, .address = step, .value = times }
/* Calls a function of the test on the vCPU's thread, inside KVM_RUN. */
#define FAKE_CALL(fn, arg) { .op = FAKE_OP_CALL, .call = fn, .data = arg }

#define FAKE_EXIT(reason) { .op = FAKE_OP_EXIT, .address = reason }
#define FAKE_SHUTDOWN() FAKE_EXIT(KVM_EXIT_SHUTDOWN)
#define FAKE_FAIL_ENTRY(hardware_reason) \
	{ .op = FAKE_OP_EXIT, .address = KVM_EXIT_FAIL_ENTRY, .detail = hardware_reason }
#define FAKE_INTERNAL_ERROR(suberror_) \
	{ .op = FAKE_OP_EXIT, .address = KVM_EXIT_INTERNAL_ERROR, .detail = suberror_ }
#define FAKE_SYSTEM_EVENT(type_) \
	{ .op = FAKE_OP_EXIT, .address = KVM_EXIT_SYSTEM_EVENT, .detail = type_ }
/* KVM_RUN itself fails. */
#define FAKE_RUN_FAILS(error) { .op = FAKE_OP_FAIL, .value = error }

#define FAKE_VCPUS 64
#define FAKE_GSIS 64

/* Set-up. Forgets all that was recorded and set; no descriptor may be open. */
void fake_kvm_reset(void);

/*
 * What the vCPU of this index (in order of creation) does. Steps are kept by
 * reference. After the last one, and without a script, it waits for ever.
 */
void fake_kvm_set_script(unsigned vcpu, const struct fake_step *steps, size_t count);
/* For all vCPUs that have none of their own. */
void fake_kvm_set_default_script(const struct fake_step *steps, size_t count);

#define FAKE_SCRIPT(vcpu, steps) \
	fake_kvm_set_script(vcpu, steps, sizeof(steps) / sizeof((steps)[0]))

enum fake_vendor { FAKE_INTEL, FAKE_AMD };
void fake_kvm_set_vendor(enum fake_vendor vendor);
void fake_kvm_set_cap(int capability, int value);

/*
 * Faults. The n-th call (from 1, from now) of this request fails with `error`,
 * once; FAKE_ANY counts all calls that can fail: every ioctl but KVM_RUN, open,
 * mmap and pread.
 */
#define FAKE_ANY 0ul
#define FAKE_OPEN 1ul
#define FAKE_MMAP 2ul
#define FAKE_PREAD 3ul
void fake_kvm_fail(unsigned long request, uint64_t nth, int error);
/* True once the fault that was asked for last has happened. */
bool fake_kvm_failed(void);
/* Calls that can fail, since the reset. */
uint64_t fake_kvm_calls(void);

/*
 * Statistics. All names of a kernel's are there, and zero; any thread, any time
 * after the reset. A name that is not there is a mismatch.
 */
#define FAKE_STATS_OF_VM (-1)
#define FAKE_HISTOGRAM 32 /* values of one */
void fake_kvm_set_stat(int of, const char *name, uint64_t value);
void fake_kvm_set_histogram(int of, const char *name, const uint64_t values[FAKE_HISTOGRAM]);
/* From now on every descriptor of statistics holds these bytes, by reference; NULL: no more. */
void fake_kvm_set_stats_bytes(const void *bytes, size_t size);

/* Questions */

/* Descriptors and mappings that are not closed. */
unsigned fake_kvm_open_objects(void);
/* vCPUs that are inside KVM_RUN now. */
unsigned fake_kvm_running(void);

struct fake_vcpu_counts {
	uint64_t runs;        /* calls of KVM_RUN */
	uint64_t exits;       /* returns with a reason */
	uint64_t interrupted; /* returns of -EINTR */
	uint64_t steps;       /* of the script */
	uint64_t doorbells;   /* writes that were no exit */
	uint64_t coalesced;   /* entries put in the ring */
	uint64_t ring_full;   /* writes that found the ring full */
};
void fake_kvm_get_counts(unsigned vcpu, struct fake_vcpu_counts *ret);

/* Rising edges of the line so far, and its level now. */
uint64_t fake_kvm_irq_edges(uint32_t gsi);
bool fake_kvm_irq_level(uint32_t gsi);

/* Memory slots of the VM that is open; false past the last. */
bool fake_kvm_get_slot(unsigned index, struct kvm_userspace_memory_region *ret);
unsigned fake_kvm_ioeventfd_count(void);
/* Calls of KVM_IOEVENTFD since the reset: while no vCPU had run yet, and after. */
struct fake_ioeventfd_calls {
	uint64_t before_run;
	uint64_t after_run;
};
void fake_kvm_get_ioeventfd_calls(struct fake_ioeventfd_calls *ret);
/* Calls of KVM_ENABLE_CAP for this capability since the reset, on VMs and vCPUs. */
struct fake_cap_calls {
	unsigned calls;    /* refused ones too */
	unsigned refused;
	uint64_t argument; /* the first, of the last call that was taken */
};
void fake_kvm_get_cap_calls(unsigned capability, struct fake_cap_calls *ret);
/* Zones of coalesced writes of the VM that is open; false past the last. */
bool fake_kvm_get_coalesced_zone(unsigned index, struct kvm_coalesced_mmio_zone *ret);

/*
 * What scripts found other than expected, and requests that the fake does not
 * know; the text is of the first, "" if there is none.
 */
unsigned fake_kvm_mismatches(void);
const char *fake_kvm_mismatch(void);

#endif
