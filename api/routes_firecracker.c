/*
 * Routes of the unversioned paths: Firecracker's API. What it has and we do
 * not is not here and answers as an unknown path.
 * Threads: any (constant data). Locks: none.
 */
#include "api/handlers.h"
#include "api/router.h"
#include "api/schema.h"
#include "vmm/control.h"

#define GET_COUNT(name) .count = ROUTE_METRIC(get.name##_count)
#define PUT_COUNT(name) \
	.count = ROUTE_METRIC(put.name##_count), .fails = ROUTE_METRIC(put.name##_fails)
#define PATCH_COUNT(name) \
	.count = ROUTE_METRIC(patch.name##_count), .fails = ROUTE_METRIC(patch.name##_fails)

_Static_assert(offsetof(struct drive_config, drive_id) == 0, "for ROUTE_BODY_ID");
_Static_assert(offsetof(struct drive_patch, drive_id) == 0, "for ROUTE_BODY_ID");
_Static_assert(offsetof(struct net_config, iface_id) == 0, "for ROUTE_BODY_ID");
_Static_assert(offsetof(struct net_patch, iface_id) == 0, "for ROUTE_BODY_ID");

const struct route routes_firecracker[] = {
	{ API_GET, "/", PHASES_ANY, NULL, handle_get_instance, GET_COUNT(instance_info) },
	{ API_GET, "/version", PHASES_ANY, NULL, handle_get_version, GET_COUNT(vmm_version) },
	{ API_GET, "/machine-config", PHASES_ANY, NULL, handle_get_machine,
	  GET_COUNT(machine_cfg) },
	{ API_GET, "/vm/config", PHASES_ANY, NULL, handle_get_vm_config },

	{ API_PUT, "/machine-config", PHASES_BEFORE, &machine_table, handle_put_machine,
	  "Machine config error: ", PUT_COUNT(machine_cfg) },
	{ API_PATCH, "/machine-config", PHASES_BEFORE, &machine_table, handle_patch_machine,
	  "Machine config error: ", FIELDS_PARTIAL, PATCH_COUNT(machine_cfg) },
	{ API_PUT, "/boot-source", PHASES_BEFORE, &boot_source_table, handle_put_boot_source,
	  "Boot source error: ", PUT_COUNT(boot_source) },
	{ API_PUT, "/drives/{id}", PHASES_BEFORE, &drive_table, handle_put_drive,
	  "Drive config error: ", .body_id = ROUTE_BODY_ID, PUT_COUNT(drive) },
	{ API_PUT, "/network-interfaces/{id}", PHASES_BEFORE, &net_table, handle_put_net,
	  "Network config error: ", .body_id = ROUTE_BODY_ID_SHOWN, PUT_COUNT(network) },
	{ API_PUT, "/entropy", PHASES_BEFORE, &entropy_table, handle_put_entropy,
	  "Entropy config error: " },
	{ API_PUT, "/serial", PHASES_BEFORE, &serial_table, handle_put_serial,
	  "Serial config error: ", PUT_COUNT(serial) },
	{ API_PUT, "/logger", PHASES_BEFORE, &logger_table, handle_put_logger,
	  "Logger error: ", PUT_COUNT(logger) },
	{ API_PUT, "/metrics", PHASES_BEFORE, &metrics_table, handle_put_metrics,
	  "Metrics error: ", PUT_COUNT(metrics) },

	/* the phases of each action are the handler's matter */
	{ API_PUT, "/actions", PHASES_ANY, &action_table, handle_put_actions,
	  "Internal VMM error: ", PUT_COUNT(actions) },
	{ API_PATCH, "/drives/{id}", PHASES_AFTER, &drive_patch_table, handle_patch_drive,
	  "Drive config error: ", .body_id = ROUTE_BODY_ID, PATCH_COUNT(drive) },
	{ API_PATCH, "/network-interfaces/{id}", PHASES_AFTER, &net_patch_table, handle_patch_net,
	  "Network config error: ", .body_id = ROUTE_BODY_ID_SHOWN, PATCH_COUNT(network) },
	{ API_PATCH, "/vm", PHASES_AFTER, &vm_table, handle_patch_vm, "Internal VMM error: " },
	{ 0 },
};
