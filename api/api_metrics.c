/*
 * Metric groups of the control socket. Threads: main. Locks: none.
 */
#include "api/api_metrics.h"

static const struct metric_field get_fields[] = {
	METRIC(struct api_get_metrics, instance_info_count),
	METRIC(struct api_get_metrics, machine_cfg_count),
	METRIC(struct api_get_metrics, vmm_version_count),
	{ 0 },
};

static const struct metric_field put_fields[] = {
	METRIC(struct api_put_metrics, actions_count),
	METRIC(struct api_put_metrics, actions_fails),
	METRIC(struct api_put_metrics, boot_source_count),
	METRIC(struct api_put_metrics, boot_source_fails),
	METRIC(struct api_put_metrics, drive_count),
	METRIC(struct api_put_metrics, drive_fails),
	METRIC(struct api_put_metrics, logger_count),
	METRIC(struct api_put_metrics, logger_fails),
	METRIC(struct api_put_metrics, machine_cfg_count),
	METRIC(struct api_put_metrics, machine_cfg_fails),
	METRIC(struct api_put_metrics, metrics_count),
	METRIC(struct api_put_metrics, metrics_fails),
	METRIC(struct api_put_metrics, network_count),
	METRIC(struct api_put_metrics, network_fails),
	METRIC(struct api_put_metrics, serial_count),
	METRIC(struct api_put_metrics, serial_fails),
	{ 0 },
};

static const struct metric_field patch_fields[] = {
	METRIC(struct api_patch_metrics, drive_count),
	METRIC(struct api_patch_metrics, drive_fails),
	METRIC(struct api_patch_metrics, network_count),
	METRIC(struct api_patch_metrics, network_fails),
	METRIC(struct api_patch_metrics, machine_cfg_count),
	METRIC(struct api_patch_metrics, machine_cfg_fails),
	{ 0 },
};

static const struct metric_field deprecated_fields[] = {
	METRIC(struct api_deprecated_metrics, deprecated_http_api_calls),
	{ 0 },
};

static const struct metric_field latency_fields[] = {
	METRIC_STORED(struct api_latency_metrics, pause_vm),
	METRIC_STORED(struct api_latency_metrics, resume_vm),
	{ 0 },
};

int api_metrics_add(struct metrics *m, const struct api_metrics *a)
{
	int ret = metrics_add_group(m, "get_api_requests", get_fields, &a->get);

	if (ret == 0)
		ret = metrics_add_group(m, "put_api_requests", put_fields, &a->put);
	if (ret == 0)
		ret = metrics_add_group(m, "patch_api_requests", patch_fields, &a->patch);
	if (ret == 0)
		ret = metrics_add_group(m, "deprecated_api", deprecated_fields, &a->deprecated);
	if (ret == 0)
		ret = metrics_add_group(m, "latencies_us", latency_fields, &a->latency);
	return ret;
}

void api_metrics_remove(struct metrics *m, const struct api_metrics *a)
{
	metrics_remove_group(m, &a->get);
	metrics_remove_group(m, &a->put);
	metrics_remove_group(m, &a->patch);
	metrics_remove_group(m, &a->deprecated);
	metrics_remove_group(m, &a->latency);
}
