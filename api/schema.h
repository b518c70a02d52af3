/*
 * The field tables of all resources: which members each body may have.
 * Names, types and order are those of the wire contract.
 *
 * Constant data; any thread. Not here: how tables are read (fields), relations
 * between fields (vmm/config.c).
 */
#ifndef LULL_API_SCHEMA_H
#define LULL_API_SCHEMA_H

#include "api/fields.h"
#include "vmm/config.h"

enum api_action { ACTION_FLUSH_METRICS, ACTION_INSTANCE_START, ACTION_SEND_CTRL_ALT_DEL };

struct action_params {
	enum api_action action_type;
};

enum api_vm_target { VM_TARGET_PAUSED, VM_TARGET_RESUMED, VM_TARGET_STOPPED };

struct vm_params {
	enum api_vm_target state;
};

struct locks_params {
	bool profiling;
	bool has_profiling;
	bool reset;
};

struct affinity_params {
	cpu_set_t cpus;
};

/* What PATCH may change of a drive. */
struct drive_patch {
	char drive_id[LIMIT_ID + 1];
	char path_on_host[LIMIT_PATH];
	struct rate_limiter_config rate_limiter;
};

/* What PATCH may change of a network interface. */
struct net_patch {
	char iface_id[LIMIT_ID + 1];
	struct rate_limiter_config rx_rate_limiter;
	struct rate_limiter_config tx_rate_limiter;
};

/* A whole configuration file; also the shape of GET /vm/config. */
struct config_document {
	struct vm_config vm;
	bool has_machine;
	bool has_rtc;
	bool has_spin;
	bool has_topology;
	bool has_affinity;
};

extern const struct field_table machine_table;
extern const struct field_table boot_source_table;
extern const struct field_table drive_table;
extern const struct field_table drive_patch_table;
extern const struct field_table net_table;
extern const struct field_table net_patch_table;
extern const struct field_table entropy_table;
extern const struct field_table serial_table;   /* as Firecracker has it */
extern const struct field_table console_table;  /* ours: every kind of console */
extern const struct field_table rtc_table;
extern const struct field_table spin_table;
extern const struct field_table topology_table;
extern const struct field_table cpus_table;     /* of one thread */
extern const struct field_table affinity_table; /* of all, in a configuration file */
extern const struct field_table logger_table;
extern const struct field_table metrics_table;
extern const struct field_table action_table;
extern const struct field_table vm_table;    /* Paused, Resumed */
extern const struct field_table vm_v1_table; /* and Stopped */
extern const struct field_table locks_table;
extern const struct field_table config_document_table;

/* Bit of `cpu_template` in what was given of machine_table: its use is deprecated. */
#define MACHINE_GIVEN_CPU_TEMPLATE (UINT64_C(1) << 3)

#endif
