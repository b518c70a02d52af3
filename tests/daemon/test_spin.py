"""The spin policy of the whole daemon: configured, in force, observed."""

import json
import os
import tempfile
import time
import unittest

from lulld import Daemon, DaemonTest


class Spin(DaemonTest):
    def controls(self, report):
        return {c["name"]: c for c in report["controls"]}

    def test_before_the_start_nothing_is_in_force(self):
        d = Daemon(self)
        report = self.ok(d.get("/v1/spin")).json
        self.assertEqual(report["mode"], {"asked": "auto", "in_force": None, "why": ""})
        self.assertEqual((report["controls"], report["events"], report["vcpus"]), ([], [], []))
        self.assertIsNone(report["controller"]["class"])

    def test_shared_and_dedicated_differ_in_what_kvm_is_asked(self):
        for mode, exits in (("shared", True), ("dedicated", False)):
            d = Daemon(self)
            self.ok(d.put("/v1/spin", mode=mode))
            d.start(vcpus=2)
            report = self.ok(d.get("/v1/spin")).json
            self.assertEqual(report["mode"]["in_force"], mode)
            controls = self.controls(report)
            self.assertEqual(controls["hlt_exits"]["granted"], exits)
            self.assertEqual(controls["pv_unhalt"]["granted"], exits)
            self.assertEqual(controls["realtime_hint"]["granted"], not exits)
            d.close()

    def test_a_running_vm_keeps_its_policy(self):
        d = Daemon(self)
        d.start()
        reply = d.put("/v1/spin", mode="shared")
        self.assertEqual((reply.status, reply.json["error"]["code"]), (409, "wrong_phase"))

    def test_halt_polling_is_as_asked_for(self):
        d = Daemon(self)
        self.ok(d.put("/v1/spin", halt_poll_ns=70000))
        d.start()
        self.assertEqual(d.get("/v1/spin").json["halt_poll"]["in_force_ns"], 70000)

    def test_vcpus_show_what_kvm_and_the_scheduler_count(self):
        d = Daemon(self, guest="port-flood")
        d.start(vcpus=2)
        first = d.get("/v1/vcpus").json["vcpus"][1]["stats"]
        self.assertIn("halt_exits", first["kvm"])
        self.assertEqual(first["kvm"]["halt_wait_hist"], [])
        d.wait_for_exits(d.exits())
        time.sleep(0.05)
        second = d.get("/v1/vcpus").json["vcpus"][1]["stats"]
        self.assertGreater(second["sched"]["run_ns"], first["sched"]["run_ns"])

    def test_checks_are_of_this_host(self):
        d = Daemon(self)
        d.start(vcpus=2)
        checks = {c["name"]: c for c in d.get("/v1/spin").json["host"]}
        self.assertIn("pause_filter", checks)
        self.assertIn("directed_yield", checks)
        self.assertEqual(checks["scheduling_class"]["status"], "ok")

    def test_the_controller_looks_once_a_period(self):
        d = Daemon(self)
        self.ok(d.put("/v1/spin", controller="dry_run", period_ms=100))
        d.start(vcpus=2)
        deadline = time.monotonic() + 20
        while d.get("/v1/spin").json["controller"]["class"] != "idle":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        report = d.get("/v1/spin").json
        self.assertEqual(report["events"][0]["kind"], "class")
        self.assertEqual(report["events"][0]["inputs"]["vcpus"], 2)
        self.ok(d.patch("/vm", state="Paused"))
        before = d.get("/v1/spin").json["controller"]["periods"]
        time.sleep(0.5)
        self.assertEqual(d.get("/v1/spin").json["controller"]["periods"], before)

    def test_a_configuration_file_may_have_a_policy(self):
        folder = tempfile.mkdtemp(prefix="lulld-")
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump({"boot-source": {"kernel_image_path": os.path.join(folder, "kernel")},
                       "drives": [], "spin": {"mode": "dedicated", "controller": "on"}}, f)
        d = Daemon(self, "--config-file", "config.json", folder=folder)
        report = self.ok(d.get("/v1/spin")).json
        self.assertEqual(report["mode"]["in_force"], "dedicated")
        self.assertEqual(report["controller"]["mode"], "on")


if __name__ == "__main__":
    unittest.main()
