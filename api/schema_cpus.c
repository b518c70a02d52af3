/*
 * Field tables of topology and affinity. Threads: any (constant data). Locks: none.
 */
#include "api/schema.h"

static const struct field_name sharing_names[] = {
	{ "thread", TOPOLOGY_THREAD }, { "core", TOPOLOGY_CORE }, { "die", TOPOLOGY_DIE },
	{ "socket", TOPOLOGY_SOCKET }, { "all", TOPOLOGY_ALL },	  { 0 },
};

static const struct field_name node_names[] = {
	{ "die", TOPOLOGY_DIE },
	{ "socket", TOPOLOGY_SOCKET },
	{ 0 },
};

/* A number that counts as given also if it is 0; its range is the machine's matter. */
#define F_NUMBER(key, struct_type, member)                                 \
	F_U32(key, struct_type, member.value, UINT32_MAX, "u32",           \
	      F_HAS(struct_type, member.given))

static const struct field cache_fields[] = {
	F_NUMBER("size_kib", struct topology_cache_config, size_kib),
	F_NUMBER("ways", struct topology_cache_config, ways),
	F_NUMBER("line", struct topology_cache_config, line),
	F_ENUM("shared_by", struct topology_cache_config, shared_by, enum topology_level,
	       sharing_names, F_HAS(struct topology_cache_config, has_shared_by)),
	F_BOOL("enabled", struct topology_cache_config, enabled,
	       F_HAS(struct topology_cache_config, has_enabled)),
};

static const struct field_table cache_table =
	FIELD_TABLE("struct Cache", struct topology_cache_config, cache_fields);

#define F_CACHE(key, kind)                                            \
	F_OBJECT(key, struct topology_caches_config, of[kind],        \
		 struct topology_cache_config, cache_table)

static const struct field caches_fields[] = {
	F_CACHE("l1d", TOPOLOGY_L1D),
	F_CACHE("l1i", TOPOLOGY_L1I),
	F_CACHE("l2", TOPOLOGY_L2),
	F_CACHE("l3", TOPOLOGY_L3),
};

static const struct field_table caches_table =
	FIELD_TABLE("struct Caches", struct topology_caches_config, caches_fields);

static const struct field numa_node_fields[] = {
	F_U64("mem_size_mib", struct numa_node_config, mem_size_mib, "usize",
	      .flags = FIELD_REQUIRED),
};

static const struct field_table numa_node_table =
	FIELD_TABLE("struct NumaNode", struct numa_node_config, numa_node_fields);

static const struct field numa_fields[] = {
	F_ENUM("node", struct numa_config, node, enum topology_level, node_names,
	       .flags = FIELD_REQUIRED),
	F_ARRAY("nodes", struct numa_config, nodes, node_count, struct numa_node_config,
		numa_node_table, F_HAS(struct numa_config, has_nodes)),
};

static const struct field_table numa_table =
	FIELD_TABLE("struct Numa", struct numa_config, numa_fields);

static const struct field topology_fields[] = {
	F_NUMBER("sockets", struct topology_config, sockets),
	F_NUMBER("dies", struct topology_config, dies),
	F_NUMBER("cores", struct topology_config, cores),
	F_NUMBER("threads", struct topology_config, threads),
	F_OBJECT("numa", struct topology_config, numa, struct numa_config, numa_table,
		 F_HAS(struct topology_config, has_numa)),
	F_OBJECT("caches", struct topology_config, caches, struct topology_caches_config,
		 caches_table),
};

const struct field_table topology_table =
	FIELD_TABLE("struct Topology", struct topology_config, topology_fields);

static const struct field cpus_fields[] = {
	F_CPUS("cpus", struct affinity_params, cpus, .flags = FIELD_REQUIRED),
};

const struct field_table cpus_table =
	FIELD_TABLE("struct Affinity", struct affinity_params, cpus_fields);

static const struct field vcpu_affinity_fields[] = {
	F_U32("index", struct vcpu_affinity_config, index, LIMIT_VCPUS - 1, "the index of a vCPU",
	      .flags = FIELD_REQUIRED),
	F_CPUS("cpus", struct vcpu_affinity_config, cpus, .flags = FIELD_REQUIRED),
};

static const struct field_table vcpu_affinity_table =
	FIELD_TABLE("struct VcpuAffinity", struct vcpu_affinity_config, vcpu_affinity_fields);

static const struct field device_affinity_fields[] = {
	F_STRING("device", struct device_affinity_config, device, .flags = FIELD_REQUIRED),
	F_CPUS("cpus", struct device_affinity_config, cpus, .flags = FIELD_REQUIRED),
};

static const struct field_table device_affinity_table =
	FIELD_TABLE("struct DeviceAffinity", struct device_affinity_config,
		    device_affinity_fields);

static const struct field affinity_fields[] = {
	F_ARRAY("vcpus", struct affinity_config, vcpus, vcpu_count, struct vcpu_affinity_config,
		vcpu_affinity_table),
	F_ARRAY("devices", struct affinity_config, devices, device_count,
		struct device_affinity_config, device_affinity_table),
};

const struct field_table affinity_table =
	FIELD_TABLE("struct Affinities", struct affinity_config, affinity_fields);
