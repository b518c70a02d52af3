"""What the daemon writes: log lines and metrics lines."""

import json
import os
import resource
import time
import unittest

from lulld import Daemon, DaemonTest

LINE = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9} \[%s\] %s$"


class Log(DaemonTest):
    def lines(self, d, path=None):
        with open(path or d.file("log")) as f:
            return f.read().splitlines()

    def test_lines_of_a_life(self):
        d = Daemon(self, "--id", "vm-1", guest="poweroff")
        d.start()
        self.assertEqual(d.wait(), 0)
        text = d.stdout()
        head = r"vm-1:lull-main"
        for pattern in (r"Running lull v\S+", r"API server started\.",
                        r'The API server received a Put request on "/actions" with body .*',
                        r"The request was executed successfully\. Status code: 204 No Content\.",
                        r"lull exiting successfully\. exit_code=0 reason=guest-poweroff"):
            self.assertRegex(text, "(?m)" + LINE % (head, pattern))

    def test_a_refused_request_is_logged(self):
        d = Daemon(self)
        self.refused(d, d.action("InstanceStart"))
        self.assertIn("Received Error. Status code: 400 Bad Request. Message: Start microvm error: "
                      "Cannot start microvm without kernel configuration.", d.stdout())

    def test_level_and_origin_are_shown_on_demand(self):
        d = Daemon(self, "--log-path", "log", "--level", "Debug", "--show-level",
                   "--show-log-origin", "--id", "a")
        self.ok(d.get("/"))
        d.kill()
        lines = self.lines(d)
        self.assertRegex(lines[0], LINE % (r"a:lull-main:INFO:\S*main\.c:\d+", "Running lull v.*"))
        for line in lines:
            self.assertRegex(line, LINE % (r"a:[^:]+:(ERROR|WARN|INFO|DEBUG):\S+\.c:\d+", ".*"))

    def test_a_level_that_is_off(self):
        d = Daemon(self, "--log-path", "log", "--level", "off")
        self.refused(d, d.action("InstanceStart"))
        d.kill()
        self.assertEqual(self.lines(d), [])

    def test_it_goes_where_a_client_says(self):
        d = Daemon(self)
        for name in ("one", "two"):
            self.ok(d.put("/logger", log_path=d.file(name)))
            self.ok(d.get("/version"))
        d.kill()
        self.assertIn('"/version"', "\n".join(self.lines(d, d.file("one"))))
        self.assertIn("exiting", "\n".join(self.lines(d, d.file("two"))))

    def test_targets_that_cannot_be_opened(self):
        d = Daemon(self)
        for path in ("/nonexistent/log", d.folder):
            self.refuses(d, "PUT", "/logger", {"log_path": path}, "Logger error: ")
            self.refuses(d, "PUT", "/metrics", {"metrics_path": path}, "Metrics error: ")
        self.assertIn("Metrics error: ", d.stdout())  # it still goes where it went

    def test_a_client_cannot_forge_a_line(self):
        d = Daemon(self)
        for text in ("a\n2026-01-01T00:00:00 [x:y] forged", "a\r\x1b[2Jforged", "a\u2028forged"):
            self.refused(d, d.put("/boot-source", kernel_image_path=text))
        d.kill()
        for line in d.stdout().split("\n")[:-1]:
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9} \[")
            self.assertNotIn("\x1b", line)

    def test_a_fifo_without_a_reader(self):
        d = Daemon(self)
        for name in ("log", "metrics"):
            os.mkfifo(d.file(name))
        self.ok(d.put("/logger", log_path=d.file("log")))
        self.ok(d.put("/metrics", metrics_path=d.file("metrics")))
        d.start()
        for _ in range(500):
            self.ok(d.get("/version"))
        self.ok(d.action("FlushMetrics"))
        fd = os.open(d.file("log"), os.O_RDONLY | os.O_NONBLOCK)
        self.assertIn(b"/version", os.read(fd, 1 << 16))
        os.close(fd)
        self.assertLess(d.kill()[1], 5)

    def test_a_guest_cannot_flood_it(self):
        d = Daemon(self, "--log-path", "log", guest="console-flood")
        d.start(vcpus=2)
        time.sleep(0.3)
        d.kill()
        self.assertLess(len(self.lines(d)), 100)

    def test_a_file_that_may_not_grow(self):
        """The limit of the file's size ends the log, not the daemon."""
        d = Daemon(self, "--log-path", "log", limits=[(resource.RLIMIT_FSIZE, (4096, 4096))])
        for _ in range(100):
            self.ok(d.get("/version"))
        self.assertLessEqual(os.path.getsize(d.file("log")), 4096)
        self.assertEqual(d.state(), "Not started")


class Metrics(DaemonTest):
    def lines(self, d):
        with open(d.file("metrics")) as f:
            return [json.loads(line) for line in f.read().splitlines()]

    def test_a_line_at_the_start_for_each_flush_and_at_the_end(self):
        d = Daemon(self, "--metrics-path", "metrics", guest="port-flood")
        self.assertEqual(len(self.lines(d)), 0)
        d.start(vcpus=2)
        self.assertEqual(len(self.lines(d)), 1)
        self.ok(d.action("FlushMetrics"))
        self.ok(d.action("FlushMetrics"))
        self.assertEqual(len(self.lines(d)), 3)
        d.kill()
        self.assertEqual(len(self.lines(d)), 4)

    def test_a_line_has_the_groups_that_consumers_look_for(self):
        d = Daemon(self, "--metrics-path", "metrics", guest="port-flood")
        self.ok(d.drive("rootfs", "/dev/null"))
        d.start()
        d.wait_for_exits([0])
        self.ok(d.action("FlushMetrics"))
        line = self.lines(d)[-1]
        self.assertAlmostEqual(line["utc_timestamp_ms"] / 1000, time.time(), delta=60)
        for group in ("api_server", "block", "block_rootfs", "deprecated_api", "entropy",
                      "get_api_requests", "i8042", "interrupts", "latencies_us", "logger", "mmds",
                      "net", "patch_api_requests", "put_api_requests", "seccomp", "signals", "uart",
                      "vcpu", "vmm", "vsock", "balloon"):
            self.assertIn(group, line)
        for field in ("exit_io_in", "exit_io_out", "exit_mmio_read", "exit_mmio_write", "failures"):
            self.assertIn(field, line["vcpu"])
        self.assertGreater(sum(line["vcpu"]["exit_io_out"] for line in self.lines(d)), 0)

    def test_counters_are_what_came_since_the_last_line(self):
        d = Daemon(self, "--metrics-path", "metrics")
        self.refused(d, d.put("/machine-config", vcpu_count=0, mem_size_mib=64))
        d.start()
        first = self.lines(d)[0]["put_api_requests"]  # written at the start
        self.assertEqual((first["machine_cfg_count"], first["machine_cfg_fails"]), (2, 1))
        self.ok(d.action("FlushMetrics"))
        second = self.lines(d)[-1]["put_api_requests"]
        self.assertEqual((second["machine_cfg_count"], second["machine_cfg_fails"]), (0, 0))

    def test_latencies_stay(self):
        d = Daemon(self, "--metrics-path", "metrics")
        d.start()
        self.ok(d.patch("/vm", state="Paused"))
        self.ok(d.patch("/vm", state="Resumed"))
        for _ in range(2):
            self.ok(d.action("FlushMetrics"))
            self.assertGreater(self.lines(d)[-1]["latencies_us"]["pause_vm"], 0)

    def test_exits_of_a_guest_that_ended_are_in_the_last_line(self):
        d = Daemon(self, "--metrics-path", "metrics", guest="console-hello")
        d.start()
        self.assertEqual(d.wait(), 0)
        total = sum(line["vcpu"]["exit_io_out"] for line in self.lines(d))
        self.assertEqual(total, 2)

    def test_they_are_set_once(self):
        d = Daemon(self)
        self.ok(d.put("/metrics", metrics_path=d.file("metrics")))
        self.refuses(d, "PUT", "/metrics", {"metrics_path": d.file("other")},
                     "Reinitialization of metrics not allowed.")
        self.assertFalse(os.path.exists(d.file("other")))

    def test_a_full_fifo_loses_whole_lines(self):
        d = Daemon(self)
        os.mkfifo(d.file("metrics"))
        self.ok(d.put("/metrics", metrics_path=d.file("metrics")))
        d.start()
        for _ in range(60):
            d.action("FlushMetrics")
        fd = os.open(d.file("metrics"), os.O_RDONLY | os.O_NONBLOCK)
        data = b""
        for _ in range(3):
            try:
                data += os.read(fd, 1 << 20)
            except BlockingIOError:
                pass
            self.ok(d.action("FlushMetrics"))
        os.close(fd)
        lines = data.split(b"\n")
        self.assertGreater(len(lines), 2)
        for line in lines[:-1]:
            self.assertIn("vcpu", json.loads(line))


if __name__ == "__main__":
    unittest.main()
