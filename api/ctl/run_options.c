/*
 * Options of `lullctl run`. Threads: main. Locks: none.
 */
#include "api/ctl/run_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "api/fields.h"

const char run_options_help[] =
	"  run --kernel FILE [OPTION]... [-- LULLD-OPTION...]\n"
	"      --initrd FILE\n"
	"      --drive FILE[,ro][,root][,id=NAME][,engine=sync|async][,cache=unsafe|writeback]\n"
	"      --net TAP[,id=NAME][,mac=AA:BB:CC:DD:EE:FF]\n"
	"      --cpus N          vCPUs [1]\n"
	"      --memory N[M|G]   memory, in MiB without a unit [128]\n"
	"      --cmdline TEXT    kernel command line\n"
	"      --entropy         adds an entropy device\n"
	"      --no-console      runs without a console\n"
	"      --socket PATH     control socket of the VM\n"
	"      --id NAME         name of the VM\n"
	"      --log FILE        log of lulld\n"
	"      --level LEVEL     of that log\n"
	"      --lulld PATH      the daemon to run\n"
	"      Without --initrd the first --drive is the root, if none is marked as such.\n"
	"      Ctrl-A x ends the VM, Ctrl-A Ctrl-A sends one Ctrl-A.\n";

enum { OPT_KERNEL = 1, OPT_INITRD, OPT_DRIVE, OPT_NET, OPT_CPUS, OPT_MEMORY, OPT_CMDLINE,
       OPT_ENTROPY, OPT_NO_CONSOLE, OPT_SOCKET, OPT_ID, OPT_LOG, OPT_LEVEL, OPT_LULLD };

static const struct option long_options[] = {
	{ "kernel", required_argument, NULL, OPT_KERNEL },
	{ "initrd", required_argument, NULL, OPT_INITRD },
	{ "drive", required_argument, NULL, OPT_DRIVE },
	{ "net", required_argument, NULL, OPT_NET },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "cmdline", required_argument, NULL, OPT_CMDLINE },
	{ "entropy", no_argument, NULL, OPT_ENTROPY },
	{ "no-console", no_argument, NULL, OPT_NO_CONSOLE },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "id", required_argument, NULL, OPT_ID },
	{ "log", required_argument, NULL, OPT_LOG },
	{ "level", required_argument, NULL, OPT_LEVEL },
	{ "lulld", required_argument, NULL, OPT_LULLD },
	{ 0 },
};

static int copy_text(char *to, size_t size, const char *from, const char *what, struct error *err)
{
	if (strlen(from) >= size || !*from)
		return error_set(err, -EINVAL, "%s must have 1 to %zu bytes", what, size - 1);
	memcpy(to, from, strlen(from) + 1);
	return 0;
}

/* The next word of "a,b=c,d"; NULL at the end. Cuts the text. */
static char *next_part(char **rest)
{
	char *part = *rest;
	char *comma = part ? strchr(part, ',') : NULL;

	if (comma)
		*comma++ = '\0';
	*rest = comma;
	return part;
}

/* The value in "key=value", or NULL if it is another key. */
static const char *value_of(const char *part, const char *key)
{
	size_t n = strlen(key);

	return !strncmp(part, key, n) && part[n] == '=' ? part + n + 1 : NULL;
}

/* 0 and the number of the word among `names`, or -EINVAL. */
static int find_word(const char *word, const char *const *names, int *ret)
{
	int i;

	for (i = 0; names[i]; i++) {
		if (!strcmp(word, names[i])) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_drive_part(struct drive_config *d, const char *part, struct error *err)
{
	static const char *const engines[] = { "sync", "async", NULL };
	static const char *const caches[] = { "unsafe", "writeback", NULL };
	const char *value;
	int at;

	value = value_of(part, "id");
	if (value)
		return copy_text(d->drive_id, sizeof(d->drive_id), value, "--drive: id", err);
	value = value_of(part, "engine");
	if (value && find_word(value, engines, &at) == 0) {
		d->io_engine = at == 1 ? DRIVE_IO_ASYNC : DRIVE_IO_SYNC;
		return 0;
	}
	value = value_of(part, "cache");
	if (value && find_word(value, caches, &at) == 0) {
		d->cache_type = at == 1 ? DRIVE_CACHE_WRITEBACK : DRIVE_CACHE_UNSAFE;
		return 0;
	}
	if (!strcmp(part, "ro"))
		d->is_read_only = true;
	else if (!strcmp(part, "root"))
		d->is_root_device = true;
	else
		return error_set(err, -EINVAL, "--drive: unknown \"%s\"", part);
	return 0;
}

static int parse_drive(struct run_options *o, char *text, struct error *err)
{
	struct drive_config *d = &o->drives[o->drive_count];
	char *part = next_part(&text);
	int ret;

	if (o->drive_count == LIMIT_DRIVES)
		return error_set(err, -EINVAL, "more than %d drives", LIMIT_DRIVES);
	snprintf(d->drive_id, sizeof(d->drive_id), "drive%u", o->drive_count++);
	d->cache_type = DRIVE_CACHE_WRITEBACK; /* what a person at a console expects of a disk */
	ret = copy_text(d->path_on_host, sizeof(d->path_on_host), part, "--drive: the file", err);
	while (ret == 0 && (part = next_part(&text)) != NULL)
		ret = parse_drive_part(d, part, err);
	return ret;
}

static int parse_net_part(struct net_config *n, const char *part, struct error *err)
{
	const char *value = value_of(part, "id");

	if (value)
		return copy_text(n->iface_id, sizeof(n->iface_id), value, "--net: id", err);
	value = value_of(part, "mac");
	if (!value)
		return error_set(err, -EINVAL, "--net: unknown \"%s\"", part);
	if (fields_parse_mac(value, n->guest_mac) < 0)
		return error_set(err, -EINVAL, "--net: \"%s\" is no MAC address", value);
	n->has_guest_mac = true;
	return 0;
}

static int parse_net(struct run_options *o, char *text, struct error *err)
{
	struct net_config *n = &o->nets[o->net_count];
	char *part = next_part(&text);
	int ret;

	if (o->net_count == LIMIT_NETS)
		return error_set(err, -EINVAL, "more than %d network interfaces", LIMIT_NETS);
	snprintf(n->iface_id, sizeof(n->iface_id), "net%u", o->net_count++);
	ret = copy_text(n->host_dev_name, sizeof(n->host_dev_name), part, "--net: the TAP", err);
	while (ret == 0 && (part = next_part(&text)) != NULL)
		ret = parse_net_part(n, part, err);
	return ret;
}

/* A number with no sign; *ret_end is behind it. */
static int parse_number(const char *text, uint64_t *ret, char **ret_end)
{
	errno = 0;
	*ret = strtoull(text, ret_end, 10);
	return text[0] < '0' || text[0] > '9' || errno ? -EINVAL : 0;
}

static int parse_cpus(struct run_options *o, const char *text, struct error *err)
{
	uint64_t number;
	char *end;

	if (parse_number(text, &number, &end) < 0 || *end || number < 1 || number > LIMIT_VCPUS)
		return error_set(err, -EINVAL, "--cpus: \"%s\" is not a number from 1 to %d", text,
				 LIMIT_VCPUS);
	o->cpus = (uint32_t)number;
	return 0;
}

static int parse_memory(struct run_options *o, const char *text, struct error *err)
{
	uint64_t number = 0;
	char *end = NULL;
	bool good = parse_number(text, &number, &end) == 0 && number <= LIMIT_MEM_MIB;

	if (good && (*end == 'G' || *end == 'g')) {
		number *= 1024;
		end++;
	} else if (good && (*end == 'M' || *end == 'm')) {
		end++;
	}
	if (!good || *end || number < 1 || number > LIMIT_MEM_MIB)
		return error_set(err, -EINVAL, "--memory: \"%s\" is not a size from 1M to %lluG",
				 text, LIMIT_MEM_MIB / 1024);
	o->memory_mib = number;
	return 0;
}

/* Where the text of an option goes that is taken as it is; NULL for others. */
static const char **text_place(struct run_options *o, int option)
{
	switch (option) {
	case OPT_KERNEL:
		return &o->kernel;
	case OPT_INITRD:
		return &o->initrd;
	case OPT_CMDLINE:
		return &o->cmdline;
	case OPT_SOCKET:
		return &o->socket;
	case OPT_ID:
		return &o->id;
	case OPT_LOG:
		return &o->log;
	case OPT_LEVEL:
		return &o->level;
	case OPT_LULLD:
		return &o->lulld;
	default:
		return NULL;
	}
}

static int take_option(struct run_options *o, int option, char *text, struct error *err)
{
	const char **place = text_place(o, option);

	if (place) {
		*place = text;
		return 0;
	}
	switch (option) {
	case OPT_DRIVE:
		return parse_drive(o, text, err);
	case OPT_NET:
		return parse_net(o, text, err);
	case OPT_CPUS:
		return parse_cpus(o, text, err);
	case OPT_MEMORY:
		return parse_memory(o, text, err);
	case OPT_ENTROPY:
		o->entropy = true;
		return 0;
	case OPT_NO_CONSOLE:
		o->no_console = true;
		return 0;
	default:
		return -EINVAL; /* worded by our caller */
	}
}

static void choose_root(struct run_options *o)
{
	uint32_t i;

	for (i = 0; i < o->drive_count; i++) {
		if (o->drives[i].is_root_device)
			return;
	}
	if (!o->initrd && o->drive_count > 0)
		o->drives[0].is_root_device = true;
}

int run_options_parse(struct run_options *o, int argc, char **argv, struct error *err)
{
	int option, ret;

	memset(o, 0, sizeof(*o));
	o->cpus = 1;
	o->memory_mib = 128;
	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+", long_options, NULL)) != -1) {
		if (option == '?')
			return error_set(err, -EINVAL, "run: unknown or incomplete option \"%s\"",
					 argv[optind - 1]);
		ret = take_option(o, option, optarg, err);
		if (ret < 0)
			return ret;
	}
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0)
		return error_set(err, -EINVAL, "run: what is \"%s\"?", argv[optind]);
	if (!o->kernel)
		return error_set(err, -EINVAL, "run: --kernel is missing");
	choose_root(o);
	o->rest = argv + optind;
	o->rest_count = argc - optind;
	return 0;
}
