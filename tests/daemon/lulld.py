"""Runs lulld-fake as a process and talks to it, for the tests of this folder.

lulld-fake is the whole daemon over a KVM of its own; LULLD_FAKE names it. The
guest is a script, chosen by name (see tests/fakes/fake_guests.c).
"""

import contextlib
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

FAKE = os.path.abspath(os.environ.get("LULLD_FAKE", "build/tests/fakes/lulld-fake"))
TIMEOUT = float(os.environ.get("LULLD_TIMEOUT", "20"))
STOP_LIMIT = 5.0


def is_sanitized():
    """Built with a sanitizer: slower, and larger than any bound."""
    with open(FAKE, "rb") as f:
        program = f.read()
    return b"__asan_init" in program or b"__tsan_init" in program


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=TIMEOUT):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = connect(self.path, self.timeout)


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.raw = response.read()
        self.json = json.loads(self.raw) if self.raw else None

    @property
    def fault(self):
        return (self.json or {}).get("fault_message", "")

    def __repr__(self):
        return "<%d %r>" % (self.status, self.raw[:300])


def connect(path, timeout=TIMEOUT):
    """Waits for room in the backlog, which a socket with a timeout of Python's would not."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    limit = struct.pack("ll", int(timeout), int(timeout % 1 * 1000000))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    try:
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    sock.settimeout(timeout)
    return sock


def write_file(path, data=b"", size=None):
    with open(path, "wb") as f:
        f.write(data)
        if size is not None:
            f.truncate(size)
    return path


def elf_kernel(code=b"\xf4", address=0x1000000):
    """A 64-bit ELF file of one segment: enough of a kernel to be loaded."""
    head = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, address, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    head += struct.pack("<IIQQQQQQ", 1, 5, 0x1000, address, address, len(code), len(code), 0x1000)
    return head.ljust(0x1000, b"\0") + code


class InBackground:
    """A call on a thread of its own."""

    def __init__(self, function):
        self.value = None
        self.thread = threading.Thread(target=self._run, args=(function,))
        self.thread.start()

    def _run(self, function):
        try:
            self.value = function()
        except (OSError, http.client.HTTPException) as error:
            self.value = error

    def result(self):
        """What it returned, or how its connection ended."""
        self.thread.join()
        return self.value


class Daemon:
    """A running lulld-fake with a folder of its own. `stop` is called by the test's clean-up."""

    def __init__(self, test, *args, guest="idle", env=None, name="lulld", api=True, wait=True,
                 folder=None, stdin=subprocess.DEVNULL, stdout=None, limits=()):
        self.test = test
        self.folder = folder or tempfile.mkdtemp(prefix="lulld-")
        self.socket = os.path.join(self.folder, "api")
        self.kernel = write_file(self.file("kernel"), elf_kernel())
        self.output = open(self.file("stdout"), "ab+")
        self.errors = open(self.file("stderr"), "ab+")
        program = self.file(name)
        if not os.path.lexists(program):
            os.symlink(FAKE, program)
        command = [program] + (["--api-sock", self.socket] if api else []) + list(args)
        self.process = subprocess.Popen(
            command, stdin=stdin, stdout=stdout or self.output, stderr=self.errors, cwd=self.folder,
            env={**os.environ, "LULL_FAKE_GUEST": guest, **(env or {})},
            preexec_fn=lambda: [resource.setrlimit(*limit) for limit in limits])
        test.addCleanup(self.close)
        if api and wait:
            self.wait_for_socket()

    def file(self, name):
        return os.path.join(self.folder, name)

    def wait_for_socket(self):
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            try:
                connect(self.socket).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.01)
        self.test.fail("the daemon does not serve its socket: " + self.stderr())

    def stdout(self):
        return self._text(self.output)

    def stderr(self):
        return self._text(self.errors)

    @staticmethod
    def _text(file):
        file.flush()
        with open(file.name, "rb") as f:
            return f.read().decode(errors="replace")

    # Calls

    def call(self, method, path, body=None, raw=None):
        connection = UnixConnection(self.socket)
        try:
            data = raw if raw is not None else None if body is None else json.dumps(body)
            connection.request(method, path, data.encode() if isinstance(data, str) else data)
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def get(self, path):
        return self.call("GET", path)

    def put(self, path, **body):
        return self.call("PUT", path, body)

    def patch(self, path, **body):
        return self.call("PATCH", path, body)

    def action(self, name):
        return self.put("/actions", action_type=name)

    def configure(self, vcpus=1, mem=64, boot_args=None):
        body = {"kernel_image_path": self.kernel}
        if boot_args is not None:
            body["boot_args"] = boot_args
        self.test.ok(self.put("/machine-config", vcpu_count=vcpus, mem_size_mib=mem))
        self.test.ok(self.call("PUT", "/boot-source", body))

    def drive(self, name, path, root=False, read_only=False, **more):
        return self.put("/drives/" + name, drive_id=name, path_on_host=path, is_root_device=root,
                        is_read_only=read_only, **more)

    def start(self, **machine):
        self.configure(**machine)
        self.test.ok(self.action("InstanceStart"))

    def state(self):
        return self.get("/").json["state"]

    def vm(self):
        return self.get("/v1/vm").json

    def exits(self):
        return [v["exits"]["total"] for v in self.get("/v1/vcpus").json["vcpus"]]

    def wait_for_state(self, *states):
        """Until it is in one of them."""
        end = time.monotonic() + TIMEOUT
        while self.vm()["state"] not in states:
            self.test.assertLess(time.monotonic(), end, "%s is not reached" % (states,))
            time.sleep(0.005)

    def wait_for_exits(self, before):
        """Until each vCPU has had more exits than then."""
        end = time.monotonic() + TIMEOUT
        while not all(now > then for now, then in zip(self.exits(), before)):
            self.test.assertLess(time.monotonic(), end, "a vCPU does not run")
            time.sleep(0.005)

    # End

    def wait(self):
        """The exit status; negative: the signal that ended it."""
        try:
            return self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.test.fail("the daemon does not end: " + self.threads())

    def threads(self):
        """What its threads are doing, as far as the kernel tells: name, state, system call."""
        folder = "/proc/%d/task" % self.process.pid
        rows = []
        for tid in os.listdir(folder):
            row = []
            for name in ("comm", "wchan", "syscall"):
                try:
                    with open(os.path.join(folder, tid, name)) as file:
                        row.append(file.read().strip())
                except OSError as error:
                    row.append(error.strerror)
            rows.append(" ".join(row))
        return "; ".join(rows)

    def wait_for_thread(self, name):
        """Until it has a thread of that name, which GET /v1/vcpus cannot tell without a socket."""
        end = time.monotonic() + TIMEOUT
        while " %s " % name not in " %s " % self.threads().replace(";", " "):
            self.test.assertLess(time.monotonic(), end, "no thread \"%s\"" % name)
            time.sleep(0.01)

    def kill(self, signo=signal.SIGTERM):
        """Sends a signal and waits: (exit status, seconds)."""
        begin = time.monotonic()
        self.process.send_signal(signo)
        return self.wait(), time.monotonic() - begin

    def close(self):
        if self.output.closed:
            return
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        errors = self.stderr()
        self.output.close()
        self.errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        for bad in ("lulld-fake:", "ERROR: AddressSanitizer", "ERROR: LeakSanitizer",
                    "WARNING: ThreadSanitizer", "runtime error:"):
            self.test.assertNotIn(bad, errors)


class DaemonTest(unittest.TestCase):
    """Checks that every test of the daemon makes."""

    longMessage = True

    def ok(self, reply):
        self.assertIn(reply.status, (200, 204), reply)
        self.assertEqual(reply.raw == b"", reply.status == 204, reply)
        return reply

    def snapshot(self, daemon):
        """All of what a client sees of the VM's configuration and phase."""
        vm = daemon.vm()
        vm.pop("uptime_ms", None)
        return daemon.get("/vm/config").json, daemon.get("/").json, vm

    def refused(self, daemon, reply, *texts):
        """400 with a fault that has the texts; the daemon lives and serves."""
        self.assertEqual(reply.status, 400, reply)
        for text in texts:
            self.assertIn(text, reply.fault or json.dumps(reply.json))
        self.assertIsNone(daemon.process.poll())
        return reply

    def refuses(self, daemon, method, path, body, *texts, raw=None):
        """As refused(), and nothing that a client sees has changed."""
        before = self.snapshot(daemon)
        reply = self.refused(daemon, daemon.call(method, path, body, raw), *texts)
        self.assertEqual(self.snapshot(daemon), before)
        return reply

    @contextlib.contextmanager
    def within(self, seconds):
        begin = time.monotonic()
        yield
        self.assertLess(time.monotonic() - begin, seconds)

