/* A block device over the fake drive, and requests to it. */
#ifndef LULL_TEST_BLK_FIXTURE_H
#define LULL_TEST_BLK_FIXTURE_H

#include <errno.h>
#include <linux/virtio_blk.h>
#include <string.h>

#include "tests/devices/virtio/fake_backend.h"
#include "tests/devices/virtio/ring_rig.h"
#include "vmm/config.h"

#define DISK_SECTORS 128u
#define DISK_BYTES (DISK_SECTORS * 512u)

/* Where requests lie */
#define B_HEADER DATA
#define B_STATUS (DATA + 0x800)
#define B_DATA (DATA + 0x1000)
#define NO_STATUS 0xee /* what the status byte holds before */

struct blk_fixture {
	struct rig *r;
	struct fake_backend *fake;
};

/* cmocka set-up: write-back, all features negotiated, queue of 16; or read-only */
int blk_setup(void **state);
int blk_setup_read_only(void **state);
int blk_teardown(void **state);

/* Not booted yet. */
struct blk_fixture *blk_fixture_new(const struct drive_config *c);
void blk_config(struct drive_config *c);
#define BLK_FEATURES (F_VERSION_1 | F_EVENT_IDX | F_INDIRECT | (1ull << VIRTIO_BLK_F_FLUSH))

void blk_header(struct blk_fixture *f, uint32_t type, uint64_t sector);
/* Head 0: header, data (none if len is 0; D_WRITE for IN), status. */
void blk_chain(struct blk_fixture *f, uint32_t type, uint64_t sector, uint32_t len,
	       uint16_t data_flags);
uint8_t blk_status(struct blk_fixture *f);
/* blk_chain(), submitted; the status afterwards. */
uint8_t blk_run(struct blk_fixture *f, uint32_t type, uint64_t sector, uint32_t len);

#endif
