"""Clients that are slow, many, gone, or race one another."""

import os
import random
import resource
import signal
import threading
import time
import unittest

from lulld import Daemon, DaemonTest, InBackground, UnixConnection, connect, is_sanitized

DEADLINE = 5.0  # of one request, from its first byte to its last


class Slow(DaemonTest):
    def feed(self, d, data, pause):
        """Sends byte by byte until the server hangs up: (seconds, what it said)."""
        s = connect(d.socket)
        begin = time.monotonic()
        s.settimeout(pause)
        for byte in data:
            try:
                s.sendall(bytes([byte]))
                answer = s.recv(4096)
            except TimeoutError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                answer = b""
            s.close()
            return time.monotonic() - begin, answer
        self.fail("the server took it all")

    def test_slow_clients_are_cut_and_others_served_meanwhile(self):
        d = Daemon(self)
        head = b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 1000
        body = b"PUT /machine-config HTTP/1.1\r\nContent-Length: 5000\r\n\r\n" + b" " * 4900
        slow = [InBackground(lambda data=data: self.feed(d, data, 0.2)) for data in (head, body)]
        while any(s.thread.is_alive() for s in slow):
            with self.within(1):
                self.ok(d.get("/version"))
            time.sleep(0.05)
        for s in slow:
            seconds, answer = s.result()
            self.assertGreater(seconds, DEADLINE - 1)
            self.assertLess(seconds, DEADLINE + 3)
            self.assertEqual(answer, b"")

    def test_a_client_that_never_reads(self):
        """Its requests stop being read; it holds no memory and nobody up."""
        d = Daemon(self)
        s = connect(d.socket)
        s.settimeout(0.2)
        sent = 0
        try:
            for _ in range(2000):
                sent += s.send(b"GET /vm/config HTTP/1.1\r\n\r\n" * 100)
        except (TimeoutError, BrokenPipeError, ConnectionResetError):
            pass
        self.assertLess(sent, 8 << 20)
        with self.within(2):
            self.ok(d.get("/version"))
        with open("/proc/%d/status" % d.process.pid) as f:
            rss = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
        s.close()
        if not is_sanitized():
            self.assertLess(rss, 64 << 10)

    def test_half_a_request_and_gone(self):
        d = Daemon(self)
        for cut in range(0, 120, 7):
            s = connect(d.socket)
            s.sendall(b"PUT /machine-config HTTP/1.1\r\nContent-Length: 33\r\n\r\n"
                      b'{"vcpu_count":2,"mem_size_mib":64'[:cut])
            s.close()
        self.assertEqual(d.get("/machine-config").json["vcpu_count"], 1)

    def test_gone_before_the_answer(self):
        """A start and a pause go on without who asked for them."""
        d = Daemon(self, guest="sluggish", env={"LULL_FAKE_SLOW_START_MS": "300"})
        d.configure(vcpus=2)
        for path, method, body, state in (
                ("/actions", "PUT", b'{"action_type":"InstanceStart"}', "running"),
                ("/vm", "PATCH", b'{"state":"Paused"}', "paused")):
            s = connect(d.socket)
            s.sendall(b"%s %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s"
                      % (method.encode(), path.encode(), len(body), body))
            time.sleep(0.05)
            s.close()
            d.wait_for_state(state)
        self.ok(d.patch("/vm", state="Resumed"))

    def test_the_daemon_ends_while_an_answer_is_due(self):
        d = Daemon(self, guest="sluggish")
        d.start(vcpus=2)
        pause = InBackground(lambda: d.patch("/vm", state="Paused"))
        d.wait_for_state("pausing", "paused")
        self.assertEqual(d.kill()[0], -signal.SIGTERM)
        # Refused, cut off, or answered just before.
        self.assertIn(getattr(pause.result(), "status", 400), (204, 400))


class Many(DaemonTest):
    def test_200_clients_are_all_served(self):
        d = Daemon(self)
        clients = [InBackground(lambda: d.get("/version")) for _ in range(200)]
        for c in clients:
            self.assertEqual(getattr(c.result(), "status", c.result()), 200)

    def test_200_connections_that_say_nothing(self):
        """Those beyond the limit wait; when one goes the next is served."""
        d = Daemon(self)
        idle = []
        try:
            while len(idle) < 200:
                idle.append(connect(d.socket, 0.2))
        except OSError:
            pass  # the backlog is full, and says so
        self.assertGreaterEqual(len(idle), 10)
        for s in idle:
            s.close()
        with self.within(3):
            self.ok(d.get("/version"))

    def test_200_clients_one_after_the_other_leak_nothing(self):
        d = Daemon(self)
        self.ok(d.get("/"))
        before = self.descriptors(d)
        for _ in range(200):
            self.ok(d.get("/"))
        c = UnixConnection(d.socket)
        for _ in range(200):
            c.request("GET", "/version")
            self.assertEqual(c.getresponse().read()[:1], b"{")
        c.close()
        end = time.monotonic() + 5
        while self.descriptors(d) > before and time.monotonic() < end:
            time.sleep(0.02)
        self.assertLessEqual(self.descriptors(d), before)

    @staticmethod
    def descriptors(d):
        return len(os.listdir("/proc/%d/fd" % d.process.pid))

    def test_few_descriptors(self):
        """With none left for a connection, clients wait; the daemon does not spin."""
        d = Daemon(self, limits=[(resource.RLIMIT_NOFILE, (20, 20))])
        idle = []
        try:
            for _ in range(30):
                idle.append(connect(d.socket, 0.2))
        except OSError:
            pass
        begin = self.cpu_seconds(d)
        time.sleep(0.5)
        self.assertLess(self.cpu_seconds(d) - begin, 0.3)
        for s in idle:
            s.close()
        self.ok(d.get("/version"))

    @staticmethod
    def cpu_seconds(d):
        with open("/proc/%d/stat" % d.process.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100


class Races(DaemonTest):
    def together(self, *calls):
        """Makes the calls at the same time: their replies."""
        barrier = threading.Barrier(len(calls))

        def run(call):
            barrier.wait()
            return call()
        return [b.result() for b in [InBackground(lambda c=c: run(c)) for c in calls]]

    def test_two_starts(self):
        for _ in range(10):
            d = Daemon(self)
            d.configure()
            replies = self.together(*[lambda: d.action("InstanceStart")] * 2)
            self.assertEqual(sorted(r.status for r in replies), [204, 400])
            self.assertEqual(d.state(), "Running")
            d.close()

    def test_two_pausers(self):
        d = Daemon(self, guest="port-flood")
        d.start(vcpus=4)
        for state in ("Paused", "Resumed") * 10:
            for reply in self.together(*[lambda s=state: d.patch("/vm", state=s)] * 3):
                self.ok(reply)

    def test_a_start_and_a_change(self):
        """The change is in the VM that was started, or refused."""
        for _ in range(10):
            d = Daemon(self, env={"LULL_FAKE_SLOW_START_MS": "20"})
            d.configure(vcpus=1)
            start, change = self.together(
                lambda: d.action("InstanceStart"),
                lambda: d.put("/machine-config", vcpu_count=3, mem_size_mib=64))
            self.ok(start)
            count = 3 if change.status == 204 else 1
            self.assertEqual(len(d.get("/v1/vcpus").json["vcpus"]), count)
            self.assertEqual(d.get("/machine-config").json["vcpu_count"], count)
            d.close()

    def test_a_pause_and_the_end_of_the_guest(self):
        for _ in range(10):
            d = Daemon(self, guest="poweroff")
            d.configure()
            self.together(lambda: d.action("InstanceStart"), lambda: d.patch("/vm", state="Paused"))
            if d.process.poll() is None:
                try:
                    d.patch("/vm", state="Resumed")
                except OSError:
                    pass
            self.assertEqual(d.wait(), 0)

    def test_random_calls_of_four_clients(self):
        """Whatever the order, each call is answered and the VM is in one of its states."""
        d = Daemon(self, guest="port-flood")
        d.start(vcpus=2)
        calls = [lambda: d.patch("/vm", state="Paused"), lambda: d.patch("/vm", state="Resumed"),
                 lambda: d.get("/v1/vcpus"), lambda: d.get("/vm/config"),
                 lambda: d.action("FlushMetrics"), lambda: d.action("InstanceStart"),
                 lambda: d.action("SendCtrlAltDel"),
                 lambda: d.put("/machine-config", vcpu_count=1, mem_size_mib=1)]
        problems = []

        def client(seed):
            choice = random.Random(seed)
            for _ in range(100):
                reply = choice.choice(calls)()
                if reply.status not in (200, 204, 400):
                    problems.append(reply)
        clients = [InBackground(lambda seed=seed: client(seed)) for seed in range(4)]
        for c in clients:
            self.assertIsNone(c.result())
        self.assertEqual(problems, [])
        self.ok(d.patch("/vm", state="Paused"))
        self.ok(d.patch("/vm", state="Resumed"))


if __name__ == "__main__":
    unittest.main()
