/*
 * What is seen of spinning, as JSON: GET /v1/vcpus and GET /v1/spin.
 * Threads: main. Locks: none.
 */
#ifndef LULL_API_SPIN_PRINT_H
#define LULL_API_SPIN_PRINT_H

#include <stddef.h>

#include "vmm/base/buf.h"

struct vm;

/* Each appends a value and reads what it shows anew. */

/* All there is of one vCPU, KVM's statistics by their own names among it. */
void spin_print_vcpu(struct buf *body, struct vm *vm, size_t index);
/* An array of the vCPUs with what matters of each. */
void spin_print_vcpus(struct buf *body, struct vm *vm);
/* The controller, as an object, and its events, as an array. */
void spin_print_controller(struct buf *body, const struct vm *vm);
void spin_print_events(struct buf *body, const struct vm *vm);
/* KVM's statistics of the VM. */
void spin_print_vm_stats(struct buf *body, struct vm *vm);

#endif
