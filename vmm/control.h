/*
 * The commands that the control socket and the command line may give the VM,
 * and what they may ask it. This is all that api/ sees of the machine.
 *
 * Threads: every function is called on the main thread; every call-back runs
 * on it. Nothing here waits for a vCPU or a device: what takes time answers
 * through its control_done_fn.
 */
#ifndef LULL_CONTROL_H
#define LULL_CONTROL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "vmm/base/error.h"
#include "vmm/config.h"
#include "vmm/spin_report.h"
#include "vmm/topology.h"

struct vm;

/* The client's view of the life cycle (see vm_state.h for the whole of it). */
enum control_phase {
	CONTROL_NOT_STARTED = 1 << 0, /* configuring */
	CONTROL_RUNNING = 1 << 1,
	CONTROL_PAUSED = 1 << 2,
	CONTROL_ENDED = 1 << 3, /* the guest is gone; the process is about to end */
};

struct control_vm_info {
	const char *id;
	enum control_phase phase;
	const char *state;  /* full state name: "configuring", "running", "pausing", ... */
	const char *reason; /* why the VM ended: "guest-poweroff", ...; "" before */
	pid_t pid;
	uint64_t uptime_ms; /* since the guest was started; 0 before */
};

struct control_vcpu_info {
	uint32_t index;
	pid_t tid;
	const char *state; /* "created", "running", "paused", "stopped" */
	uint64_t exits;    /* returns from KVM_RUN */
	const cpu_set_t *affinity; /* NULL: any CPU */
};

struct control_device_info {
	const char *id;     /* "serial", "rootfs", "eth0" */
	const char *type;   /* "uart16550", "virtio-blk", ... */
	const char *status; /* "inactive", "active", "needs-reset", "paused" */
	uint64_t base;      /* guest physical address or port */
	uint64_t size;
	int32_t gsi; /* -1: no interrupt */
	pid_t tid;   /* of its thread; 0: none */
	const cpu_set_t *affinity; /* of it; NULL: any CPU */
};

/* `err` is NULL when code is 0 and valid only during the call. */
typedef void (*control_done_fn)(void *arg, int code, const struct error *err);

/* Queries: any phase. Pointers stay valid until the next call into this file. */
void control_get_info(const struct vm *vm, struct control_vm_info *ret);
const struct vm_config *control_get_config(const struct vm *vm);
size_t control_vcpu_count(const struct vm *vm);
int control_get_vcpu(const struct vm *vm, size_t index, struct control_vcpu_info *ret);
/* Exits of one vCPU by reason: calls `fn` for each reason that was seen. */
void control_vcpu_exits(const struct vm *vm, size_t index,
			void (*fn)(void *arg, const char *reason, uint64_t count), void *arg);
/*
 * The registers of one vCPU as a line of text, wherever it is: it comes out of the
 * guest for that, and goes on. `text` is valid during the call and "" where the
 * architecture has none; -ENOENT, -ENOMEM, -ESRCH if the vCPU has no thread any more.
 */
typedef void (*control_text_fn)(void *arg, int code, const char *text);
void control_describe_vcpu(struct vm *vm, size_t index, control_text_fn done, void *arg);
/* The spin policy; pointers as above. */
struct control_spin_info {
	enum spin_mode mode; /* in force; SPIN_AUTO before the start */
	const char *why;
	const struct spin_control *controls;
	uint32_t control_count;
	int64_t halt_poll_ns; /* KVM's limit of polling at a halt; -1: not known */
	uint64_t polls_parked;  /* of all vCPUs; see vcpu_poll.h */
	uint64_t polls_changed;
};
void control_get_spin(const struct vm *vm, struct control_spin_info *ret);
/* The controller; pointers as above. */
struct control_spin_controller {
	enum spin_class class;
	enum spin_advice advice;
	uint32_t halt_poll_ns; /* its limit: in a dry run, what it would be */
	uint64_t periods;      /* decided */
	uint64_t blind;        /* in which too little could be read to decide */
	uint32_t host_cpus[LIMIT_VCPUS]; /* for each vCPU, when they are to be spread */
	uint32_t host_cpu_count;
};
void control_get_spin_controller(const struct vm *vm, struct control_spin_controller *ret);
/* The event of that index, oldest first; NULL past the last. */
const struct spin_event *control_get_spin_event(const struct vm *vm, size_t index);
/* What the host is like, read anew. */
void control_check_host(const struct vm *vm, struct spin_checks *ret);
/* -ENOENT without such a vCPU. Reads anew. */
int control_vcpu_sample(struct vm *vm, size_t index, struct spin_sample *ret);
/*
 * KVM's statistics by name, as last read: of a vCPU, or of the VM, which are read
 * anew. A histogram has more than one value.
 */
typedef void (*control_stat_fn)(void *arg, const char *name, const uint64_t *values,
				size_t count);
void control_vcpu_stats(const struct vm *vm, size_t index, control_stat_fn fn, void *arg);
void control_vm_stats(struct vm *vm, control_stat_fn fn, void *arg);
/* The topology of the guest; before the start, what it would be by now. */
void control_get_topology(struct vm *vm, struct topology *ret);
size_t control_device_count(const struct vm *vm);
int control_get_device(const struct vm *vm, size_t index, struct control_device_info *ret);

/*
 * Configuration. NOT_STARTED only, except where noted; the router has checked
 * the phase. Each copies its argument, opens the host resources it names and
 * keeps the old configuration when it fails.
 */
int control_put_machine(struct vm *vm, const struct machine_config *m, struct error *err);
int control_put_topology(struct vm *vm, const struct topology_config *t, struct error *err);
int control_put_boot_source(struct vm *vm, const struct boot_source_config *b, struct error *err);
int control_put_drive(struct vm *vm, const struct drive_config *d, struct error *err);
int control_put_net(struct vm *vm, const struct net_config *n, struct error *err);
int control_put_entropy(struct vm *vm, const struct entropy_config *e, struct error *err);
int control_put_serial(struct vm *vm, const struct serial_config *s, struct error *err);
int control_put_rtc(struct vm *vm, const struct rtc_config *r, struct error *err);
int control_put_spin(struct vm *vm, const struct spin_config *s, struct error *err);
/* any phase before the start for the API; the logger may be set again and again */
int control_put_logger(struct vm *vm, const struct logger_config *l, struct error *err);
int control_put_metrics(struct vm *vm, const struct metrics_config *m, struct error *err);

/* RUNNING or PAUSED: gives the drive another backing file and tells the guest its size. */
void control_patch_drive(struct vm *vm, const char *drive_id, const char *path_on_host,
			 control_done_fn done, void *arg);

/*
 * Before the end, see vm_cpus.h: which CPUs of the host threads run on. A device is
 * called by its id, or TYPE:ID. The queries give NULL where nothing was asked for.
 */
int control_put_vcpu_affinity(struct vm *vm, uint32_t index, const cpu_set_t *cpus,
			      struct error *err);
int control_put_device_affinity(struct vm *vm, const char *name, const cpu_set_t *cpus,
				struct error *err);
const cpu_set_t *control_vcpu_affinity(const struct vm *vm, uint32_t index);
/* -ENODEV, -EEXIST once devices are there. */
int control_device_affinity(const struct vm *vm, const char *name, const cpu_set_t **ret,
			    struct error *err);

/* NOT_STARTED: builds and runs the VM. On failure the VM stays configurable. */
void control_start(struct vm *vm, control_done_fn done, void *arg);

/*
 * RUNNING or PAUSED, idempotent. When pause answers, no vCPU is in KVM_RUN and
 * no device thread touches guest memory.
 */
void control_pause(struct vm *vm, control_done_fn done, void *arg);
void control_resume(struct vm *vm, control_done_fn done, void *arg);

int control_send_ctrl_alt_del(struct vm *vm, struct error *err);
int control_flush_metrics(struct vm *vm, struct error *err);

/* Any phase: ends the VM with this reason; the process follows. */
void control_stop(struct vm *vm, const char *reason);

#endif
