/*
 * What a client asks for, as typed structs: no JSON above this line, no
 * resources below it. Filled by api/fields and by the command line, checked
 * for relations by config_check_*(). Strings are bounded and NUL-terminated;
 * an empty string means "not given".
 */
#ifndef LULL_CONFIG_H
#define LULL_CONFIG_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/error.h"
#include "vmm/base/log.h"
#include "vmm/limits.h"
#include "vmm/topology.h"

enum huge_pages {
	HUGE_PAGES_NONE,        /* anonymous memory with transparent huge pages (our default too) */
	HUGE_PAGES_TRANSPARENT, /* the same, asked for by name */
	HUGE_PAGES_2M,          /* hugetlbfs; reserved at start */
};

struct machine_config {
	uint32_t vcpu_count;   /* 1..LIMIT_VCPUS */
	uint64_t mem_size_mib; /* 1..LIMIT_MEM_MIB */
	bool smt;              /* two threads a core; then vcpu_count is 1 or even */
	bool track_dirty_pages;
	enum huge_pages huge_pages;
};

/* A number that may be left out; one that is given counts, also if it is 0. */
struct config_number {
	uint32_t value;
	bool given;
};

struct topology_cache_config {
	struct config_number size_kib;
	struct config_number ways;
	struct config_number line; /* bytes */
	enum topology_level shared_by;
	bool has_shared_by;
	bool enabled;
	bool has_enabled;
};

struct topology_caches_config {
	struct topology_cache_config of[TOPOLOGY_CACHES];
};

struct numa_node_config {
	uint64_t mem_size_mib;
};

struct numa_config {
	enum topology_level node; /* TOPOLOGY_DIE or TOPOLOGY_SOCKET: what is a node */
	struct numa_node_config nodes[LIMIT_NUMA_NODES];
	uint32_t node_count;
	bool has_nodes; /* else memory is split evenly */
};

/* What is not given is filled in by topology_build(). */
struct topology_config {
	struct config_number sockets;
	struct config_number dies;
	struct config_number cores;
	struct config_number threads;
	struct topology_caches_config caches;
	struct numa_config numa;
	bool has_numa;
};

/* CPUs of the host that a thread may run on. */
struct vcpu_affinity_config {
	uint32_t index;
	cpu_set_t cpus;
};

struct device_affinity_config {
	char device[LIMIT_DEVICE_NAME]; /* ID, or TYPE:ID */
	cpu_set_t cpus;
};

struct affinity_config {
	struct vcpu_affinity_config vcpus[LIMIT_VCPUS];
	uint32_t vcpu_count;
	struct device_affinity_config devices[LIMIT_PINNED_DEVICES];
	uint32_t device_count;
};

struct boot_source_config {
	char kernel_image_path[LIMIT_PATH];
	char initrd_path[LIMIT_PATH];
	char boot_args[LIMIT_CMDLINE * 4]; /* checked against LIMIT_CMDLINE with its own error */
	bool has_boot_args;
};

/* size or refill_time_ms of 0 disables the bucket */
struct token_bucket_config {
	uint64_t size;
	uint64_t refill_time_ms;
	uint64_t one_time_burst;
	bool present;
};

struct rate_limiter_config {
	struct token_bucket_config bandwidth; /* bytes */
	struct token_bucket_config ops;
	bool present;
};

enum drive_cache_type { DRIVE_CACHE_UNSAFE, DRIVE_CACHE_WRITEBACK };
enum drive_io_engine { DRIVE_IO_SYNC, DRIVE_IO_ASYNC };

struct drive_config {
	char drive_id[LIMIT_ID + 1];
	char path_on_host[LIMIT_PATH];
	char partuuid[LIMIT_ID + 1];
	bool is_root_device;
	bool is_read_only;
	enum drive_cache_type cache_type; /* WRITEBACK offers FLUSH to the guest */
	enum drive_io_engine io_engine;
	struct rate_limiter_config rate_limiter;
};

struct net_config {
	char iface_id[LIMIT_ID + 1];
	char host_dev_name[LIMIT_PATH]; /* a TAP's name, or the path of a macvtap node */
	uint8_t guest_mac[6];
	bool has_guest_mac;
	uint32_t mtu; /* 68..65535; 0: not offered to the guest */
	struct rate_limiter_config rx_rate_limiter;
	struct rate_limiter_config tx_rate_limiter;
};

struct entropy_config {
	struct rate_limiter_config rate_limiter;
};

enum console_kind { CONSOLE_STDIO, CONSOLE_FILE, CONSOLE_PTY, CONSOLE_SOCKET, CONSOLE_NONE };

struct serial_config {
	enum console_kind console;
	char path[LIMIT_PATH]; /* of a FILE (output only) or of a listening SOCKET */
	struct token_bucket_config rate_limiter; /* output bytes; over it they are dropped */
};

/* What becomes of periodic interrupts of the clock that a guest was too slow for. */
enum rtc_lost_ticks {
	RTC_LOST_TICKS_SLEW,    /* they are raised when the guest has time */
	RTC_LOST_TICKS_DISCARD, /* they are dropped, as the chip drops them */
};

struct rtc_config {
	enum rtc_lost_ticks lost_ticks;
};

/* Who decides that a vCPU which spins gives its host CPU away; see docs/spin.md. */
enum spin_mode {
	SPIN_AUTO,      /* one of the other two, by what host CPUs there are */
	SPIN_SHARED,    /* host CPUs are shared with other threads: exits and PV features on */
	SPIN_DEDICATED, /* each vCPU has a host CPU of its own: exits off, real-time hint */
};

enum spin_controller_mode {
	SPIN_CONTROLLER_OFF,
	SPIN_CONTROLLER_DRY_RUN, /* decides and says so, changes nothing */
	SPIN_CONTROLLER_ON,
};

struct spin_config {
	enum spin_mode mode;
	enum spin_controller_mode controller;
	uint32_t period_ms;        /* of the controller: LIMIT_SPIN_PERIOD_MIN_MS.._MAX_MS */
	uint32_t halt_poll_ns;     /* how long KVM may poll at a halt, from the start on */
	bool has_halt_poll_ns;     /* else it is KVM's default */
	uint32_t halt_poll_max_ns; /* the most that the controller may make it */
	bool park_polls; /* vCPUs whose guest polls a register sleep; see vcpu_poll.h */
};

/*
 * What holds where nothing was asked for. A second tells a trend from noise; a
 * millisecond of polling is five times KVM's default.
 */
#define SPIN_CONFIG_DEFAULTS \
	{ .mode = SPIN_AUTO, .controller = SPIN_CONTROLLER_OFF, .period_ms = 1000, \
	  .halt_poll_max_ns = 1000000 }

struct logger_config {
	char log_path[LIMIT_PATH];
	char module[LIMIT_ID * 2 + 1];
	enum log_level level;
	bool show_level;
	bool show_log_origin;
};

struct metrics_config {
	char metrics_path[LIMIT_PATH];
};

/* What GET /vm/config shows. The has_ members say which resources were given. */
struct vm_config {
	struct machine_config machine;
	struct topology_config topology;
	struct affinity_config affinity;
	struct boot_source_config boot_source;
	struct drive_config drives[LIMIT_DRIVES];
	uint32_t drive_count;
	struct net_config nets[LIMIT_NETS];
	uint32_t net_count;
	struct entropy_config entropy;
	struct serial_config serial;
	struct rtc_config rtc;
	struct spin_config spin;
	struct logger_config logger;
	struct metrics_config metrics;
	bool has_boot_source;
	bool has_entropy;
	bool has_logger;
	bool has_metrics;
	bool boot_timer; /* --boot-timer */
};

/* 1 vCPU, 128 MiB, console on stdio, level info. */
void config_init(struct vm_config *c);
/* The same for a struct that is zero already, most of whose pages stay untouched. */
void config_set_defaults(struct vm_config *c);

/* Relations that no single field shows. 0, or -EINVAL with the field named. */
int config_check_machine(const struct machine_config *m, struct error *err);
int config_check_boot_source(const struct boot_source_config *b, struct error *err);
int config_check_drive(const struct vm_config *c, const struct drive_config *d,
		       struct error *err);
int config_check_net(const struct vm_config *c, const struct net_config *n, struct error *err);
int config_check_spin(const struct spin_config *s, struct error *err);

/* Index of the drive or interface of that id; -ENOENT. */
int config_find_drive(const struct vm_config *c, const char *drive_id);
int config_find_net(const struct vm_config *c, const char *iface_id);

#endif
