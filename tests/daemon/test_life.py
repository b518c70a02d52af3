"""The life of a VM by the calls that real clients make, in their order."""

import os
import re
import signal
import subprocess
import unittest

from lulld import Daemon, DaemonTest, UnixConnection, connect, write_file


class Clients(DaemonTest):
    def test_go_sdk_order(self):
        """A library: it reads the machine first and writes log and metrics to FIFOs."""
        d = Daemon(self)
        os.mkfifo(d.file("log"))
        os.mkfifo(d.file("metrics"))
        image = write_file(d.file("image"), size=1 << 20)
        self.ok(d.get("/machine-config"))
        self.ok(d.put("/logger", log_path=d.file("log"), level="Debug", show_level=True,
                      show_log_origin=False))
        self.ok(d.put("/metrics", metrics_path=d.file("metrics")))
        self.ok(d.put("/machine-config", vcpu_count=2, mem_size_mib=64, smt=False,
                      track_dirty_pages=False))
        machine = self.ok(d.get("/machine-config")).json
        self.assertEqual((machine["vcpu_count"], machine["mem_size_mib"]), (2, 64))
        self.ok(d.put("/boot-source", kernel_image_path=d.kernel, boot_args="console=ttyS0"))
        self.ok(d.drive("1", image, root=True, cache_type="Unsafe", io_engine="Sync"))
        self.ok(d.action("InstanceStart"))
        self.assertEqual(d.state(), "Running")
        self.ok(d.patch("/vm", state="Paused"))
        self.assertEqual(d.state(), "Paused")
        self.ok(d.patch("/vm", state="Resumed"))
        self.ok(d.action("FlushMetrics"))
        self.ok(d.action("SendCtrlAltDel"))
        self.assertEqual(d.kill()[0], -signal.SIGTERM)

    def test_firectl_order(self):
        """A command: the root drive comes last, smt is on, the state leaves "Not started"."""
        d = Daemon(self, guest="ctrl-alt-del")
        self.ok(d.put("/machine-config", vcpu_count=1, mem_size_mib=64, smt=True))
        self.ok(d.put("/boot-source", kernel_image_path=d.kernel,
                      boot_args="ro console=ttyS0 noapic reboot=k panic=1 pci=off nomodules"))
        self.ok(d.drive("2", write_file(d.file("extra"), size=4096)))
        self.ok(d.drive("1", "/dev/null", root=True))
        self.ok(d.action("InstanceStart"))
        self.assertNotEqual(d.state(), "Not started")
        # Ctrl-Alt-Del reboots the guest, which ends the VM well.
        self.ok(d.action("SendCtrlAltDel"))
        self.assertEqual(d.wait(), 0)

    def test_absolute_targets_and_small_requests(self):
        """A client that names the host in every target and sends no Accept header."""
        d = Daemon(self)
        c = UnixConnection(d.socket)
        c.request("GET", "http://localhost/", headers={"User-Agent": "x"})
        first = c.getresponse()
        self.assertIn(b'"state":"Not started"', first.read())
        c.request("PUT", "http://localhost/machine-config", '{"vcpu_count":1,"mem_size_mib":64}\n')
        second = c.getresponse()
        self.assertEqual((second.status, second.read()), (204, b""))
        self.assertIsNotNone(c.sock)  # kept alive
        c.close()

    def test_pipelined_requests_without_a_machine_config(self):
        """All at once, one read: the defaults are one vCPU and 128 MiB."""
        d = Daemon(self, guest="poweroff")
        body = '{"kernel_image_path":"%s"}' % d.kernel
        start = '{"action_type":"InstanceStart"}'
        s = connect(d.socket)
        s.sendall(b"".join(
            ("PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (p, len(b), b)).encode()
            for p, b in (("/boot-source", body), ("/actions", start))))
        data = b""
        while data.count(b"HTTP/1.1 ") < 2:
            more = s.recv(65536)
            self.assertTrue(more, data)
            data += more
        s.close()
        self.assertEqual(data.count(b"HTTP/1.1 204"), 2, data)
        self.assertEqual(d.wait(), 0)

    def test_instance_has_exactly_four_fields(self):
        d = Daemon(self, "--id", "vm-1")
        self.assertEqual(d.get("/").json, {"id": "vm-1", "state": "Not started",
                                           "vmm_version": d.get("/version").json[
                                               "firecracker_version"], "app_name": "lull"})


class Ends(DaemonTest):
    def ends(self, guest, status, reason, **kwargs):
        d = Daemon(self, guest=guest, **kwargs)
        d.start(vcpus=2)
        self.assertEqual(d.wait(), status)
        self.assertIn("exit_code=%d reason=%s" % (status, reason), d.stdout())
        return d

    def test_poweroff(self):
        self.ends("poweroff", 0, "guest-poweroff")

    def test_reset_by_the_keyboard_controller(self):
        self.ends("reset", 0, "guest-reset")

    def test_reset_by_the_acpi_register(self):
        self.ends("acpi-reset", 0, "guest-reset")

    def test_triple_fault(self):
        self.assertIn("triple fault", self.ends("triple-fault", 0, "guest-triple-fault").stdout())

    def test_failed_entry(self):
        self.assertIn("0x80000021", self.ends("fail-entry", 1, "vcpu-failed").stdout())

    def test_internal_error(self):
        self.ends("internal-error", 1, "vcpu-failed")

    def test_lost_memory(self):
        self.ends("memory-lost", 1, "memory-lost")

    def test_on_both_kinds_of_host(self):
        self.ends("poweroff", 0, "guest-poweroff", env={"LULL_FAKE_VENDOR": "intel"})

    def test_the_guest_ends_while_a_client_is_connected(self):
        """The start is answered, whatever the guest does at once."""
        for _ in range(10):
            d = Daemon(self, guest="poweroff")
            d.start()
            self.assertEqual(d.wait(), 0)

    def test_a_client_stops_it(self):
        d = Daemon(self, guest="port-flood")
        d.start(vcpus=4)
        self.ok(d.patch("/v1/vm", state="Stopped"))
        self.assertEqual(d.wait(), 0)
        self.assertIn("reason=stopped", d.stdout())

    def test_a_client_stops_it_before_the_start(self):
        d = Daemon(self)
        self.ok(d.patch("/v1/vm", state="Stopped"))
        self.assertEqual(d.wait(), 0)

    def test_the_socket_goes_with_the_daemon(self):
        d = self.ends("poweroff", 0, "guest-poweroff")
        self.assertFalse(os.path.exists(d.socket))


class Devices(DaemonTest):
    def test_console_output(self):
        d = Daemon(self, guest="console-hello")
        d.start()
        self.assertEqual(d.wait(), 0)
        # Lines of the log may come between the bytes, as both go to standard output.
        console = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+ \[[^\n]*\n", "", d.stdout())
        self.assertEqual(console, "hello from the guest\n")

    def test_console_output_to_a_file(self):
        d = Daemon(self, guest="console-hello")
        self.ok(d.put("/serial", serial_out_path=d.file("serial")))
        d.start()
        self.assertEqual(d.wait(), 0)
        with open(d.file("serial")) as f:
            self.assertEqual(f.read(), "hello from the guest\n")

    def test_console_input(self):
        d = Daemon(self, guest="console-answer", stdin=subprocess.PIPE)
        d.start()
        d.process.stdin.write(b"x")
        d.process.stdin.flush()
        self.assertEqual(d.wait(), 0)
        d.process.stdin.close()
        self.assertRegex(d.stdout(), r"(?m)^y")

    def test_a_closed_standard_input_is_no_end(self):
        d = Daemon(self, stdin=subprocess.DEVNULL)
        d.start()
        self.assertEqual(d.state(), "Running")

    def test_block_read_by_both_engines(self):
        for engine in ("Sync", "Async"):
            with self.subTest(engine=engine):
                d = Daemon(self, guest="blk-read")
                image = write_file(d.file("image"), bytes(512) + b"lull" * 128)
                self.ok(d.drive("a", image, io_engine=engine))
                d.start()
                self.assertEqual(d.wait(), 0)

    def test_block_write_by_both_engines(self):
        for engine in ("Sync", "Async"):
            with self.subTest(engine=engine):
                d = Daemon(self, guest="blk-write")
                image = write_file(d.file("image"), size=4096)
                self.ok(d.drive("a", image, io_engine=engine, cache_type="Writeback"))
                d.start()
                self.assertEqual(d.wait(), 0)
                with open(image, "rb") as f:
                    self.assertEqual(f.read(), bytes(512) + b"lull" * 128 + bytes(3072))

    def test_a_file_that_was_cut_is_a_read_error_for_the_guest(self):
        for engine in ("Sync", "Async"):
            with self.subTest(engine=engine):
                d = Daemon(self, guest="blk-read-error")
                image = write_file(d.file("image"), size=4096)
                self.ok(d.drive("a", image, io_engine=engine))
                os.truncate(image, 512)
                d.start()
                self.assertEqual(d.wait(), 0)

    def test_entropy(self):
        d = Daemon(self, guest="rng-read")
        self.ok(d.put("/entropy"))
        d.start()
        self.assertEqual(d.wait(), 0)

    def test_boot_timer(self):
        d = Daemon(self, "--boot-timer", guest="boot-timer")
        d.start()
        d.wait_for_state("running")
        for _ in range(200):
            if "Guest-boot-time" in d.stdout():
                break
            self.ok(d.get("/version"))
        self.assertRegex(d.stdout(), r"Guest-boot-time =\s+\d+ us \d+ ms")

    def test_devices_are_listed_with_their_threads(self):
        d = Daemon(self)
        self.ok(d.drive("rootfs", write_file(d.file("image"), size=4096), root=True))
        self.ok(d.put("/entropy"))
        d.start()
        devices = {v["id"]: v for v in d.get("/v1/devices").json["devices"]}
        self.assertIn("rootfs", devices)
        self.assertGreater(devices["rootfs"]["tid"], 0)
        with open("/proc/%d/task/%d/comm" % (d.process.pid, devices["rootfs"]["tid"])) as f:
            self.assertEqual(f.read(), "dev rootfs\n")
        lines = [v["gsi"] for v in devices.values() if v["gsi"] is not None]
        self.assertEqual(len(lines), len(set(lines)))

    def test_a_drive_gets_another_file_while_the_guest_runs(self):
        d = Daemon(self)
        self.ok(d.drive("a", write_file(d.file("one"), size=4096)))
        other = write_file(d.file("other"), size=8192)
        d.start()
        self.ok(d.patch("/drives/a", drive_id="a", path_on_host=other))
        self.assertEqual(d.get("/vm/config").json["drives"][0]["path_on_host"], other)
        self.ok(d.patch("/vm", state="Paused"))
        self.ok(d.patch("/drives/a", drive_id="a", path_on_host=d.file("one")))
        self.refuses(d, "PATCH", "/drives/a",
                     {"drive_id": "a", "path_on_host": d.file("none")}, "Drive config error")
        self.refuses(d, "PATCH", "/drives/b", {"drive_id": "b", "path_on_host": other},
                     "Device not found")


if __name__ == "__main__":
    unittest.main()
