"""The whole daemon with one lock around all exits and devices: it is slow, and it works."""

import os
import subprocess
import time
import unittest

from lulld import TIMEOUT, Daemon, DaemonTest, write_file


class BigLock(DaemonTest):
    def daemon(self, guest="idle", **more):
        return Daemon(self, "--big-lock", guest=guest, **more)

    def wait_for(self, condition):
        end = time.monotonic() + TIMEOUT
        while not condition():
            self.assertLess(time.monotonic(), end, "it does not happen")
            time.sleep(0.005)

    def rows(self, d, key, **want):
        return [row for row in d.get("/v1/locks").json[key]
                if all(row.get(name) == value for name, value in want.items())]

    def test_the_log_warns_of_it(self):
        self.assertIn("--big-lock: this is a baseline for benchmarks", self.daemon().stdout())
        self.assertNotIn("--big-lock", Daemon(self).stdout())

    def test_there_is_none_without_the_option(self):
        d = Daemon(self)
        d.start()
        self.assertEqual(self.rows(d, "objects", level="global"), [])

    def test_it_is_taken_and_reported(self):
        d = self.daemon("console-flood")
        self.ok(d.put("/serial", serial_out_path=d.file("console")))
        self.ok(d.put("/v1/locks", profiling=True))
        d.start()
        self.wait_for(lambda: self.rows(d, "objects", level="global")[0]["takes"] > 100)

    def test_a_life(self):
        d = self.daemon("console-flood")
        self.ok(d.put("/serial", serial_out_path=d.file("console")))
        self.ok(d.drive("a", write_file(d.file("image"), size=4096)))
        self.ok(d.put("/entropy"))
        d.start(vcpus=4)
        for _ in range(20):
            size = os.path.getsize(d.file("console"))
            self.wait_for(lambda: os.path.getsize(d.file("console")) > size)
            self.ok(d.patch("/vm", state="Paused"))
            before = d.exits()
            self.assertEqual(d.exits(), before)
            self.ok(d.patch("/vm", state="Resumed"))
        self.ok(d.patch("/v1/vm", state="Stopped"))
        self.assertEqual(d.wait(), 0)

    def test_a_pause_of_busy_vcpus(self):
        d = self.daemon("port-flood")
        d.start(vcpus=8)
        with self.within(60):
            for _ in range(50):
                self.ok(d.patch("/vm", state="Paused"))
                self.ok(d.patch("/vm", state="Resumed"))
        self.assertLess(d.kill()[1], 5)

    def test_a_vcpu_waits_for_the_reset_of_a_device(self):
        d = self.daemon("blk-reset")
        self.ok(d.drive("a", write_file(d.file("image"), size=4096)))
        d.start(vcpus=2)
        self.wait_for(lambda: any(row["site"].startswith("devices/virtio/device.c:")
                                  for row in self.rows(d, "conditions", type="device call",
                                                       object="a")))
        for _ in range(20):
            self.ok(d.patch("/vm", state="Paused"))
            self.ok(d.patch("/vm", state="Resumed"))
        self.ok(d.patch("/v1/vm", state="Stopped"))
        self.assertEqual(d.wait(), 0)

    def test_devices_work(self):
        for guest in ("blk-read", "blk-write"):
            for engine in ("Sync", "Async"):
                with self.subTest(guest=guest, engine=engine):
                    d = self.daemon(guest)
                    image = write_file(d.file("image"), bytes(512) + b"lull" * 128)
                    self.ok(d.drive("a", image, io_engine=engine))
                    d.start()
                    self.assertEqual(d.wait(), 0)
        d = self.daemon("rng-read")
        self.ok(d.put("/entropy"))
        d.start()
        self.assertEqual(d.wait(), 0)

    def test_console_both_ways(self):
        d = self.daemon("console-answer", stdin=subprocess.PIPE)
        d.start()
        d.process.stdin.write(b"x")
        d.process.stdin.flush()
        self.assertEqual(d.wait(), 0)
        d.process.stdin.close()
        self.assertRegex(d.stdout(), r"(?m)^y")

    def test_a_drive_gets_another_file_while_the_guest_uses_it(self):
        d = self.daemon("blk-reset")
        self.ok(d.drive("a", write_file(d.file("one"), size=4096)))
        other = write_file(d.file("other"), size=8192)
        d.start()
        for path in (other, d.file("one")) * 5:
            self.ok(d.patch("/drives/a", drive_id="a", path_on_host=path))
        self.assertLess(d.kill()[1], 5)


if __name__ == "__main__":
    unittest.main()
