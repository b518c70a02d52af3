/*
 * The handlers that the route tables name. Each ends its call by a
 * respond_*(), at once or from a control_done_fn. When one runs, path, method,
 * body and phase have been checked and the body is in call->params.
 *
 * Threads: main. Locks: none.
 */
#ifndef LULL_API_HANDLERS_H
#define LULL_API_HANDLERS_H

#include "api/api.h"
#include "vmm/base/error.h"

/* handlers_config.c: the configuration, before the start */
void handle_get_machine(struct api_call *call);
void handle_put_machine(struct api_call *call);
void handle_patch_machine(struct api_call *call);
void handle_put_boot_source(struct api_call *call);
void handle_put_drive(struct api_call *call);
void handle_put_net(struct api_call *call);
void handle_put_entropy(struct api_call *call);
void handle_put_serial(struct api_call *call);
void handle_put_logger(struct api_call *call);
void handle_put_metrics(struct api_call *call);
void handle_get_vm_config(struct api_call *call);

/* handlers_runtime.c: the life of the VM */
void handle_get_instance(struct api_call *call);
void handle_get_version(struct api_call *call);
void handle_put_actions(struct api_call *call);
void handle_patch_drive(struct api_call *call);
void handle_patch_net(struct api_call *call);
void handle_patch_vm(struct api_call *call);

/* handlers_v1.c: our own surface */
void handle_v1_get_vm(struct api_call *call);
void handle_v1_patch_vm(struct api_call *call);
void handle_v1_get_devices(struct api_call *call);
void handle_v1_get_vcpus(struct api_call *call);
void handle_v1_get_vcpu(struct api_call *call);
void handle_v1_put_serial(struct api_call *call);
void handle_v1_put_rtc(struct api_call *call);

/* handlers_topology.c: sockets to threads, caches, NUMA nodes */
void handle_v1_get_topology(struct api_call *call);
void handle_v1_put_topology(struct api_call *call);

/* handlers_affinity.c: where threads run */
void handle_v1_get_vcpu_affinity(struct api_call *call);
void handle_v1_put_vcpu_affinity(struct api_call *call);
void handle_v1_get_device_affinity(struct api_call *call);
void handle_v1_put_device_affinity(struct api_call *call);

/* handlers_locks.c: the lock profiler */
void handle_v1_get_locks(struct api_call *call);
void handle_v1_put_locks(struct api_call *call);

/* handlers_spin.c: the spin policy, what KVM counts, the controller */
void handle_v1_get_spin(struct api_call *call);
void handle_v1_put_spin(struct api_call *call);
/* The index in the path, below `count`; -ENOENT if it is none. */
int handle_index(const struct api_call *call, size_t count, size_t *ret);

/* A control_done_fn: `arg` is the call; 204 or the error. */
void handle_done(void *arg, int code, const struct error *err);

#endif
