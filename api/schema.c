/*
 * Field tables. Threads: any (constant data). Locks: none.
 * Not here: topology and affinity (schema_cpus.c).
 */
#include "api/schema.h"

#define U8_MAX 255u
#define U16_MAX 65535u

/* Names of values, in the order in which messages list them */

static const struct field_name huge_page_names[] = {
	{ "None", HUGE_PAGES_NONE },
	{ "Transparent", HUGE_PAGES_TRANSPARENT },
	{ "2M", HUGE_PAGES_2M },
	{ 0 },
};

/* Templates mask CPU features; none is offered yet, and leaving it out is no choice of ours. */
static const struct field_name cpu_template_names[] = {
	{ "C3", 0, true },   { "T2", 0, true },	  { "T2S", 0, true },  { "None", 0 },
	{ "T2CL", 0, true }, { "T2A", 0, true },  { "V1N1", 0, true }, { 0 },
};

static const struct field_name cache_type_names[] = {
	{ "Unsafe", DRIVE_CACHE_UNSAFE },
	{ "Writeback", DRIVE_CACHE_WRITEBACK },
	{ 0 },
};

static const struct field_name io_engine_names[] = {
	{ "Async", DRIVE_IO_ASYNC },
	{ "Sync", DRIVE_IO_SYNC },
	{ 0 },
};

static const struct field_name console_names[] = {
	{ "Stdio", CONSOLE_STDIO },   { "File", CONSOLE_FILE }, { "Pty", CONSOLE_PTY },
	{ "Socket", CONSOLE_SOCKET }, { "None", CONSOLE_NONE }, { 0 },
};

static const struct field_name lost_ticks_names[] = {
	{ "slew", RTC_LOST_TICKS_SLEW },
	{ "discard", RTC_LOST_TICKS_DISCARD },
	{ 0 },
};

static const struct field_name spin_mode_names[] = {
	{ "shared", SPIN_SHARED },
	{ "dedicated", SPIN_DEDICATED },
	{ "auto", SPIN_AUTO },
	{ 0 },
};

static const struct field_name spin_controller_names[] = {
	{ "off", SPIN_CONTROLLER_OFF },
	{ "dry_run", SPIN_CONTROLLER_DRY_RUN },
	{ "on", SPIN_CONTROLLER_ON },
	{ 0 },
};

static const struct field_name level_names[] = {
	{ "Off", LOG_LEVEL_OFF },     { "Trace", LOG_LEVEL_TRACE },  { "Debug", LOG_LEVEL_DEBUG },
	{ "Info", LOG_LEVEL_INFO },   { "Warn", LOG_LEVEL_WARN },    { "Warning", LOG_LEVEL_WARN },
	{ "Error", LOG_LEVEL_ERROR }, { 0 },
};

static const struct field_name action_names[] = {
	{ "FlushMetrics", ACTION_FLUSH_METRICS },
	{ "InstanceStart", ACTION_INSTANCE_START },
	{ "SendCtrlAltDel", ACTION_SEND_CTRL_ALT_DEL },
	{ 0 },
};

static const struct field_name vm_target_names[] = {
	{ "Paused", VM_TARGET_PAUSED },
	{ "Resumed", VM_TARGET_RESUMED },
	{ 0 },
};

static const struct field_name vm_v1_target_names[] = {
	{ "Paused", VM_TARGET_PAUSED },
	{ "Resumed", VM_TARGET_RESUMED },
	{ "Stopped", VM_TARGET_STOPPED },
	{ 0 },
};

/* Rate limiters; unknown keys of a bucket are passed over, as clients rely on */

static const struct field bucket_fields[] = {
	F_U64("size", struct token_bucket_config, size, "u64", .flags = FIELD_REQUIRED),
	F_U64("one_time_burst", struct token_bucket_config, one_time_burst, "u64",
	      .flags = FIELD_NULL | FIELD_ZERO_NONE),
	F_U64("refill_time", struct token_bucket_config, refill_time_ms, "u64",
	      .flags = FIELD_REQUIRED),
};

static const struct field_table bucket_table =
	FIELD_TABLE("struct TokenBucketConfig", struct token_bucket_config, bucket_fields,
		    .open = true);

static const struct field limiter_fields[] = {
	F_OBJECT("bandwidth", struct rate_limiter_config, bandwidth, struct token_bucket_config,
		 bucket_table, .flags = FIELD_NULL,
		 F_HAS(struct rate_limiter_config, bandwidth.present)),
	F_OBJECT("ops", struct rate_limiter_config, ops, struct token_bucket_config, bucket_table,
		 .flags = FIELD_NULL, F_HAS(struct rate_limiter_config, ops.present)),
};

static const struct field_table limiter_table =
	FIELD_TABLE("struct RateLimiterConfig", struct rate_limiter_config, limiter_fields);

#define F_LIMITER(key, struct_type, member)                                           \
	F_OBJECT(key, struct_type, member, struct rate_limiter_config, limiter_table, \
		 .flags = FIELD_NULL, F_HAS(struct_type, member.present))

/* Resources */

static const struct field machine_fields[] = {
	F_U32("vcpu_count", struct machine_config, vcpu_count, U8_MAX, "u8",
	      .flags = FIELD_REQUIRED),
	F_U64("mem_size_mib", struct machine_config, mem_size_mib, "usize",
	      .flags = FIELD_REQUIRED),
	F_BOOL("smt", struct machine_config, smt),
	F_WORD("cpu_template", cpu_template_names), /* MACHINE_GIVEN_CPU_TEMPLATE */
	F_BOOL("track_dirty_pages", struct machine_config, track_dirty_pages),
	F_ENUM("huge_pages", struct machine_config, huge_pages, enum huge_pages, huge_page_names),
};

const struct field_table machine_table =
	FIELD_TABLE("struct MachineConfig", struct machine_config, machine_fields);

static const struct field boot_source_fields[] = {
	F_STRING("kernel_image_path", struct boot_source_config, kernel_image_path,
		 .flags = FIELD_REQUIRED),
	F_STRING("initrd_path", struct boot_source_config, initrd_path, .flags = FIELD_NULL),
	F_STRING("boot_args", struct boot_source_config, boot_args, .flags = FIELD_NULL,
		 F_HAS(struct boot_source_config, has_boot_args)),
};

const struct field_table boot_source_table =
	FIELD_TABLE("struct BootSourceConfig", struct boot_source_config, boot_source_fields);

static const struct field drive_fields[] = {
	F_STRING("drive_id", struct drive_config, drive_id, .flags = FIELD_REQUIRED),
	F_STRING("partuuid", struct drive_config, partuuid, .flags = FIELD_NULL),
	F_BOOL("is_root_device", struct drive_config, is_root_device, .flags = FIELD_REQUIRED),
	F_ENUM("cache_type", struct drive_config, cache_type, enum drive_cache_type,
	       cache_type_names),
	F_BOOL("is_read_only", struct drive_config, is_read_only),
	F_STRING("path_on_host", struct drive_config, path_on_host, .flags = FIELD_NULL),
	F_LIMITER("rate_limiter", struct drive_config, rate_limiter),
	F_ENUM("io_engine", struct drive_config, io_engine, enum drive_io_engine, io_engine_names),
	F_REFUSED("socket", FIELD_NULL), /* vhost-user */
};

const struct field_table drive_table =
	FIELD_TABLE("struct BlockDeviceConfig", struct drive_config, drive_fields);

static const struct field drive_patch_fields[] = {
	F_STRING("drive_id", struct drive_patch, drive_id, .flags = FIELD_REQUIRED),
	F_STRING("path_on_host", struct drive_patch, path_on_host),
	F_LIMITER("rate_limiter", struct drive_patch, rate_limiter),
};

const struct field_table drive_patch_table =
	FIELD_TABLE("struct BlockDeviceUpdateConfig", struct drive_patch, drive_patch_fields);

static const struct field net_fields[] = {
	F_STRING("iface_id", struct net_config, iface_id, .flags = FIELD_REQUIRED),
	F_STRING("host_dev_name", struct net_config, host_dev_name, .flags = FIELD_REQUIRED),
	F_MAC("guest_mac", struct net_config, guest_mac, .flags = FIELD_NULL,
	      F_HAS(struct net_config, has_guest_mac)),
	F_U32("mtu", struct net_config, mtu, U16_MAX, "u16",
	      .flags = FIELD_NULL | FIELD_ZERO_NONE),
	F_LIMITER("rx_rate_limiter", struct net_config, rx_rate_limiter),
	F_LIMITER("tx_rate_limiter", struct net_config, tx_rate_limiter),
};

const struct field_table net_table =
	FIELD_TABLE("struct NetworkInterfaceConfig", struct net_config, net_fields);

static const struct field net_patch_fields[] = {
	F_STRING("iface_id", struct net_patch, iface_id, .flags = FIELD_REQUIRED),
	F_LIMITER("rx_rate_limiter", struct net_patch, rx_rate_limiter),
	F_LIMITER("tx_rate_limiter", struct net_patch, tx_rate_limiter),
};

const struct field_table net_patch_table =
	FIELD_TABLE("struct NetworkInterfaceUpdateConfig", struct net_patch, net_patch_fields);

static const struct field entropy_fields[] = {
	F_LIMITER("rate_limiter", struct entropy_config, rate_limiter),
};

const struct field_table entropy_table =
	FIELD_TABLE("struct EntropyDeviceConfig", struct entropy_config, entropy_fields);

static const struct field serial_fields[] = {
	F_STRING("serial_out_path", struct serial_config, path),
	F_OBJECT("rate_limiter", struct serial_config, rate_limiter, struct token_bucket_config,
		 bucket_table, F_HAS(struct serial_config, rate_limiter.present)),
};

const struct field_table serial_table =
	FIELD_TABLE("struct SerialConfig", struct serial_config, serial_fields);

static const struct field console_fields[] = {
	F_ENUM("console", struct serial_config, console, enum console_kind, console_names,
	       .flags = FIELD_REQUIRED),
	F_STRING("path", struct serial_config, path),
	F_OBJECT("rate_limiter", struct serial_config, rate_limiter, struct token_bucket_config,
		 bucket_table, F_HAS(struct serial_config, rate_limiter.present)),
};

const struct field_table console_table =
	FIELD_TABLE("struct Serial", struct serial_config, console_fields);

static const struct field rtc_fields[] = {
	F_ENUM("lost_ticks", struct rtc_config, lost_ticks, enum rtc_lost_ticks, lost_ticks_names,
	       .flags = FIELD_REQUIRED),
};

const struct field_table rtc_table =
	FIELD_TABLE("struct Rtc", struct rtc_config, rtc_fields);

static const struct spin_config spin_defaults = SPIN_CONFIG_DEFAULTS;

/* Bounds: config_check_spin(). */
static const struct field spin_fields[] = {
	F_ENUM("mode", struct spin_config, mode, enum spin_mode, spin_mode_names),
	F_ENUM("controller", struct spin_config, controller, enum spin_controller_mode,
	       spin_controller_names),
	F_U32("period_ms", struct spin_config, period_ms, UINT32_MAX, "u32"),
	F_U32("halt_poll_ns", struct spin_config, halt_poll_ns, UINT32_MAX, "u32",
	      F_HAS(struct spin_config, has_halt_poll_ns)),
	F_U32("halt_poll_max_ns", struct spin_config, halt_poll_max_ns, UINT32_MAX, "u32"),
	F_BOOL("park_polls", struct spin_config, park_polls),
};

const struct field_table spin_table =
	FIELD_TABLE("struct Spin", struct spin_config, spin_fields,
		    .defaults = &spin_defaults);

static const struct logger_config logger_defaults = { .level = LOG_LEVEL_INFO };

static const struct field logger_fields[] = {
	F_STRING("log_path", struct logger_config, log_path, .flags = FIELD_NULL),
	F_ENUM("level", struct logger_config, level, enum log_level, level_names,
	       .flags = FIELD_ANY_CASE),
	F_BOOL("show_level", struct logger_config, show_level),
	F_BOOL("show_log_origin", struct logger_config, show_log_origin),
	F_STRING("module", struct logger_config, module, .flags = FIELD_NULL),
};

const struct field_table logger_table =
	FIELD_TABLE("struct LoggerConfig", struct logger_config, logger_fields,
		    .defaults = &logger_defaults);

static const struct field metrics_fields[] = {
	F_STRING("metrics_path", struct metrics_config, metrics_path, .flags = FIELD_REQUIRED),
};

const struct field_table metrics_table =
	FIELD_TABLE("struct MetricsConfig", struct metrics_config, metrics_fields, .open = true);

/* Commands */

static const struct field action_fields[] = {
	F_ENUM("action_type", struct action_params, action_type, enum api_action, action_names,
	       .flags = FIELD_REQUIRED),
};

const struct field_table action_table =
	FIELD_TABLE("struct ActionBody", struct action_params, action_fields);

static const struct field vm_fields[] = {
	F_ENUM("state", struct vm_params, state, enum api_vm_target, vm_target_names,
	       .flags = FIELD_REQUIRED),
};

const struct field_table vm_table = FIELD_TABLE("struct Vm", struct vm_params, vm_fields);

static const struct field vm_v1_fields[] = {
	F_ENUM("state", struct vm_params, state, enum api_vm_target, vm_v1_target_names,
	       .flags = FIELD_REQUIRED),
};

const struct field_table vm_v1_table = FIELD_TABLE("struct Vm", struct vm_params, vm_v1_fields);

static const struct field locks_fields[] = {
	F_BOOL("profiling", struct locks_params, profiling,
	       F_HAS(struct locks_params, has_profiling)),
	F_BOOL("reset", struct locks_params, reset),
};

const struct field_table locks_table =
	FIELD_TABLE("struct Locks", struct locks_params, locks_fields);

/* The whole configuration */

static const struct field config_document_fields[] = {
	F_REFUSED("balloon", FIELD_NULL),
	F_ARRAY("drives", struct config_document, vm.drives, vm.drive_count, struct drive_config,
		drive_table, .flags = FIELD_REQUIRED),
	F_OBJECT("boot-source", struct config_document, vm.boot_source, struct boot_source_config,
		 boot_source_table, .flags = FIELD_REQUIRED | FIELD_NULL,
		 F_HAS(struct config_document, vm.has_boot_source)),
	F_REFUSED("cpu-config", FIELD_NULL),
	F_OBJECT("logger", struct config_document, vm.logger, struct logger_config, logger_table,
		 .flags = FIELD_NULL, F_HAS(struct config_document, vm.has_logger)),
	F_OBJECT("machine-config", struct config_document, vm.machine, struct machine_config,
		 machine_table, .flags = FIELD_NULL, F_HAS(struct config_document, has_machine)),
	F_OBJECT("metrics", struct config_document, vm.metrics, struct metrics_config,
		 metrics_table, .flags = FIELD_NULL,
		 F_HAS(struct config_document, vm.has_metrics)),
	F_REFUSED("mmds-config", FIELD_NULL),
	F_ARRAY("network-interfaces", struct config_document, vm.nets, vm.net_count,
		struct net_config, net_table),
	F_REFUSED("vsock", FIELD_NULL),
	F_OBJECT("entropy", struct config_document, vm.entropy, struct entropy_config,
		 entropy_table, .flags = FIELD_NULL,
		 F_HAS(struct config_document, vm.has_entropy)),
	F_REFUSED("pmem", FIELD_LIST),
	F_REFUSED("memory-hotplug", FIELD_NULL),
	/* ours, and not in what is shown */
	F_OBJECT("rtc", struct config_document, vm.rtc, struct rtc_config, rtc_table,
		 .flags = FIELD_SILENT, F_HAS(struct config_document, has_rtc)),
	F_OBJECT("spin", struct config_document, vm.spin, struct spin_config, spin_table,
		 .flags = FIELD_SILENT, F_HAS(struct config_document, has_spin)),
	F_OBJECT("topology", struct config_document, vm.topology, struct topology_config,
		 topology_table, .flags = FIELD_SILENT,
		 F_HAS(struct config_document, has_topology)),
	F_OBJECT("affinity", struct config_document, vm.affinity, struct affinity_config,
		 affinity_table, .flags = FIELD_SILENT,
		 F_HAS(struct config_document, has_affinity)),
};

const struct field_table config_document_table =
	FIELD_TABLE("struct VmmConfig", struct config_document, config_document_fields,
		    .open = true);
