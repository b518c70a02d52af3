/*
 * KVM's statistics. Threads and locks: see kvm_stats.h.
 */
#include "vmm/kvm_stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/cleanup.h"

void kvm_stats_init(struct kvm_stats *s)
{
	*s = (struct kvm_stats){ .fd.fd = -EBADF };
}

int kvm_stats_open(struct kvm_stats *s, struct kvm_fd of)
{
	kvm_stats_init(s);
	return kvm_get_stats(of, &s->fd);
}

static void forget(struct kvm_stats *s)
{
	free(s->stats);
	free(s->values);
	s->stats = NULL;
	s->values = NULL;
	s->count = 0;
	s->value_count = 0;
}

void kvm_stats_close(struct kvm_stats *s)
{
	forget(s);
	kvm_close(&s->fd);
}

static int check_header(const struct kvm_stats_header *h)
{
	if (h->name_size == 0 || h->name_size > LIMIT_KVM_STAT_NAME || h->num_desc == 0 ||
	    h->desc_offset < sizeof(*h) || h->data_offset < sizeof(*h))
		return -EPROTO;
	return h->num_desc > LIMIT_KVM_STATS ? -E2BIG : 0;
}

/* One descriptor, `name_size` bytes of name behind it. */
static int take_descriptor(const struct kvm_stats_desc *d, uint32_t name_size,
			   struct kvm_stat *ret)
{
	if (d->name[0] == '\0' || !memchr(d->name, '\0', name_size))
		return -EPROTO;
	if (d->size == 0 || d->offset % sizeof(uint64_t))
		return -EPROTO;
	if (d->offset + d->size * sizeof(uint64_t) > LIMIT_KVM_STATS_BYTES)
		return -E2BIG;
	*ret = (struct kvm_stat){
		.flags = d->flags,
		.exponent = d->exponent,
		.first = (uint32_t)(d->offset / sizeof(uint64_t)),
		.count = d->size,
		.bucket_size = d->bucket_size,
	};
	memcpy(ret->name, d->name, strlen(d->name) + 1);
	return 0;
}

static int take_descriptors(struct kvm_stats *s, const struct kvm_stats_header *h)
{
	size_t each = sizeof(struct kvm_stats_desc) + h->name_size;
	_cleanup_free_ char *bytes = malloc(each * h->num_desc);
	union {
		struct kvm_stats_desc desc;
		char bytes[sizeof(struct kvm_stats_desc) + LIMIT_KVM_STAT_NAME];
	} one;
	uint32_t end, i;
	int ret;

	s->stats = calloc(h->num_desc, sizeof(*s->stats));
	if (!bytes || !s->stats)
		return -ENOMEM;
	ret = kvm_pread(s->fd, bytes, each * h->num_desc, h->desc_offset);
	for (i = 0; ret == 0 && i < h->num_desc; i++) {
		memcpy(one.bytes, bytes + i * each, each);
		ret = take_descriptor(&one.desc, h->name_size, &s->stats[i]);
		end = s->stats[i].first + s->stats[i].count;
		if (end > s->value_count)
			s->value_count = end;
	}
	s->count = h->num_desc;
	return ret;
}

/* What the descriptor holds; it stays the same as long as it is open. */
static int describe(struct kvm_stats *s)
{
	struct kvm_stats_header h;
	int ret = kvm_pread(s->fd, &h, sizeof(h), 0);

	if (ret == 0)
		ret = check_header(&h);
	if (ret == 0)
		ret = take_descriptors(s, &h);
	if (ret < 0)
		return ret;
	s->data_offset = h.data_offset;
	s->values = calloc(s->value_count, sizeof(*s->values));
	return s->values ? 0 : -ENOMEM;
}

int kvm_stats_read(struct kvm_stats *s)
{
	int ret = s->fd.fd < 0 ? -EBADF : 0;

	if (ret == 0 && !s->values)
		ret = describe(s);
	if (ret == 0)
		ret = kvm_pread(s->fd, s->values, s->value_count * sizeof(*s->values),
				s->data_offset);
	if (ret < 0)
		forget(s);
	return ret;
}

const struct kvm_stat *kvm_stats_find(const struct kvm_stats *s, const char *name)
{
	uint32_t i;

	for (i = 0; i < s->count; i++) {
		if (!strcmp(s->stats[i].name, name))
			return &s->stats[i];
	}
	return NULL;
}

uint64_t kvm_stats_value(const struct kvm_stats *s, const char *name)
{
	const struct kvm_stat *stat = kvm_stats_find(s, name);

	return stat ? s->values[stat->first] : 0;
}
