"""Signals in each state: the daemon ends in bounded time, the way it was asked to."""

import os
import signal
import subprocess
import tempfile
import time
import unittest

from lulld import STOP_LIMIT, Daemon, DaemonTest, InBackground, connect

# What the parent sees: the signal itself, so that it knows it worked, or a status.
EXPECTED = {
    signal.SIGTERM: -signal.SIGTERM,
    signal.SIGINT: -signal.SIGINT,
    signal.SIGHUP: 156,
}


class Stop(DaemonTest):
    def stops(self, d, signo):
        status, seconds = d.kill(signo)
        self.assertEqual(status, EXPECTED[signo])
        self.assertLess(seconds, STOP_LIMIT)
        self.assertIn("reason=stopped", d.stdout())
        self.assertFalse(os.path.exists(d.socket))

    def each(self, prepare):
        """`prepare` gives a daemon in the state, and the call that waits in it, if any."""
        for signo in EXPECTED:
            with self.subTest(signal=signo.name):
                d, waiting = prepare()
                self.stops(d, signo)
                if waiting:  # refused, cut off, or answered just before
                    self.assertIn(getattr(waiting.result(), "status", 400), (204, 400))

    def test_configuring(self):
        self.each(lambda: (Daemon(self), None))

    def test_starting(self):
        def prepare():
            d = Daemon(self, env={"LULL_FAKE_SLOW_START_MS": "600"})
            d.configure(vcpus=2)
            start = InBackground(lambda: d.action("InstanceStart"))
            d.wait_for_state("starting")
            return d, start
        self.each(prepare)

    def running(self, guest):
        d = Daemon(self, guest=guest)
        d.start(vcpus=4)
        return d, None

    def test_running_a_halted_guest(self):
        self.each(lambda: self.running("idle"))

    def test_running_a_guest_that_never_exits(self):
        self.each(lambda: self.running("spin"))

    def test_running_a_flood_of_exits(self):
        self.each(lambda: self.running("port-flood"))

    def test_running_a_guest_that_is_deaf_for_a_while(self):
        self.each(lambda: self.running("sluggish"))

    def test_running_a_guest_that_is_deaf_for_good(self):
        """Its vCPU never leaves KVM: the process ends without it."""
        for signo in (signal.SIGTERM, signal.SIGINT):
            d, _ = self.running("deaf")
            d.wait_for_exits([0])
            time.sleep(0.1)  # it enters KVM again, for a minute
            self.stops(d, signo)
            self.assertIn("1 of 4 vCPUs have not left", d.stdout())

    def test_running_a_flood_of_console_output(self):
        self.each(lambda: self.running("console-flood"))

    def test_pausing(self):
        def prepare():
            d, _ = self.running("sluggish")
            time.sleep(0.05)
            pause = InBackground(lambda: d.patch("/vm", state="Paused"))
            d.wait_for_state("pausing", "paused")
            return d, pause
        self.each(prepare)

    def test_paused(self):
        def prepare():
            d, _ = self.running("port-flood")
            self.ok(d.patch("/vm", state="Paused"))
            return d, None
        self.each(prepare)

    def test_resumed(self):
        def prepare():
            d, _ = self.running("port-flood")
            self.ok(d.patch("/vm", state="Paused"))
            self.ok(d.patch("/vm", state="Resumed"))
            return d, None
        self.each(prepare)

    def test_after_a_failed_start(self):
        def prepare():
            d = Daemon(self, env={"LULL_FAKE_FAIL": "5"})
            d.configure()
            self.refused(d, d.action("InstanceStart"))
            return d, None
        self.each(prepare)

    def test_without_a_socket(self):
        for signo in EXPECTED:
            d = Daemon(self, "--no-api", "--config-file", "c", api=False, guest="spin", wait=False,
                       folder=self.folder_with_config())
            d.wait_for_thread("vcpu 0")
            status, seconds = d.kill(signo)
            self.assertEqual(status, EXPECTED[signo])
            self.assertLess(seconds, STOP_LIMIT)

    def folder_with_config(self):
        folder = tempfile.mkdtemp(prefix="lulld-")
        with open(os.path.join(folder, "c"), "w") as f:
            f.write('{"boot-source":{"kernel_image_path":"kernel"},"drives":[]}')
        return folder

    def test_many_signals_at_once(self):
        """The first asks; another one ends it at once."""
        d, _ = self.running("port-flood")
        for _ in range(50):
            d.process.send_signal(signal.SIGTERM)
            d.process.send_signal(signal.SIGHUP)
        self.assertIn(d.wait(), (-signal.SIGTERM, -signal.SIGHUP, EXPECTED[signal.SIGHUP]))

    def test_clients_are_connected(self):
        d, _ = self.running("idle")
        idle = [connect(d.socket) for _ in range(15)]
        idle[0].sendall(b"GET / HTT")
        self.stops(d, signal.SIGTERM)
        for s in idle:
            s.close()


class Others(DaemonTest):
    def test_a_reader_of_the_output_that_is_gone(self):
        """SIGPIPE is no end."""
        read, write = os.pipe()
        d = Daemon(self, guest="console-flood", stdout=write)
        os.close(write)
        os.close(read)
        d.start()
        self.ok(d.put("/actions", action_type="FlushMetrics"))
        self.assertEqual(d.state(), "Running")
        self.assertEqual(d.kill()[0], -signal.SIGTERM)

    def test_a_reader_of_the_output_that_does_not_read(self):
        """Neither the log nor the console waits for it."""
        read, write = os.pipe()
        d = Daemon(self, guest="console-flood", stdout=write)
        os.close(write)
        d.start()
        for _ in range(300):
            self.ok(d.get("/version"))
        self.ok(d.patch("/vm", state="Paused"))
        status, seconds = d.kill()
        self.assertEqual(status, -signal.SIGTERM)
        self.assertLess(seconds, STOP_LIMIT)
        os.close(read)

    def test_stopped_and_continued(self):
        d = Daemon(self, guest="port-flood")
        d.start(vcpus=2)
        d.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        d.process.send_signal(signal.SIGCONT)
        self.ok(d.patch("/vm", state="Paused"))
        self.ok(d.patch("/vm", state="Resumed"))
        d.wait_for_exits(d.exits())

    def test_killed_the_next_one_is_told(self):
        """Nothing can be cleaned up after SIGKILL: the socket stays and says so."""
        d = Daemon(self)
        d.start()
        self.assertEqual(d.kill(signal.SIGKILL)[0], -signal.SIGKILL)
        again = subprocess.run([d.file("lulld"), "--api-sock", d.socket], capture_output=True,
                               text=True, timeout=20, check=False)
        self.assertEqual(again.returncode, 1)
        self.assertIn(d.socket, again.stderr)
        os.unlink(d.socket)


if __name__ == "__main__":
    unittest.main()
