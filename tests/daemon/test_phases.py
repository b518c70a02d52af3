"""Calls in the wrong phase: refused with the known text, and nothing changes."""

import unittest

from lulld import Daemon, DaemonTest, InBackground, write_file

AFTER = "The requested operation is not supported after starting the microVM."
BEFORE = "The requested operation is not supported before starting the microVM."


class Phases(DaemonTest):
    def configuration_calls(self, d):
        return [
            ("PUT", "/machine-config", {"vcpu_count": 3, "mem_size_mib": 96}),
            ("PATCH", "/machine-config", {"vcpu_count": 3}),
            ("PUT", "/boot-source", {"kernel_image_path": d.kernel, "boot_args": "other"}),
            ("PUT", "/drives/b", {"drive_id": "b", "path_on_host": "/dev/null",
                                  "is_root_device": False}),
            ("PUT", "/network-interfaces/n", {"iface_id": "n", "host_dev_name": "tap0"}),
            ("PUT", "/entropy", {}),
            ("PUT", "/serial", {"serial_out_path": d.file("serial")}),
            ("PUT", "/logger", {"level": "Error"}),
            ("PUT", "/metrics", {"metrics_path": d.file("metrics")}),
            ("PUT", "/actions", {"action_type": "InstanceStart"}),
        ]

    def guest_calls(self):
        return [
            ("PATCH", "/vm", {"state": "Paused"}),
            ("PATCH", "/vm", {"state": "Resumed"}),
            ("PATCH", "/drives/a", {"drive_id": "a", "path_on_host": "/dev/null"}),
            ("PATCH", "/network-interfaces/n", {"iface_id": "n"}),
            ("PUT", "/actions", {"action_type": "FlushMetrics"}),
            ("PUT", "/actions", {"action_type": "SendCtrlAltDel"}),
        ]

    def test_calls_that_need_a_guest_before_there_is_one(self):
        d = Daemon(self)
        self.ok(d.drive("a", write_file(d.file("image"), size=512)))
        for method, path, body in self.guest_calls():
            with self.subTest(path=path, body=body):
                self.refuses(d, method, path, body, BEFORE)

    def test_configuration_while_the_guest_runs(self):
        d = Daemon(self, guest="port-flood")
        d.start()
        for method, path, body in self.configuration_calls(d):
            with self.subTest(path=path):
                self.refuses(d, method, path, body, AFTER)

    def test_configuration_while_the_guest_is_paused(self):
        d = Daemon(self)
        d.start()
        self.ok(d.patch("/vm", state="Paused"))
        for method, path, body in self.configuration_calls(d):
            with self.subTest(path=path):
                self.refuses(d, method, path, body, AFTER)

    def test_calls_while_the_guest_is_being_started(self):
        d = Daemon(self, env={"LULL_FAKE_SLOW_START_MS": "1500"})
        d.configure()
        start = InBackground(lambda: d.action("InstanceStart"))
        d.wait_for_state("starting")
        self.assertEqual(d.state(), "Not started")
        for method, path, body in self.guest_calls():
            with self.subTest(path=path, body=body):
                self.refused(d, d.call(method, path, body), BEFORE)
        self.refused(d, d.action("InstanceStart"))
        self.ok(start.result())
        self.assertEqual(d.state(), "Running")

    def test_the_configuration_is_frozen_while_the_guest_is_being_started(self):
        """What the VM is being built from cannot change under it."""
        d = Daemon(self, env={"LULL_FAKE_SLOW_START_MS": "1500"})
        d.configure()
        start = InBackground(lambda: d.action("InstanceStart"))
        d.wait_for_state("starting")
        before = d.get("/vm/config").json
        for method, path, body in self.configuration_calls(d):
            if path not in ("/logger", "/metrics"):  # no part of the machine
                with self.subTest(path=path):
                    self.refused(d, d.call(method, path, body), "is starting")
        self.assertEqual(d.get("/vm/config").json, before)
        self.ok(start.result())
        self.assertEqual(len(d.get("/v1/vcpus").json["vcpus"]), 1)

    def test_a_second_start(self):
        d = Daemon(self)
        d.start()
        self.refuses(d, "PUT", "/actions", {"action_type": "InstanceStart"}, AFTER)

    def test_start_without_a_kernel(self):
        d = Daemon(self)
        self.refuses(d, "PUT", "/actions", {"action_type": "InstanceStart"},
                     "Start microvm error: Cannot start microvm without kernel configuration.")

    def test_questions_are_answered_in_every_phase(self):
        d = Daemon(self)
        paths = ("/", "/version", "/machine-config", "/vm/config", "/v1/vm", "/v1/vcpus",
                 "/v1/devices", "/v1/locks")
        for step in (lambda: None, d.start, lambda: self.ok(d.patch("/vm", state="Paused")),
                     lambda: self.ok(d.patch("/vm", state="Resumed"))):
            step()
            for path in paths:
                self.ok(d.get(path))

    def test_pause_and_resume_again_and_again(self):
        d = Daemon(self)
        d.start()
        for state in ("Resumed", "Paused", "Paused", "Resumed", "Resumed", "Paused", "Resumed"):
            self.ok(d.patch("/vm", state=state))
        self.assertEqual(d.state(), "Running")

    def test_unknown_paths_and_methods(self):
        d = Daemon(self)
        for method, path, body in (("GET", "/nothing", None), ("PUT", "/vm", {"state": "Paused"}),
                                   ("DELETE", "/machine-config", None), ("GET", "/actions", None),
                                   ("PUT", "/snapshot/create", {}), ("GET", "/drives/a", None)):
            with self.subTest(path=path):
                self.refuses(d, method, path, body, "Invalid request method and/or path: " + method)


if __name__ == "__main__":
    unittest.main()
