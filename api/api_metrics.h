/*
 * Counters of the control socket. Bumped on the main thread; no locks.
 */
#ifndef LULL_API_API_METRICS_H
#define LULL_API_API_METRICS_H

#include "vmm/metrics.h"

struct api_get_metrics {
	metric instance_info_count;
	metric machine_cfg_count;
	metric vmm_version_count;
};

struct api_put_metrics {
	metric actions_count;
	metric actions_fails;
	metric boot_source_count;
	metric boot_source_fails;
	metric drive_count;
	metric drive_fails;
	metric logger_count;
	metric logger_fails;
	metric machine_cfg_count;
	metric machine_cfg_fails;
	metric metrics_count;
	metric metrics_fails;
	metric network_count;
	metric network_fails;
	metric serial_count;
	metric serial_fails;
};

struct api_patch_metrics {
	metric drive_count;
	metric drive_fails;
	metric network_count;
	metric network_fails;
	metric machine_cfg_count;
	metric machine_cfg_fails;
};

struct api_deprecated_metrics {
	metric deprecated_http_api_calls;
};

struct api_latency_metrics {
	metric pause_vm; /* microseconds from request to answer */
	metric resume_vm;
};

struct api_metrics {
	struct api_get_metrics get;
	struct api_put_metrics put;
	struct api_patch_metrics patch;
	struct api_deprecated_metrics deprecated;
	struct api_latency_metrics latency;
};

/* Adds the groups to the metrics; -ENOMEM, -EINVAL. */
int api_metrics_add(struct metrics *m, const struct api_metrics *a);
void api_metrics_remove(struct metrics *m, const struct api_metrics *a);

#endif
