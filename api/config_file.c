/*
 * The configuration file. Threads: main. Locks: none.
 */
#include "api/config_file.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/schema.h"
#include "vmm/base/cleanup.h"
#include "vmm/base/fd.h"
#include "vmm/control.h"

static const struct json_limits file_limits = { LIMIT_JSON_DEPTH, LIMIT_CONFIG_TOKENS };

/* The whole file; *ret_text is to be freed. */
static int read_file(const char *path, char **ret_text, size_t *ret_len, struct error *err)
{
	_cleanup_close_ int fd = fd_open_file(path, false, false, "The configuration file cannot be opened",
					       err);
	_cleanup_free_ char *text = NULL;
	uint64_t size = 0;
	int ret;

	if (fd < 0)
		return fd;
	ret = fd_size(fd, &size);
	if (ret < 0)
		return error_set_errno(err, ret, "cannot read the configuration file %s", path);
	if (size > LIMIT_CONFIG_FILE)
		return error_set(err, -EFBIG, "the configuration file %s has %llu bytes, the most "
					      "is %llu", path, (unsigned long long)size,
				 LIMIT_CONFIG_FILE);
	text = malloc(size + 1);
	if (!text)
		return error_set(err, -ENOMEM, "no memory for the configuration file");
	ret = fd_pread_all(fd, text, size, 0);
	if (ret < 0)
		return error_set_errno(err, ret, "cannot read the configuration file %s", path);
	*ret_text = ptr_take(&text);
	*ret_len = size;
	return 0;
}

static int prefixed(int code, struct error *err, const char *prefix)
{
	if (code < 0)
		error_prefix(err, "%s", prefix);
	return code;
}

static int apply_devices(struct vm *vm, const struct vm_config *c, struct error *err)
{
	int ret = 0;
	uint32_t i;

	for (i = 0; ret == 0 && i < c->drive_count; i++)
		ret = prefixed(control_put_drive(vm, &c->drives[i], err), err,
			       "Block device error: ");
	for (i = 0; ret == 0 && i < c->net_count; i++)
		ret = prefixed(control_put_net(vm, &c->nets[i], err), err,
			       "Network device error: ");
	if (ret == 0 && c->has_entropy)
		ret = prefixed(control_put_entropy(vm, &c->entropy, err), err,
			       "Entropy device error: ");
	return ret;
}

static int apply_affinity(struct vm *vm, const struct affinity_config *a, struct error *err)
{
	int ret = 0;
	uint32_t i;

	for (i = 0; ret == 0 && i < a->vcpu_count; i++)
		ret = control_put_vcpu_affinity(vm, a->vcpus[i].index, &a->vcpus[i].cpus, err);
	for (i = 0; ret == 0 && i < a->device_count; i++)
		ret = control_put_device_affinity(vm, a->devices[i].device, &a->devices[i].cpus,
						  err);
	return prefixed(ret, err, "Affinity error: ");
}

static int apply(struct vm *vm, const struct config_document *d, struct error *err)
{
	const struct vm_config *c = &d->vm;
	int ret = 0;

	if (c->has_logger)
		ret = prefixed(control_put_logger(vm, &c->logger, err), err, "Logger error: ");
	if (ret == 0 && c->has_metrics)
		ret = prefixed(control_put_metrics(vm, &c->metrics, err), err, "Metrics error: ");
	if (ret == 0 && d->has_machine)
		ret = prefixed(control_put_machine(vm, &c->machine, err), err,
			       "VM config error: ");
	if (ret == 0 && d->has_topology)
		ret = prefixed(control_put_topology(vm, &c->topology, err), err,
			       "Topology error: ");
	if (ret == 0 && d->has_affinity)
		ret = apply_affinity(vm, &c->affinity, err);
	if (ret == 0 && d->has_rtc)
		ret = prefixed(control_put_rtc(vm, &c->rtc, err), err, "Clock error: ");
	if (ret == 0 && d->has_spin)
		ret = prefixed(control_put_spin(vm, &c->spin, err), err, "Spin policy error: ");
	if (ret == 0)
		ret = prefixed(control_put_boot_source(vm, &c->boot_source, err), err,
			       "Boot source error: ");
	return ret == 0 ? apply_devices(vm, c, err) : ret;
}

int api_load_config_file(struct vm *vm, const char *path, struct error *err)
{
	_cleanup_free_ struct config_document *document = malloc(sizeof(*document));
	_cleanup_free_ char *text = NULL;
	struct field_error fault;
	size_t len = 0;
	int ret;

	if (!document)
		return error_set(err, -ENOMEM, "no memory for the configuration file");
	ret = read_file(path, &text, &len, err);
	if (ret < 0)
		return ret;
	ret = fields_read_text(&config_document_table, text, len, &file_limits, FIELDS_WHOLE,
			       document, NULL, &fault);
	if (ret < 0)
		return error_set(err, ret, "Invalid JSON: %.480s", fault.text);
	return apply(vm, document, err);
}
