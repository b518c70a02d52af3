/*
 * A KVM that replays: struct kvm_ops whose guests do nothing but exit.
 *
 * Everything but KVM_RUN is the fake KVM's (fake_kvm.h). KVM_RUN of a vCPU that
 * was given a stream takes the next exit of it from memory, without a system
 * call, a lock or anything that vCPUs share, so that what is measured around it
 * is the VMM alone. Writes to coalesced zones go to the VM's ring, under a
 * spinlock, and are exits only where that is full. Interrupt lines lead nowhere.
 *
 * Requests to stop are honoured as in the kernel: immediate_exit is read once,
 * where KVM_RUN begins. A vCPU whose exits are used up is halted: it sleeps in
 * KVM_RUN until a signal, and no kick is lost.
 *
 * Threads: replay_kvm_set() before vCPUs are made; the questions from any.
 */
#ifndef LULL_REPLAY_KVM_H
#define LULL_REPLAY_KVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/kvm.h"

extern const struct kvm_ops replay_kvm_ops;

enum replay_op { REPLAY_PIO_READ, REPLAY_PIO_WRITE, REPLAY_MMIO_READ, REPLAY_MMIO_WRITE };

struct replay_exit {
	uint8_t op;      /* enum replay_op */
	uint8_t width;   /* bytes: 1, 2, 4 or 8 */
	uint16_t count;  /* items of a string instruction; 1 for any other */
	uint64_t address;
	uint64_t value;  /* of a write, each item; of a read, what it gave when recorded */
};

/* Forgets all streams, and resets the fake KVM. */
void replay_kvm_reset(void);
/*
 * What the vCPU of this index (in order of creation) does: the stream, over and
 * over, until it has made `limit` exits. It is kept by reference.
 */
void replay_kvm_set(unsigned vcpu, const struct replay_exit *exits, size_t count, uint64_t limit);
/* Before the vCPU's thread runs, or on it. */
void replay_kvm_set_limit(unsigned vcpu, uint64_t limit);

/* Exits of this vCPU so far. */
uint64_t replay_kvm_exits(unsigned vcpu);
/* Writes of this vCPU that the ring took. */
uint64_t replay_kvm_coalesced(unsigned vcpu);
/* True once every vCPU that was given a stream has made its exits. */
bool replay_kvm_is_done(void);
/* The value that the VMM gave the last read, once the vCPU has called KVM_RUN again. */
uint64_t replay_kvm_last_read(unsigned vcpu);

#endif
