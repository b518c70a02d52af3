"""The lock profiler as a client sees it."""

import time
import unittest

from lulld import TIMEOUT, Daemon, DaemonTest, write_file

LEVELS = ("global", "vm", "device-set", "bus", "device", "irq", "log")


class Locks(DaemonTest):
    def report(self, d):
        """The report, each of whose rows has been looked at."""
        report = self.ok(d.get("/v1/locks")).json
        self.assertEqual(set(report), {"profiling", "locks", "conditions", "objects",
                                       "waits_left_out", "objects_left_out"})
        for key, more in (("locks", {"level"}), ("conditions", set())):
            self.check_rows(report[key], more)
        for row in report["objects"]:
            self.assertEqual(set(row), {"type", "object", "level", "takes"})
            self.assertIn(row["level"], LEVELS)
        return report

    def check_rows(self, rows, more):
        waits = [row["wait_ns"] for row in rows]
        self.assertEqual(waits, sorted(waits, reverse=True))
        for row in rows:
            self.assertEqual(set(row), {"type", "object", "site", "wait_ns", "count",
                                        "average_ns", "max_ns"} | more)
            self.assertRegex(row["site"], r"^(vmm|devices)/[a-z0-9_/]+\.c:\d+$")
            self.assertGreater(row["count"], 0)
            self.assertEqual(row["average_ns"], row["wait_ns"] // row["count"])
            self.assertLessEqual(row["max_ns"], row["wait_ns"])
            self.assertIn(row.get("level", "vm"), LEVELS)

    def takes(self, d, kind):
        return sum(row["takes"] for row in self.report(d)["objects"] if row["type"] == kind)

    def wait_for(self, condition):
        end = time.monotonic() + TIMEOUT
        while not condition():
            self.assertLess(time.monotonic(), end, "it does not happen")
            time.sleep(0.005)

    def parked(self, d):
        """The vCPUs that have waited to be let go."""
        return {row["object"] for row in self.report(d)["conditions"]
                if row["type"].startswith("vcpu")}

    def pause_until_parked(self, d, vcpus):
        """One that is let go before it sleeps has not waited; then again."""
        def once():
            self.ok(d.patch("/vm", state="Paused"))
            self.ok(d.patch("/vm", state="Resumed"))
            d.wait_for_exits(d.exits())  # what was waited for has been counted
            return len(self.parked(d)) == vcpus
        self.wait_for(once)

    def test_the_locks_of_a_machine_are_listed(self):
        d = Daemon(self)
        before = len(self.report(d)["objects"])
        self.ok(d.drive("rootfs", write_file(d.file("image"), size=4096)))
        d.start(vcpus=2)
        objects = self.report(d)["objects"]
        self.assertGreater(len(objects), before)
        names = [(row["type"], row["object"], row["level"]) for row in objects]
        self.assertIn(("virtio-blk", "rootfs", "device"), names)
        self.assertEqual(len(names), len(set(names)))

    def test_a_pause_is_a_wait_of_each_vcpu(self):
        d = Daemon(self, guest="port-flood")
        d.start(vcpus=3)
        self.pause_until_parked(d, 3)

    def test_takes_are_counted_while_it_is_switched_on(self):
        d = Daemon(self, guest="console-flood")
        self.ok(d.put("/serial", serial_out_path=d.file("console")))
        d.start()
        self.assertFalse(self.report(d)["profiling"])
        self.assertEqual(self.takes(d, "uart16550"), 0)
        self.ok(d.put("/v1/locks", profiling=True))
        self.assertTrue(self.report(d)["profiling"])
        self.wait_for(lambda: self.takes(d, "uart16550") > 100)
        self.ok(d.patch("/vm", state="Paused"))  # nobody is about to count one more
        self.ok(d.put("/v1/locks", profiling=False, reset=True))
        self.ok(d.patch("/vm", state="Resumed"))
        d.wait_for_exits(d.exits())
        self.assertEqual(self.takes(d, "uart16550"), 0)

    def test_a_reset_forgets_the_waits(self):
        d = Daemon(self, guest="port-flood")
        d.start()
        self.pause_until_parked(d, 1)
        self.ok(d.put("/v1/locks", reset=True, profiling=True))
        self.assertEqual(self.parked(d), set())
        self.assertTrue(self.report(d)["profiling"])

    def test_bad_bodies(self):
        d = Daemon(self)
        for raw, status, code, field in (
                ("{}", 422, "missing_field", None),
                ('{"reset":null}', 422, "missing_field", None),
                ('{"profiling":"on"}', 422, "wrong_type", "profiling"),
                ('{"reset":1}', 422, "wrong_type", "reset"),
                ('{"profiling":true,"all":true}', 422, "unknown_field", "all"),
                ('{"profiling":true,"profiling":true}', 400, "duplicate_field", "profiling"),
                ("{", 400, "invalid_json", None),
                (None, 400, "bad_request", None)):
            with self.subTest(raw=raw):
                reply = d.call("PUT", "/v1/locks", raw=raw)
                self.assertEqual(reply.status, status, reply)
                self.assertEqual(reply.json["error"]["code"], code)
                self.assertEqual(reply.json["error"].get("field"), field)
                self.assertFalse(self.report(d)["profiling"])

    def test_other_methods(self):
        d = Daemon(self)
        reply = d.call("PATCH", "/v1/locks", {"profiling": True})
        self.assertEqual(reply.status, 405)
        self.assertEqual(reply.headers["Allow"], "GET, PUT")

    def test_it_is_switched_in_every_phase(self):
        d = Daemon(self)
        for step in (lambda: None, d.start, lambda: self.ok(d.patch("/vm", state="Paused")),
                     lambda: self.ok(d.patch("/vm", state="Resumed"))):
            step()
            self.ok(d.put("/v1/locks", profiling=True))
            self.assertTrue(self.report(d)["profiling"])
            self.ok(d.put("/v1/locks", profiling=False, reset=True))
            self.assertFalse(self.report(d)["profiling"])


if __name__ == "__main__":
    unittest.main()
