/*
 * The fake KVM's statistics: descriptors that describe themselves, as the
 * kernel's do, with values that a test sets.
 */
#include "fake_kvm_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 48
#define OWNERS (FAKE_VCPUS + 1) /* the VM is the first */
#define STATS_MAX 48
#define COUNTER (KVM_STATS_TYPE_CUMULATIVE | KVM_STATS_UNIT_NONE | KVM_STATS_BASE_POW10)
#define NANOSECONDS (KVM_STATS_TYPE_CUMULATIVE | KVM_STATS_UNIT_SECONDS | KVM_STATS_BASE_POW10)
#define LOG_NANOSECONDS \
	(KVM_STATS_TYPE_LOG_HIST | KVM_STATS_UNIT_SECONDS | KVM_STATS_BASE_POW10)

struct stat {
	const char *name;
	uint32_t flags;
};

static const struct stat of_vcpu[] = {
	{ "halt_successful_poll", COUNTER },
	{ "halt_attempted_poll", COUNTER },
	{ "halt_poll_invalid", COUNTER },
	{ "halt_wakeup", COUNTER },
	{ "halt_poll_success_ns", NANOSECONDS },
	{ "halt_poll_fail_ns", NANOSECONDS },
	{ "halt_wait_ns", NANOSECONDS },
	{ "halt_poll_success_hist", LOG_NANOSECONDS },
	{ "halt_poll_fail_hist", LOG_NANOSECONDS },
	{ "halt_wait_hist", LOG_NANOSECONDS },
	{ "blocking", KVM_STATS_TYPE_INSTANT | KVM_STATS_UNIT_BOOLEAN },
	{ "pf_taken", COUNTER },
	{ "pf_fixed", COUNTER },
	{ "exits", COUNTER },
	{ "io_exits", COUNTER },
	{ "mmio_exits", COUNTER },
	{ "signal_exits", COUNTER },
	{ "irq_window_exits", COUNTER },
	{ "nmi_window_exits", COUNTER },
	{ "halt_exits", COUNTER },
	{ "irq_exits", COUNTER },
	{ "hypercalls", COUNTER },
	{ "insn_emulation", COUNTER },
	{ "irq_injections", COUNTER },
	{ "directed_yield_attempted", COUNTER },
	{ "directed_yield_successful", COUNTER },
	{ "preemption_reported", COUNTER },
	{ "preemption_other", COUNTER },
};

static const struct stat of_vm[] = {
	{ "remote_tlb_flush", COUNTER },
	{ "mmu_pte_write", COUNTER },
};

static uint64_t values[OWNERS][STATS_MAX][FAKE_HISTOGRAM];
static const void *raw;
static size_t raw_size;

static const struct stat *stats_of(int of, uint32_t *ret_count)
{
	bool vm = of == FAKE_STATS_OF_VM;

	*ret_count = vm ? sizeof(of_vm) / sizeof(of_vm[0]) : sizeof(of_vcpu) / sizeof(of_vcpu[0]);
	return vm ? of_vm : of_vcpu;
}

static uint16_t count_of(const struct stat *s)
{
	return (s->flags & KVM_STATS_TYPE_MASK) == KVM_STATS_TYPE_LOG_HIST ? FAKE_HISTOGRAM : 1;
}

void fake_stats_reset_locked(void)
{
	memset(values, 0, sizeof(values));
	raw = NULL;
}

static void set(int of, const char *name, const uint64_t *from, uint16_t count)
{
	uint32_t n, i;
	const struct stat *s = stats_of(of, &n);

	pthread_mutex_lock(&fake.lock);
	for (i = 0; i < n && (strcmp(s[i].name, name) || count_of(&s[i]) != count); i++)
		;
	if (i < n)
		memcpy(values[of + 1][i], from, count * sizeof(*from));
	else
		fake_mismatch_locked("there is no statistic %s", name);
	pthread_mutex_unlock(&fake.lock);
}

void fake_kvm_set_stat(int of, const char *name, uint64_t value)
{
	set(of, name, &value, 1);
}

void fake_kvm_set_histogram(int of, const char *name, const uint64_t from[FAKE_HISTOGRAM])
{
	set(of, name, from, FAKE_HISTOGRAM);
}

void fake_kvm_set_stats_bytes(const void *bytes, size_t size)
{
	pthread_mutex_lock(&fake.lock);
	raw = bytes;
	raw_size = size;
	pthread_mutex_unlock(&fake.lock);
}

/* The file's bytes; to be freed. */
static char *image(int of, size_t *ret_size)
{
	uint32_t n, i;
	const struct stat *s = stats_of(of, &n);
	const size_t each = sizeof(struct kvm_stats_desc) + NAME_BYTES;
	struct kvm_stats_header h = { .name_size = NAME_BYTES, .num_desc = n };
	uint32_t offset = 0;
	char *bytes;

	h.id_offset = sizeof(h);
	h.desc_offset = h.id_offset + NAME_BYTES;
	h.data_offset = h.desc_offset + (uint32_t)(n * each);
	*ret_size = h.data_offset + n * FAKE_HISTOGRAM * sizeof(uint64_t);
	bytes = calloc(1, *ret_size);
	if (!bytes)
		return NULL;
	memcpy(bytes, &h, sizeof(h));
	for (i = 0; i < n; i++) {
		const uint16_t count = count_of(&s[i]);
		const struct kvm_stats_desc d = {
			.flags = s[i].flags,
			.exponent = s[i].flags & KVM_STATS_UNIT_SECONDS ? -9 : 0,
			.size = count,
			.offset = offset,
		};
		char *to = bytes + h.desc_offset + i * each;

		memcpy(to, &d, sizeof(d));
		memcpy(to + sizeof(d), s[i].name, strlen(s[i].name) + 1);
		memcpy(bytes + h.data_offset + offset, values[of + 1][i],
		       count * sizeof(uint64_t));
		offset += count * (uint32_t)sizeof(uint64_t);
	}
	*ret_size = h.data_offset + offset;
	return bytes;
}

ssize_t fake_read_stats_locked(const struct fake_stats *s, void *buf, size_t bytes, size_t offset)
{
	size_t size = raw_size;
	char *made = raw ? NULL : image(s->of, &size);
	const char *from = raw ? raw : made;

	if (!from)
		return -ENOMEM;
	if (offset >= size)
		bytes = 0;
	else if (bytes > size - offset)
		bytes = size - offset;
	if (bytes)
		memcpy(buf, from + offset, bytes);
	free(made);
	return (ssize_t)bytes;
}
