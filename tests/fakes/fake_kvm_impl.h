/*
 * What the files of the fake KVM share. Tests include fake_kvm.h only.
 *
 * Locks: fake.lock around everything but a script, which its vCPU's thread
 * owns, and the atomics. Functions that need it end in _locked.
 */
#ifndef LULL_FAKE_KVM_IMPL_H
#define LULL_FAKE_KVM_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "fake_kvm.h"

#define FAKE_SLOTS 32
#define FAKE_BELLS 64
#define FAKE_IRQFDS 64
#define FAKE_ZONES 64
#define FAKE_PAGE 4096u
/* A vCPU's mapping: kvm_run, the data of port I/O, the ring. */
#define FAKE_PIO_OFFSET FAKE_PAGE
#define FAKE_RING_OFFSET (2 * FAKE_PAGE)
#define FAKE_RUN_BYTES (3 * FAKE_PAGE)
#define FAKE_STATES 16 /* kinds of saved state a VM or vCPU may have */
#define FAKE_MSRS 128
#define FAKE_CAPS 256

enum fake_kind { FAKE_SYSTEM, FAKE_VM, FAKE_VCPU, FAKE_STATISTICS };

struct fake_object {
	enum fake_kind kind;
	int fd;
};

/* A descriptor of statistics; what it shows is kept by index, whoever is open. */
struct fake_stats {
	struct fake_object object;
	int of; /* index of the vCPU, or FAKE_STATS_OF_VM */
};

struct fake_bell {
	bool used;
	int fd; /* our own duplicate, as the kernel holds a reference */
	struct kvm_ioeventfd spec;
};

struct fake_irqfd {
	bool used;
	int fd;
	uint32_t gsi;
};

struct fake_line {
	bool level;
	bool pending;
};

struct fake_vm {
	struct fake_object object;
	unsigned refs; /* its descriptor and those of its vCPUs */
	bool irqchip;
	bool pit;
	unsigned vcpu_count;
	uint32_t vcpu_ids[FAKE_VCPUS];
	struct kvm_userspace_memory_region slots[FAKE_SLOTS]; /* memory_size 0: free */
	struct fake_bell bells[FAKE_BELLS];
	struct fake_irqfd irqfds[FAKE_IRQFDS];
	struct fake_line lines[FAKE_GSIS];
	struct kvm_coalesced_mmio_zone zones[FAKE_ZONES];
	unsigned zone_count;
	int ring_shm; /* the page that all vCPUs see; needs no file, whose size may be limited */
	struct kvm_coalesced_mmio_ring *ring; /* a mapping of the fake's own */
	void *states[FAKE_STATES];
};

struct fake_script {
	const struct fake_step *steps;
	size_t count;
};

struct fake_vcpu {
	struct fake_object object;
	struct fake_vm *vm;
	unsigned index;
	uint32_t id;
	struct kvm_run *run;
	int wake_fd; /* signalled when a line rises */
	atomic_bool inside;

	/* its own thread */
	struct fake_script script;
	size_t pc;
	uint64_t *loops; /* rounds done, by step */
	bool halted;     /* by KVM_SET_MP_STATE, until a line rises */
	bool unfinished; /* a read whose value comes with the next KVM_RUN */

	void *states[FAKE_STATES];
	struct kvm_cpuid2 *cpuid;
	struct kvm_msr_entry msrs[FAKE_MSRS];
	unsigned msr_count;
};

/* Counts of one vCPU that outlive it. */
struct fake_totals {
	_Atomic uint64_t runs, exits, interrupted, steps, doorbells, coalesced, ring_full;
};

struct fake_global {
	pthread_mutex_t lock;
	struct fake_script scripts[FAKE_VCPUS];
	struct fake_script default_script;
	enum fake_vendor vendor;
	struct fake_vm *vm; /* that was made last and is open */
	uint64_t edges[FAKE_GSIS];
	struct fake_ioeventfd_calls ioeventfd_calls;
	struct fake_cap_calls caps[FAKE_CAPS]; /* by capability */
	unsigned mismatches;
	char mismatch[256];
	struct fake_totals totals[FAKE_VCPUS];
	_Atomic unsigned running;
};

extern struct fake_global fake;

void fake_mismatch(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void fake_mismatch_locked(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Host address of guest RAM, NULL if [gpa, gpa + len) is not in one slot. */
void *fake_ram_locked(const struct fake_vm *vm, uint64_t gpa, uint64_t len);

int fake_check_extension(int cap);
int fake_vm_ioctl_locked(struct fake_vm *vm, unsigned long request, void *arg);
int fake_enable_cap_locked(struct fake_vm *vm, const struct kvm_enable_cap *cap);
int fake_enable_vcpu_cap_locked(struct fake_vcpu *v, const struct kvm_enable_cap *cap);
int fake_new_vcpu_locked(struct fake_vm *vm, uint32_t id);
/* Ends the halt of every vCPU of the VM, which looks at its line again. */
void fake_wake_vcpus_locked(const struct fake_vm *vm);

/* Bytes read, 0 behind the end. */
ssize_t fake_read_stats_locked(const struct fake_stats *s, void *buf, size_t bytes,
			       size_t offset);
void fake_stats_reset_locked(void);

int fake_ring_init(struct fake_vm *vm);
void fake_ring_fini(struct fake_vm *vm);
int fake_zone_locked(struct fake_vm *vm, const struct kvm_coalesced_mmio_zone *zone, bool on);
/* True if the ring takes the write, or the first of its items, which then is no exit. */
bool fake_coalesce_locked(struct fake_vcpu *v, bool pio, uint64_t address, const void *data,
			  uint32_t width, uint32_t items);

/* Fake KVM_RUN: 0 or negative errno. */
int fake_run(struct fake_vcpu *v);

/* Requests of the architecture: a result, a negative errno, -ENOTTY for unknown. */
int fake_arch_system(unsigned long request, void *arg);
int fake_arch_vm_locked(struct fake_vm *vm, unsigned long request, void *arg);
int fake_arch_vcpu_locked(struct fake_vcpu *v, unsigned long request, void *arg);
void fake_arch_vm_fini(struct fake_vm *vm);
void fake_arch_vcpu_fini(struct fake_vcpu *v);

#endif
