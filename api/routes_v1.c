/*
 * Routes of our own surface. Threads: any (constant data). Locks: none.
 */
#include "api/handlers.h"
#include "api/router.h"
#include "api/schema.h"
#include "vmm/control.h"

const struct route routes_v1[] = {
	{ API_GET, "/v1/vm", PHASES_ANY, NULL, handle_v1_get_vm },
	{ API_PATCH, "/v1/vm", PHASES_ANY, &vm_v1_table, handle_v1_patch_vm },
	{ API_GET, "/v1/devices", PHASES_ANY, NULL, handle_v1_get_devices },
	{ API_GET, "/v1/vcpus", PHASES_ANY, NULL, handle_v1_get_vcpus },
	{ API_GET, "/v1/vcpus/{id}", PHASES_AFTER, NULL, handle_v1_get_vcpu },
	{ API_GET, "/v1/vcpus/{id}/affinity", PHASES_ANY, NULL, handle_v1_get_vcpu_affinity },
	{ API_PUT, "/v1/vcpus/{id}/affinity", PHASES_ANY, &cpus_table,
	  handle_v1_put_vcpu_affinity },
	{ API_GET, "/v1/devices/{id}/affinity", PHASES_ANY, NULL, handle_v1_get_device_affinity },
	{ API_PUT, "/v1/devices/{id}/affinity", PHASES_ANY, &cpus_table,
	  handle_v1_put_device_affinity },
	{ API_GET, "/v1/topology", PHASES_ANY, NULL, handle_v1_get_topology },
	{ API_PUT, "/v1/topology", PHASES_BEFORE, &topology_table, handle_v1_put_topology },
	{ API_GET, "/v1/locks", PHASES_ANY, NULL, handle_v1_get_locks },
	{ API_PUT, "/v1/locks", PHASES_ANY, &locks_table, handle_v1_put_locks },
	{ API_GET, "/v1/spin", PHASES_ANY, NULL, handle_v1_get_spin },
	{ API_PUT, "/v1/spin", PHASES_BEFORE, &spin_table, handle_v1_put_spin },
	{ API_PUT, "/v1/serial", PHASES_BEFORE, &console_table, handle_v1_put_serial },
	{ API_PUT, "/v1/rtc", PHASES_BEFORE, &rtc_table, handle_v1_put_rtc },
	{ 0 },
};
