/*
 * Printing of what is seen of spinning. Threads: main. Locks: none.
 */
#include "api/spin_print.h"

#include <inttypes.h>

#include "vmm/control.h"

struct stats_printer {
	struct buf *body;
	const char *lead;
};

/* A histogram is shown up to its last value that is not zero. */
static void print_stat(void *arg, const char *name, const uint64_t *values, size_t count)
{
	struct stats_printer *p = arg;
	size_t i;

	buf_printf(p->body, "%s", p->lead);
	p->lead = ",";
	buf_append_json_string(p->body, name);
	if (count == 1) {
		buf_printf(p->body, ":%" PRIu64, values[0]);
		return;
	}
	while (count > 0 && values[count - 1] == 0)
		count--;
	buf_printf(p->body, ":[");
	for (i = 0; i < count; i++)
		buf_printf(p->body, "%s%" PRIu64, i ? "," : "", values[i]);
	buf_printf(p->body, "]");
}

static void print_sched(struct buf *body, const struct spin_sample *s)
{
	if (!s->has_sched) {
		buf_printf(body, "null");
		return;
	}
	buf_printf(body,
		   "{\"run_ns\":%" PRIu64 ",\"run_delay_ns\":%" PRIu64 ",\"slices\":%" PRIu64
		   ",\"host_cpu\":%" PRIu32 "}",
		   s->run_ns, s->delay_ns, s->slices, s->host_cpu);
}

static void print_spin(struct buf *body, const struct spin_sample *s)
{
	if (!s->has_kvm) {
		buf_printf(body, "null");
		return;
	}
	buf_printf(body,
		   "{\"exits\":%" PRIu64 ",\"spin_exits\":%" PRIu64 ",\"halts\":%" PRIu64
		   ",\"halt_polls\":%" PRIu64 ",\"halt_polls_successful\":%" PRIu64
		   ",\"directed_yields\":%" PRIu64 ",\"directed_yields_successful\":%" PRIu64 "}",
		   s->exits, s->spin_exits, s->halts, s->polls, s->polls_good, s->yields,
		   s->yields_good);
}

static void print_sample(struct buf *body, const struct spin_sample *s)
{
	buf_printf(body, "\"sched\":");
	print_sched(body, s);
	buf_printf(body, ",\"spin\":");
	print_spin(body, s);
}

void spin_print_vcpu(struct buf *body, struct vm *vm, size_t index)
{
	struct stats_printer printer = { body, "{" };
	struct spin_sample s;

	if (control_vcpu_sample(vm, index, &s) < 0) {
		buf_printf(body, "null");
		return;
	}
	buf_printf(body, "{");
	print_sample(body, &s);
	buf_printf(body, ",\"kvm\":");
	control_vcpu_stats(vm, index, print_stat, &printer);
	buf_printf(body, "%s", printer.lead[0] == '{' ? "null}" : "}}");
}

void spin_print_vcpus(struct buf *body, struct vm *vm)
{
	size_t i, count = control_vcpu_count(vm);
	struct spin_sample s;

	buf_printf(body, "[");
	for (i = 0; i < count && control_vcpu_sample(vm, i, &s) == 0; i++) {
		buf_printf(body, "%s{\"index\":%zu,", i ? "," : "", i);
		print_sample(body, &s);
		buf_printf(body, "}");
	}
	buf_printf(body, "]");
}

void spin_print_vm_stats(struct buf *body, struct vm *vm)
{
	struct stats_printer printer = { body, "{" };

	control_vm_stats(vm, print_stat, &printer);
	buf_printf(body, "%s", printer.lead[0] == '{' ? "null" : "}");
}
