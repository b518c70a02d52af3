/* A block device over the fake drive. */
#include "tests/devices/virtio/blk_fixture.h"

#include <stdlib.h>

#include "devices/registry.h"
#include "vmm/base/bits.h"

void blk_config(struct drive_config *c)
{
	memset(c, 0, sizeof(*c));
	memcpy(c->drive_id, "rootfs", 7);
	c->cache_type = DRIVE_CACHE_WRITEBACK;
}

struct blk_fixture *blk_fixture_new(const struct drive_config *c)
{
	struct blk_fixture *f = calloc(1, sizeof(*f));
	struct error err;
	unsigned i;

	assert_non_null(f);
	f->r = rig_new();
	f->fake = fake_backend_new(DISK_BYTES);
	assert_non_null(f->fake);
	f->fake->b.read_only = c->is_read_only;
	for (i = 0; i < DISK_BYTES; i++)
		f->fake->disk[i] = (uint8_t)(i / 512 + i);
	rig_place(f->r, virtio_blk_class.create(&f->r->env, c, &f->fake->b, &err));
	return f;
}

int blk_setup(void **state)
{
	struct drive_config c;
	struct blk_fixture *f;

	blk_config(&c);
	f = blk_fixture_new(&c);
	rig_boot(f->r, BLK_FEATURES, 16);
	*state = f;
	return 0;
}

int blk_setup_read_only(void **state)
{
	struct drive_config c;
	struct blk_fixture *f;

	blk_config(&c);
	c.is_read_only = true;
	f = blk_fixture_new(&c);
	rig_boot(f->r, F_VERSION_1, 16);
	*state = f;
	return 0;
}

int blk_teardown(void **state)
{
	struct blk_fixture *f = *state;

	rig_free(f->r);
	free(f);
	return 0;
}

void blk_header(struct blk_fixture *f, uint32_t type, uint64_t sector)
{
	put32(f->r, B_HEADER, type);
	put32(f->r, B_HEADER + 4, 0);
	put64(f->r, B_HEADER + 8, sector);
	*rig_ram(f->r, B_STATUS) = NO_STATUS;
}

void blk_chain(struct blk_fixture *f, uint32_t type, uint64_t sector, uint32_t len,
	       uint16_t data_flags)
{
	blk_header(f, type, sector);
	rig_desc(f->r, 0, 0, B_HEADER, 16, D_NEXT, len ? 1 : 2);
	rig_desc(f->r, 0, 1, B_DATA, len, (uint16_t)(D_NEXT | data_flags), 2);
	rig_desc(f->r, 0, 2, B_STATUS, 1, D_WRITE, 0);
}

uint8_t blk_status(struct blk_fixture *f)
{
	return *rig_ram(f->r, B_STATUS);
}

uint8_t blk_run(struct blk_fixture *f, uint32_t type, uint64_t sector, uint32_t len)
{
	uint16_t flags = type == VIRTIO_BLK_T_OUT ? 0 : D_WRITE;
	uint16_t before = rig_used_idx(f->r, 0);

	blk_chain(f, type, sector, len, flags);
	rig_submit(f->r, 0, 0);
	assert_int_equal(rig_used_idx(f->r, 0), (uint16_t)(before + 1));
	return blk_status(f);
}
