/*
 * Defaults of the configuration and the relations that no single field shows.
 * Messages that clients of Firecracker's API look for are worded as they know them.
 *
 * Threads: main. Locks: none.
 * Not here: types and ranges of fields (api/), opening what is named (control.c).
 */
#include "vmm/config.h"

#include <errno.h>
#include <string.h>

#define DEFAULT_MEM_MIB 128
#define MTU_MIN 68
#define MTU_MAX 65535

#if defined(__aarch64__)
static const bool smt_possible = false;
#else
static const bool smt_possible = true;
#endif

void config_set_defaults(struct vm_config *c)
{
	c->machine.vcpu_count = 1;
	c->machine.mem_size_mib = DEFAULT_MEM_MIB;
	c->logger.level = LOG_LEVEL_INFO;
	c->serial.console = CONSOLE_STDIO;
	c->spin = (struct spin_config)SPIN_CONFIG_DEFAULTS;
}

void config_init(struct vm_config *c)
{
	memset(c, 0, sizeof(*c));
	config_set_defaults(c);
}

static int check_vcpus(const struct machine_config *m, struct error *err)
{
	bool odd = m->smt && m->vcpu_count > 1 && m->vcpu_count % 2 == 1;

	if (m->smt && !smt_possible)
		return error_set(err, -EINVAL, "Enabling simultaneous multithreading is not "
					       "supported on aarch64.");
	if (m->vcpu_count >= 1 && m->vcpu_count <= LIMIT_VCPUS && !odd)
		return 0;
	return error_set(err, -EINVAL, "The number of vCPUs must be greater than 0, less than %d "
				       "and must be 1 or an even number if SMT is enabled.",
			 LIMIT_VCPUS);
}

int config_check_machine(const struct machine_config *m, struct error *err)
{
	uint64_t unit = m->huge_pages == HUGE_PAGES_NONE ? 1 : 2;
	int ret = check_vcpus(m, err);

	if (ret < 0)
		return ret;
	if (m->mem_size_mib == 0 || m->mem_size_mib % unit)
		return error_set(err, -EINVAL, "The memory size (MiB) is either 0, or not a "
					       "multiple of the configured page size.");
	if (m->mem_size_mib > LIMIT_MEM_MIB)
		return error_set(err, -EINVAL, "The memory size (MiB) is larger than the limit of "
					       "%llu.", LIMIT_MEM_MIB);
	return 0;
}

static bool is_printable(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e)
			return false;
	}
	return true;
}

int config_check_boot_source(const struct boot_source_config *b, struct error *err)
{
	size_t len = strlen(b->boot_args);

	if (!b->kernel_image_path[0])
		return error_set(err, -EINVAL, "The kernel file cannot be opened: "
					       "kernel_image_path is empty");
	if (len >= LIMIT_CMDLINE)
		return error_set(err, -EINVAL, "The kernel command line is invalid: boot_args has "
					       "%zu bytes, the most is %d", len, LIMIT_CMDLINE - 1);
	if (!is_printable(b->boot_args))
		return error_set(err, -EINVAL, "The kernel command line is invalid: boot_args has "
					       "a character that is no printable ASCII");
	return 0;
}

/* Ids become names of threads, of metrics groups and parts of paths in the API. */
static int check_id(const char *what, const char *id, struct error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-";

	if (id[0] && id[strspn(id, allowed)] == '\0')
		return 0;
	return error_set(err, -EINVAL, "%s must be 1 to %d letters, digits, underscores or "
				       "hyphens", what, LIMIT_ID);
}

int config_check_drive(const struct vm_config *c, const struct drive_config *d, struct error *err)
{
	uint32_t i;
	int ret = check_id("drive_id", d->drive_id, err);

	if (ret < 0)
		return ret;
	if (!d->path_on_host[0])
		return error_set(err, -EINVAL, "Unable to create the virtio block device: "
					       "Invalid block config. path_on_host is not given");
	for (i = 0; d->is_root_device && i < c->drive_count; i++) {
		if (c->drives[i].is_root_device && strcmp(c->drives[i].drive_id, d->drive_id) != 0)
			return error_set(err, -EINVAL, "A root block device already exists!");
	}
	return 0;
}

static int check_mac(const struct vm_config *c, const struct net_config *n, struct error *err)
{
	const uint8_t *m = n->guest_mac;
	uint32_t i;

	for (i = 0; n->has_guest_mac && i < c->net_count; i++) {
		if (c->nets[i].has_guest_mac && !memcmp(c->nets[i].guest_mac, m, 6) &&
		    strcmp(c->nets[i].iface_id, n->iface_id) != 0)
			return error_set(err, -EINVAL, "The MAC address is already in use: "
						       "%02x:%02x:%02x:%02x:%02x:%02x",
					 m[0], m[1], m[2], m[3], m[4], m[5]);
	}
	return 0;
}

int config_check_net(const struct vm_config *c, const struct net_config *n, struct error *err)
{
	int ret = check_id("iface_id", n->iface_id, err);

	if (ret < 0)
		return ret;
	if (!n->host_dev_name[0])
		return error_set(err, -EINVAL, "Could not create the network device: "
					       "host_dev_name is empty");
	if (n->mtu != 0 && (n->mtu < MTU_MIN || n->mtu > MTU_MAX))
		return error_set(err, -EINVAL, "Could not create the network device: MTU %u is out "
					       "of range [%d, %d]", n->mtu, MTU_MIN, MTU_MAX);
	return check_mac(c, n, err);
}

int config_check_spin(const struct spin_config *s, struct error *err)
{
	if (s->period_ms < LIMIT_SPIN_PERIOD_MIN_MS || s->period_ms > LIMIT_SPIN_PERIOD_MAX_MS)
		return error_set(err, -EINVAL, "period_ms must be from %d to %d",
				 LIMIT_SPIN_PERIOD_MIN_MS, LIMIT_SPIN_PERIOD_MAX_MS);
	if (s->has_halt_poll_ns && s->halt_poll_ns > LIMIT_HALT_POLL_NS)
		return error_set(err, -EINVAL, "halt_poll_ns must be from 0 to %u",
				 LIMIT_HALT_POLL_NS);
	if (s->halt_poll_max_ns > LIMIT_HALT_POLL_NS)
		return error_set(err, -EINVAL, "halt_poll_max_ns must be from 0 to %u",
				 LIMIT_HALT_POLL_NS);
	return 0;
}

int config_find_drive(const struct vm_config *c, const char *drive_id)
{
	uint32_t i;

	for (i = 0; i < c->drive_count; i++) {
		if (!strcmp(c->drives[i].drive_id, drive_id))
			return (int)i;
	}
	return -ENOENT;
}

int config_find_net(const struct vm_config *c, const char *iface_id)
{
	uint32_t i;

	for (i = 0; i < c->net_count; i++) {
		if (!strcmp(c->nets[i].iface_id, iface_id))
			return (int)i;
	}
	return -ENOENT;
}
