"""A pause: no vCPU runs, no exit is counted, whoever asks and however often."""

import os
import time
import unittest

from lulld import Daemon, DaemonTest, write_file


class Pause(DaemonTest):
    def start(self, guest, vcpus=4):
        d = Daemon(self, guest=guest)
        self.ok(d.drive("a", write_file(d.file("image"), size=4096)))
        self.ok(d.put("/entropy"))
        d.start(vcpus=vcpus)
        return d

    def vcpu_states(self, d):
        return {v["state"] for v in d.get("/v1/vcpus").json["vcpus"]}

    def device_states(self, d):
        return {v["status"] for v in d.get("/v1/devices").json["devices"]}

    def cpu_ticks(self, d):
        """CPU time of all vCPU threads so far."""
        total = 0
        for vcpu in d.get("/v1/vcpus").json["vcpus"]:
            with open("/proc/%d/task/%d/stat" % (d.process.pid, vcpu["tid"])) as f:
                fields = f.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total

    def test_no_exit_is_counted_any_more(self):
        d = self.start("port-flood")
        d.wait_for_exits([0] * 4)
        self.ok(d.patch("/vm", state="Paused"))
        before = d.exits()
        time.sleep(0.3)
        self.assertEqual(d.exits(), before)
        self.ok(d.patch("/vm", state="Resumed"))
        d.wait_for_exits(before)

    def test_every_vcpu_is_parked_and_every_device_quiet(self):
        for guest in ("idle", "spin", "port-flood", "sluggish"):
            with self.subTest(guest=guest):
                d = self.start(guest)
                self.assertEqual(self.vcpu_states(d), {"running"})
                self.ok(d.patch("/vm", state="Paused"))
                self.assertEqual(self.vcpu_states(d), {"paused"})
                self.assertEqual(self.device_states(d), {"paused"})
                self.assertEqual(d.vm()["state"], "paused")
                self.ok(d.patch("/vm", state="Resumed"))
                self.assertEqual(self.vcpu_states(d), {"running"})
                self.assertNotIn("paused", self.device_states(d))

    def test_a_paused_guest_uses_no_cpu(self):
        d = self.start("spin", vcpus=2)
        self.ok(d.patch("/vm", state="Paused"))
        before = self.cpu_ticks(d)
        time.sleep(0.3)
        self.assertLessEqual(self.cpu_ticks(d) - before, 1)

    def test_storm(self):
        d = self.start("port-flood")
        with self.within(60):
            for _ in range(200):
                self.ok(d.patch("/vm", state="Paused"))
                before = d.exits()
                self.assertEqual(d.exits(), before)
                self.ok(d.patch("/vm", state="Resumed"))

    def test_it_is_answered_in_time(self):
        for guest in ("idle", "spin", "port-flood"):
            d = self.start(guest)
            with self.within(2):
                self.ok(d.patch("/vm", state="Paused"))

    def test_uptime_goes_on_and_threads_stay(self):
        d = self.start("idle")
        threads = set(os.listdir("/proc/%d/task" % d.process.pid))
        self.ok(d.patch("/vm", state="Paused"))
        before = d.vm()["uptime_ms"]
        time.sleep(0.05)
        self.assertGreater(d.vm()["uptime_ms"], before)
        self.assertEqual(set(os.listdir("/proc/%d/task" % d.process.pid)), threads)

    def test_threads_are_named(self):
        d = self.start("idle", vcpus=2)
        names = []
        for task in os.listdir("/proc/%d/task" % d.process.pid):
            with open("/proc/%d/task/%s/comm" % (d.process.pid, task)) as f:
                names.append(f.read().strip())
        for name in ("lull-main", "vcpu 0", "vcpu 1", "dev a"):
            self.assertIn(name, names)


if __name__ == "__main__":
    unittest.main()
