/*
 * Handlers of the topology: what a client asks for, and the model that came of it.
 *
 * Threads: main. Locks: none. Not here: the model and its rules (vmm/topology).
 */
#include "api/handlers.h"

#include <inttypes.h>

#include "api/respond.h"
#include "vmm/control.h"
#include "vmm/topology.h"

static const char *origin_name(enum topology_origin from)
{
	static const char *const names[] = {
		[TOPOLOGY_BY_DEFAULT] = "default",
		[TOPOLOGY_BY_MACHINE] = "machine-config",
		[TOPOLOGY_BY_HOST] = "host",
		[TOPOLOGY_BY_CLIENT] = "client",
	};

	return names[from];
}

static void print_units(struct buf *body, const struct topology *t)
{
	buf_printf(body,
		   "\"sockets\":%" PRIu32 ",\"dies\":%" PRIu32 ",\"cores\":%" PRIu32
		   ",\"threads\":%" PRIu32,
		   t->sockets, t->dies, t->cores, t->threads);
	buf_printf(body,
		   ",\"from\":{\"sockets\":\"%s\",\"dies\":\"%s\",\"cores\":\"%s\","
		   "\"threads\":\"%s\"}",
		   origin_name(t->from.sockets), origin_name(t->from.dies),
		   origin_name(t->from.cores), origin_name(t->from.threads));
}

static void print_nodes(struct buf *body, const struct topology *t)
{
	uint32_t cpus, i, cpu;

	if (!t->node_count) {
		buf_printf(body, ",\"numa\":null");
		return;
	}
	cpus = topology_cpus_in(t, t->node);
	buf_printf(body, ",\"numa\":{\"node\":\"%s\",\"from\":{\"mem_size_mib\":\"%s\"},\"nodes\":[",
		   topology_level_name(t->node), origin_name(t->node_mib_from));
	for (i = 0; i < t->node_count; i++) {
		buf_printf(body, "%s{\"mem_size_mib\":%" PRIu64 ",\"vcpus\":[", i ? "," : "",
			   t->node_mib[i]);
		for (cpu = i * cpus; cpu < (i + 1) * cpus; cpu++)
			buf_printf(body, "%s%" PRIu32, cpu > i * cpus ? "," : "", cpu);
		buf_printf(body, "]}");
	}
	buf_printf(body, "]}");
}

/* The vCPUs that share the cache, a list for each group. */
static void print_groups(struct buf *body, const struct topology *t, enum topology_cache_kind kind)
{
	unsigned shift = topology_cache_shift(t, kind);
	uint32_t count = topology_cpu_count(t), group = 0, i;

	buf_printf(body, ",\"groups\":[");
	for (i = 0; i < count; i++) {
		uint32_t next = topology_apic_id(t, i) >> shift;

		if (i == 0)
			buf_printf(body, "[0");
		else
			buf_printf(body, "%s%" PRIu32, next == group ? "," : "],[", i);
		group = next;
	}
	buf_printf(body, count ? "]]" : "]");
}

static void print_cache(struct buf *body, const struct topology *t, enum topology_cache_kind kind)
{
	const struct topology_cache *c = &t->caches[kind];

	buf_printf(body, "%s\"%s\":{\"enabled\":", kind ? "," : "", topology_cache_name(kind));
	if (!topology_cache_exists(c)) {
		buf_printf(body, "false,\"from\":{\"enabled\":\"%s\"}}",
			   origin_name(c->from.enabled));
		return;
	}
	buf_printf(body,
		   "true,\"size_kib\":%" PRIu32 ",\"ways\":%" PRIu32 ",\"line\":%" PRIu32
		   ",\"sets\":%" PRIu32 ",\"shared_by\":\"%s\"",
		   c->geometry.size_kib, c->geometry.ways, c->geometry.line,
		   topology_cache_sets(c), topology_level_name(c->shared_by));
	buf_printf(body,
		   ",\"from\":{\"enabled\":\"%s\",\"size_kib\":\"%s\",\"ways\":\"%s\","
		   "\"line\":\"%s\",\"shared_by\":\"%s\"}",
		   origin_name(c->from.enabled), origin_name(c->from.size_kib),
		   origin_name(c->from.ways), origin_name(c->from.line),
		   origin_name(c->from.shared_by));
	print_groups(body, t, kind);
	buf_printf(body, ",\"narrowed\":%s}",
		   c->is_narrowed ? "\"vCPUs are pinned to CPUs of different host caches\"" :
				    "null");
}

static void print_vcpus(struct buf *body, const struct topology *t)
{
	uint32_t count = topology_cpu_count(t), i;

	buf_printf(body, ",\"vcpus\":[");
	for (i = 0; i < count; i++)
		buf_printf(body,
			   "%s{\"index\":%" PRIu32 ",\"id\":%" PRIu32 ",\"socket\":%" PRIu32
			   ",\"die\":%" PRIu32 ",\"core\":%" PRIu32 ",\"thread\":%" PRIu32
			   ",\"node\":%" PRIu32 "}",
			   i ? "," : "", i, topology_apic_id(t, i),
			   topology_unit_of(t, TOPOLOGY_SOCKET, i),
			   topology_unit_of(t, TOPOLOGY_DIE, i),
			   topology_unit_of(t, TOPOLOGY_CORE, i),
			   topology_unit_of(t, TOPOLOGY_THREAD, i), topology_node_of(t, i));
	buf_printf(body, "]");
}

void handle_v1_get_topology(struct api_call *call)
{
	struct topology t;
	struct buf body;
	int kind;

	control_get_topology(call->api->vm, &t);
	buf_init(&body, LIMIT_API_REPLY);
	buf_append(&body, "{", 1);
	print_units(&body, &t);
	print_nodes(&body, &t);
	buf_printf(&body, ",\"caches\":{");
	for (kind = 0; kind < TOPOLOGY_CACHES; kind++)
		print_cache(&body, &t, (enum topology_cache_kind)kind);
	buf_append(&body, "}", 1);
	print_vcpus(&body, &t);
	buf_append(&body, "}", 1);
	respond_json(call, &body);
	buf_fini(&body);
}

void handle_v1_put_topology(struct api_call *call)
{
	struct error err;
	int ret = control_put_topology(call->api->vm, call->params, &err);

	handle_done(call, ret, &err);
}
