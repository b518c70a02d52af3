/*
 * From options to requests. Threads: main. Locks: none.
 */
#include "api/ctl/run_requests.h"

#include <errno.h>
#include <inttypes.h>

#include "api/ctl/http.h"
#include "api/schema.h"

#define BODY_MAX LIMIT_API_BODY

#if defined(__aarch64__)
#define DEFAULT_CMDLINE "console=ttyAMA0 panic=1"
#else
#define DEFAULT_CMDLINE "console=ttyS0 reboot=k panic=1"
#endif

static int put(const struct ctl_server *to, const char *path, const char *body, struct error *err)
{
	struct ctl_answer got;
	int ret = ctl_ask(to, "PUT", path, body, &got, err);

	if (ret == 0)
		buf_fini(&got.body);
	return ret;
}

/* Sends a struct by its field table; "/drives/" and an id make the path. */
static int put_struct(const struct ctl_server *to, const char *path, const char *id,
		      const struct field_table *table, const void *value, struct error *err)
{
	struct buf body, full;
	int ret;

	buf_init(&body, BODY_MAX);
	buf_init(&full, LIMIT_API_URI);
	fields_print(table, value, &body);
	buf_printf(&full, "%s%s", path, id);
	if (buf_failed(&body) || buf_failed(&full))
		ret = error_set(err, -ENOMEM, "no memory for a request");
	else
		ret = put(to, buf_text(&full), buf_text(&body), err);
	buf_fini(&body);
	buf_fini(&full);
	return ret;
}

static int put_machine(const struct run_options *o, const struct ctl_server *to, struct error *err)
{
	const struct machine_config m = { .vcpu_count = o->cpus, .mem_size_mib = o->memory_mib };

	return put_struct(to, "/machine-config", "", &machine_table, &m, err);
}

static int put_boot_source(const struct run_options *o, const struct ctl_server *to,
			   struct error *err)
{
	struct buf body;
	int ret;

	buf_init(&body, BODY_MAX);
	buf_printf(&body, "{\"kernel_image_path\":");
	buf_append_json_string(&body, o->kernel);
	if (o->initrd) {
		buf_printf(&body, ",\"initrd_path\":");
		buf_append_json_string(&body, o->initrd);
	}
	buf_printf(&body, ",\"boot_args\":");
	buf_append_json_string(&body, o->cmdline ? o->cmdline : DEFAULT_CMDLINE);
	buf_append(&body, "}", 1);
	ret = buf_failed(&body) ? error_set(err, -E2BIG, "the kernel's paths and command line are "
							 "too long")
				: put(to, "/boot-source", buf_text(&body), err);
	buf_fini(&body);
	return ret;
}

static int put_devices(const struct run_options *o, const struct ctl_server *to, struct error *err)
{
	int ret = 0;
	uint32_t i;

	for (i = 0; ret == 0 && i < o->drive_count; i++)
		ret = put_struct(to, "/drives/", o->drives[i].drive_id, &drive_table,
				 &o->drives[i], err);
	for (i = 0; ret == 0 && i < o->net_count; i++)
		ret = put_struct(to, "/network-interfaces/", o->nets[i].iface_id, &net_table,
				 &o->nets[i], err);
	if (ret == 0 && o->entropy)
		ret = put(to, "/entropy", "{}", err);
	if (ret == 0 && o->no_console)
		ret = put(to, "/v1/serial", "{\"console\":\"None\"}", err);
	return ret;
}

int run_requests_send(const struct run_options *o, const struct ctl_server *to,
		      struct error *err)
{
	int ret = put_machine(o, to, err);

	if (ret == 0)
		ret = put_boot_source(o, to, err);
	if (ret == 0)
		ret = put_devices(o, to, err);
	if (ret == 0)
		ret = put(to, "/actions", "{\"action_type\":\"InstanceStart\"}", err);
	return ret;
}
