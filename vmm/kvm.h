/*
 * KVM, one typed function per ioctl. Nothing else in the core or the
 * architectures calls ioctl on a KVM descriptor.
 *
 * All go through a table of six system calls, so that tests run the whole
 * daemon over a KVM of their own. Each returns 0 or a value, or a negative
 * errno, and logs nothing. EINTR is retried, except by kvm_vcpu_run().
 *
 * Threads: any; vCPU calls on the vCPU's thread (or before it runs).
 * Requests of one architecture only live in that architecture's folder.
 */
#ifndef LULL_KVM_H
#define LULL_KVM_H

#include <errno.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "vmm/base/error.h"

struct kvm_ops {
	int (*open)(const char *path);                           /* fd, or -1 and errno */
	int (*close)(int fd);
	int (*ioctl)(int fd, unsigned long request, void *arg);  /* as ioctl(2) */
	void *(*mmap)(int fd, size_t bytes);                     /* MAP_FAILED and errno */
	int (*munmap)(void *p, size_t bytes);
	ssize_t (*pread)(int fd, void *buf, size_t bytes, off_t offset); /* as pread(2) */
};

/* The kernel's. */
extern const struct kvm_ops kvm_ops_linux;

/* A KVM descriptor of any kind: system, VM, vCPU, statistics. */
struct kvm_fd {
	const struct kvm_ops *ops;
	int fd; /* -EBADF when closed */
};

#define KVM_RESULT __attribute__((warn_unused_result))

/* The raw door, for the typed functions here and in arch-*. */
int kvm_ioctl(struct kvm_fd k, unsigned long request, void *arg) KVM_RESULT;

/* Calls a request that takes a struct: its size must be the one the request encodes. */
#define kvm_ioctl_ptr(k, request, ptr)                                              \
	({                                                                          \
		_Static_assert(sizeof(*(ptr)) == _IOC_SIZE(request),                \
			       #request " takes another struct");                   \
		kvm_ioctl(k, request, (void *)(uintptr_t)(ptr));                    \
	})
/* Calls a request that takes a plain value. */
#define kvm_ioctl_val(k, request, value)                                            \
	({                                                                          \
		_Static_assert(_IOC_DIR(request) == _IOC_NONE, #request " takes a pointer"); \
		kvm_ioctl(k, request, (void *)(uintptr_t)(value));                  \
	})

/* System */
int kvm_open(const struct kvm_ops *ops, struct kvm_fd *ret, struct error *err) KVM_RESULT;
void kvm_close(struct kvm_fd *k);
int kvm_check_extension(struct kvm_fd k, int capability) KVM_RESULT;
int kvm_create_vm(struct kvm_fd kvm, struct kvm_fd *ret_vm) KVM_RESULT;
/* Bytes of the kvm_run mapping. */
int kvm_vcpu_mmap_size(struct kvm_fd kvm) KVM_RESULT;

/* VM */
int kvm_enable_vm_cap(struct kvm_fd vm, uint32_t capability, uint64_t arg0) KVM_RESULT;
/*
 * How long KVM may poll, instead of sleeping, when a vCPU of this VM halts; any
 * time, any number of times. -EINVAL without KVM_CAP_HALT_POLL.
 */
int kvm_set_halt_poll(struct kvm_fd vm, uint32_t ns) KVM_RESULT;
int kvm_set_user_memory_region(struct kvm_fd vm, uint32_t slot, uint32_t flags, uint64_t gpa,
			       uint64_t size, void *hva) KVM_RESULT;
int kvm_create_irqchip(struct kvm_fd vm) KVM_RESULT;
int kvm_irq_line(struct kvm_fd vm, uint32_t gsi, bool level) KVM_RESULT;
int kvm_irqfd(struct kvm_fd vm, uint32_t gsi, int fd, bool assign) KVM_RESULT;
int kvm_ioeventfd(struct kvm_fd vm, bool pio, uint64_t address, uint32_t width, uint64_t value,
		  int fd, bool assign) KVM_RESULT;
/*
 * Writes that lie in [address, address + bytes), of ports or of guest memory,
 * are put in the VM's ring from now on, or are exits again. Ports need
 * KVM_CAP_COALESCED_PIO: a kernel without it takes them for memory.
 */
int kvm_coalesced_zone(struct kvm_fd vm, bool pio, uint64_t address, uint32_t bytes,
		       bool on) KVM_RESULT;
int kvm_create_vcpu(struct kvm_fd vm, uint32_t id, struct kvm_fd *ret_vcpu) KVM_RESULT;

/* VM or vCPU: a descriptor of its statistics (kvm_stats.h); waits for KVM_RUN of a vCPU. */
int kvm_get_stats(struct kvm_fd of, struct kvm_fd *ret_stats) KVM_RESULT;
/* Exactly `bytes` bytes of a descriptor of statistics; -EPROTO if it has fewer. */
int kvm_pread(struct kvm_fd stats, void *buf, size_t bytes, uint64_t offset) KVM_RESULT;

/* vCPU */
int kvm_map_run(struct kvm_fd vcpu, size_t bytes, struct kvm_run **ret_run) KVM_RESULT;
void kvm_unmap_run(struct kvm_fd vcpu, struct kvm_run *run, size_t bytes);
/* 0, or a negative errno; -EINTR means a kick. Inline: it is half of the run loop. */
static inline int kvm_vcpu_run(struct kvm_fd vcpu)
{
	return vcpu.ops->ioctl(vcpu.fd, KVM_RUN, NULL) < 0 ? -errno : 0;
}

#endif
