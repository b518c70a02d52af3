"""One vCPU at a time: GET /v1/vcpus/{n}, with registers read on its thread."""

import threading
import unittest

from lulld import Daemon, DaemonTest


class Registers(DaemonTest):
    def test_a_halted_guest_shows_its_registers(self):
        d = Daemon(self, guest="idle")
        d.start(vcpus=2)
        for index in (0, 1):
            vcpu = self.ok(d.get("/v1/vcpus/%d" % index)).json
            self.assertEqual(vcpu["index"], index)
            self.assertEqual(vcpu["state"], "running")
            self.assertRegex(vcpu["registers"], r"^RIP [0-9a-f]{4}:[0-9a-f]{16} RSP ")

    def test_a_busy_guest_answers_and_goes_on(self):
        d = Daemon(self, guest="port-flood")
        d.start()
        for _ in range(50):
            self.assertIn("RIP", self.ok(d.get("/v1/vcpus/0")).json["registers"])
        d.wait_for_exits(d.exits())

    def test_a_guest_that_never_exits_answers(self):
        d = Daemon(self, guest="spin")
        d.start()
        self.assertIn("RIP", self.ok(d.get("/v1/vcpus/0")).json["registers"])

    def test_a_paused_vcpu_answers_and_stays_paused(self):
        d = Daemon(self, guest="port-flood")
        d.start(vcpus=2)
        self.ok(d.patch("/vm", state="Paused"))
        before = d.exits()
        vcpu = self.ok(d.get("/v1/vcpus/1")).json
        self.assertEqual(vcpu["state"], "paused")
        self.assertIn("RIP", vcpu["registers"])
        self.assertEqual(d.exits(), before)

    def test_what_is_no_vcpu_is_not_found(self):
        d = Daemon(self, guest="idle")
        d.start(vcpus=2)
        for name in ("2", "32", "99999999999999999999", "00", "01", "a", "1a", "0x1"):
            reply = d.get("/v1/vcpus/" + name)
            self.assertEqual((reply.status, reply.json["error"]["code"]), (404, "not_found"), name)

    def test_before_the_start_there_is_none(self):
        d = Daemon(self)
        reply = d.get("/v1/vcpus/0")
        self.assertEqual((reply.status, reply.json["error"]["code"]), (409, "wrong_phase"))

    def test_questions_while_the_vm_stops_are_answered_or_cut_off(self):
        d = Daemon(self, guest="port-flood")
        d.start(vcpus=4)

        def ask():
            try:
                while d.get("/v1/vcpus/3").status == 200:
                    pass
            except OSError:
                pass  # the daemon has gone

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        d.wait_for_exits(d.exits())
        d.patch("/v1/vm", state="Stopped")
        for thread in threads:
            thread.join()
        self.assertEqual(d.wait(), 0)


if __name__ == "__main__":
    unittest.main()
