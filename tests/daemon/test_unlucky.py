"""Clients that change their mind at a bad moment, and hosts that are short of something."""

import os
import resource
import signal
import unittest

from lulld import Daemon, DaemonTest, InBackground, write_file


class Unlucky(DaemonTest):
    def test_no_queue_entry_for_a_real_time_signal(self):
        """The kick of a vCPU that never exits gets through without one."""
        d = Daemon(self, guest="spin", limits=[(resource.RLIMIT_SIGPENDING, (0, 0))])
        d.start()
        with self.within(5):
            self.ok(d.patch("/vm", state="Paused"))
        self.ok(d.patch("/vm", state="Resumed"))
        status, seconds = d.kill()
        self.assertEqual(status, -signal.SIGTERM)
        self.assertLess(seconds, 5)

    def test_a_refused_second_put_keeps_the_drive(self):
        """Its file stays open and locked, and the guest starts with it."""
        d = Daemon(self)
        image = write_file(d.file("image"), size=4096)
        self.ok(d.drive("a", image))
        self.refuses(d, "PUT", "/drives/a", {"drive_id": "a", "path_on_host": d.file("none"),
                                            "is_root_device": False})
        other = Daemon(self)
        self.refused(other, other.drive("a", image), "in use")
        os.unlink(image)
        d.start()

    def test_a_second_put_of_the_same_drive(self):
        d = Daemon(self)
        image = write_file(d.file("image"), size=4096)
        for read_only in (False, False, True, False):
            self.ok(d.drive("a", image, read_only=read_only))
        d.start()

    def test_pause_and_resume_cross_each_other(self):
        """Whoever asks is answered when it was so; nobody is refused."""
        d = Daemon(self, guest="port-flood")
        d.start(vcpus=2)
        states = ["Paused", "Resumed", "Paused", "Resumed"]
        for _ in range(25):
            calls = [InBackground(lambda s=s: d.patch("/vm", state=s)) for s in states]
            for call in calls:
                self.ok(call.result())
        self.ok(d.patch("/vm", state="Resumed"))
        self.assertEqual(d.state(), "Running")

    def test_a_second_sigterm_ends_at_once(self):
        d = Daemon(self)
        d.start()
        d.process.send_signal(signal.SIGTERM)
        self.assertEqual(d.kill()[0], -signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
