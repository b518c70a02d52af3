"""The command line, the configuration file, the name under which it is called."""

import json
import os
import signal
import subprocess
import tempfile
import unittest

from lulld import FAKE, TIMEOUT, Daemon, DaemonTest, write_file


class CommandLine(DaemonTest):
    def run_once(self, *args, name="lulld"):
        d = Daemon(self, *args, name=name, api=False)
        return d.wait(), d.stdout(), d.stderr()

    def test_version(self):
        status, out, _ = self.run_once("--version")
        self.assertEqual(status, 0)
        self.assertRegex(out.splitlines()[0], r"^lulld v\d+\.\d+\.\d+$")

    def test_version_under_the_other_name(self):
        status, out, _ = self.run_once("--version", name="firecracker")
        self.assertEqual(status, 0)
        self.assertRegex(out.splitlines()[0], r"^Firecracker v\d+\.\d+\.\d+$")

    def test_help_names_every_option(self):
        status, out, _ = self.run_once("--help")
        self.assertEqual(status, 0)
        for option in ("--api-sock", "--id", "--config-file", "--no-api", "--log-path", "--level",
                       "--metrics-path", "--boot-timer", "--big-lock", "--version"):
            self.assertIn(option, out)

    def test_bad_options(self):
        for args in (["--nonsense"], ["stray"], ["--id"], ["--id", "a_b"], ["--id", "a" * 65],
                     ["--id=a"], ["--id", "a", "--id", "a"], ["--no-api"],
                     ["--http-api-max-payload-size", "x"]):
            with self.subTest(args=args):
                status, _, err = self.run_once(*args)
                self.assertEqual(status, 153)
                self.assertRegex(err, "^Error: ")

    def test_bad_reports(self):
        for args in (["--level", "Loud"], ["--log-path", "/nonexistent/log"],
                     ["--metrics-path", "/nonexistent/metrics"], ["--log-path", "/"]):
            with self.subTest(args=args):
                d = Daemon(self, *args, wait=False)
                self.assertEqual(d.wait(), 152)
                self.assertIn(args[1], d.stderr())
                self.assertFalse(os.path.exists(d.socket))

    def test_a_limit_of_the_body(self):
        d = Daemon(self, "--http-api-max-payload-size", "100")
        self.ok(d.call("PUT", "/machine-config", raw='{"vcpu_count":2,"mem_size_mib":64}'.ljust(100)))
        reply = d.call("PUT", "/machine-config", raw=" " * 101)
        self.assertEqual(reply.status, 400)
        self.assertIn("limit of 100", reply.json["error"])

    def test_options_of_launchers(self):
        d = Daemon(self, "--id", "a", "--no-seccomp", "--start-time-us", "1",
                   "--start-time-cpu-us", "2", "--parent-cpu-time-us", "3", "--", "--nonsense")
        self.assertEqual(d.get("/").json["id"], "a")


class Socket(DaemonTest):
    def refused_to_serve(self, path):
        d = Daemon(self, "--api-sock", path, api=False)
        self.assertEqual(d.wait(), 1)
        self.assertIn(path[-20:], d.stderr())
        return d.stderr()

    def test_a_path_that_exists(self):
        first = Daemon(self)
        stale = write_file(first.file("stale"), b"precious")
        dangling = first.file("dangling")
        os.symlink(first.file("nowhere"), dangling)
        for path in (first.socket, stale, first.folder, dangling):
            with self.subTest(path=path):
                self.assertIn("Failed to open the API socket at: %s" % path,
                              self.refused_to_serve(path))
        self.ok(first.get("/"))  # the one that was there is unharmed
        with open(stale, "rb") as f:
            self.assertEqual(f.read(), b"precious")

    def test_a_path_that_cannot_be_had(self):
        for path in ("/nonexistent/socket", "/tmp/" + "a" * 120):
            self.refused_to_serve(path)

    def test_it_serves_once_it_is_there(self):
        """Clients wait for the file and then call; between the two lie microseconds."""
        for _ in range(10):
            d = Daemon(self, wait=False)
            while not os.path.exists(d.socket):
                self.assertIsNone(d.process.poll())
            with self.within(1):
                d.wait_for_socket()
            self.ok(d.get("/machine-config"))
            d.kill()

    def test_a_socket_of_somebody_else_is_left_alone(self):
        """The file was replaced while the daemon ran."""
        d = Daemon(self)
        os.unlink(d.socket)
        write_file(d.socket, b"other")
        d.kill()
        self.assertTrue(os.path.exists(d.socket))

    def test_closed_standard_descriptors(self):
        """No file of ours takes the place of standard output, where the log goes."""
        d = Daemon(self)
        socket = d.file("second")
        p = subprocess.Popen(["/bin/sh", "-c", 'exec "$0" --api-sock "$1" <&- >&- 2>&-',
                              d.file("lulld"), socket], cwd=d.folder)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        d.socket, first = socket, d.socket
        d.wait_for_socket()
        image = write_file(d.file("image"), bytes(4096))
        self.ok(d.drive("a", image))
        d.start()
        for _ in range(20):
            self.ok(d.get("/version"))
        for fd in range(3):
            self.assertEqual(os.readlink("/proc/%d/fd/%d" % (p.pid, fd)), "/dev/null")
        with open(image, "rb") as f:
            self.assertEqual(f.read(), bytes(4096))
        d.socket = first


class ConfigFile(DaemonTest):
    def launch(self, config, *args, guest="idle", api=False, **kwargs):
        """A daemon with that configuration, which may name the files "kernel" and "image"."""
        folder = tempfile.mkdtemp(prefix="lulld-")
        write_file(os.path.join(folder, "image"), size=4096)
        text = config if isinstance(config, str) else json.dumps(config)
        write_file(os.path.join(folder, "config"), text.encode())
        more = [] if api else ["--no-api"]
        return Daemon(self, "--config-file", "config", *more, *args, api=api, wait=api,
                      folder=folder, guest=guest, **kwargs)

    GOOD = {"boot-source": {"kernel_image_path": "kernel"}, "drives": []}

    def test_without_a_socket(self):
        d = self.launch(self.GOOD, guest="poweroff")
        self.assertEqual(d.wait(), 0)
        self.assertFalse(os.path.exists(d.socket))

    def test_with_a_socket(self):
        d = self.launch(self.GOOD, api=True)
        d.wait_for_state("running")
        self.ok(d.patch("/vm", state="Paused"))

    def test_all_of_it(self):
        """As launchers write it: nulls for what is not there, empty limiters, unknown keys."""
        limiter = {"bandwidth": {"size": 0, "one_time_burst": 0, "refill_time": 0}}
        d = self.launch({
            "boot-source": {"kernel_image_path": "kernel", "boot_args": "a", "initrd_path": None},
            "drives": [{"drive_id": "rootfs", "path_on_host": "image", "is_root_device": True,
                        "is_read_only": False, "partuuid": None, "rate_limiter": None},
                       {"drive_id": "b", "path_on_host": "/dev/null", "is_root_device": False,
                        "rate_limiter": limiter}],
            "machine-config": {"vcpu_count": 2, "mem_size_mib": 64, "smt": False,
                               "track_dirty_pages": False},
            "logger": {"log_path": "log", "level": "Debug"}, "metrics": {"metrics_path": "metrics"},
            "network-interfaces": [], "vsock": None, "balloon": None, "entropy": None,
            "mmds-config": None, "cpu-config": None, "surprise": {"of": "later versions"},
        }, api=True)
        d.wait_for_state("running")
        config = d.get("/vm/config").json
        self.assertEqual(config["machine-config"]["vcpu_count"], 2)
        self.assertEqual([v["drive_id"] for v in config["drives"]], ["rootfs", "b"])
        d.kill()
        with open(d.file("log")) as f:
            self.assertIn("exiting", f.read())
        self.assertTrue(os.path.getsize(d.file("metrics")))

    def test_files_that_are_none(self):
        for text in ("", "{", "[]", "null", "[" * 10000, '{"drives":[]}', "x" * (1 << 20),
                     '{"boot-source":{"kernel_image_path":"kernel"}}',
                     '{"boot-source":{"kernel_image_path":"none"},"drives":[]}',
                     '{"boot-source":{"kernel_image_path":"kernel","x":1},"drives":[]}',
                     '{"boot-source":{"kernel_image_path":"kernel"},"drives":[],"drives":[]}',
                     '{"boot-source":{"kernel_image_path":"kernel"},"drives":[{}]}',
                     '{"boot-source":{"kernel_image_path":"kernel"},"drives":[],'
                     '"machine-config":{"vcpu_count":33,"mem_size_mib":1}}',
                     '{"boot-source":{"kernel_image_path":"kernel"},"drives":[],'
                     '"vsock":{"guest_cid":3,"uds_path":"x"}}'):
            with self.subTest(text=text[:70]):
                d = self.launch(text)
                self.assertEqual(d.wait(), 152)
                self.assertRegex(d.stderr(), "^Error: ")

    def test_a_file_that_is_not_there(self):
        d = Daemon(self, "--no-api", "--config-file", "none", api=False)
        self.assertEqual(d.wait(), 152)
        self.assertIn("none", d.stderr())
        d = Daemon(self, "--no-api", "--config-file", "/", api=False)
        self.assertEqual(d.wait(), 152)

    def test_a_start_that_fails_ends_it(self):
        d = self.launch(self.GOOD, env={"LULL_FAKE_FAIL": "4"})
        self.assertEqual(d.wait(), 1)
        self.assertIn("cannot start the VM", d.stderr())

    def test_a_guest_that_fails(self):
        d = self.launch(self.GOOD, guest="internal-error")
        self.assertEqual(d.wait(), 1)


class Identity(DaemonTest):
    def test_its_own(self):
        d = Daemon(self)
        self.assertEqual(d.get("/").json["app_name"], "lull")
        self.assertEqual(d.get("/").headers["Server"], "lull")
        self.assertIn("Running lull v", d.stdout())
        with open("/proc/%d/comm" % d.process.pid) as f:
            self.assertEqual(f.read(), "lull-main\n")

    def test_the_other(self):
        d = Daemon(self, name="firecracker", guest="poweroff")
        reply = d.get("/")
        self.assertEqual(reply.json["app_name"], "Firecracker")
        self.assertEqual(reply.headers["Server"], "Firecracker API")
        version = d.get("/version").json["firecracker_version"]
        self.assertEqual(version, reply.json["vmm_version"])
        printed = subprocess.run([d.file("firecracker"), "--version"], capture_output=True,
                                 text=True, timeout=TIMEOUT, check=True).stdout
        self.assertEqual(printed.splitlines()[0], "Firecracker v" + version)
        with open("/proc/%d/comm" % d.process.pid) as f:
            self.assertEqual(f.read(), "firecracker\n")
        d.start()
        self.assertEqual(d.wait(), 0)
        self.assertIn("Firecracker exiting successfully. exit_code=0", d.stdout())

    def test_the_default_id(self):
        self.assertEqual(Daemon(self).get("/").json["id"], "anonymous-instance")

    def test_the_process_that_is_told_is_the_process(self):
        d = Daemon(self)
        self.assertEqual(d.vm()["pid"], d.process.pid)
        self.assertEqual(os.path.realpath("/proc/%d/exe" % d.process.pid), os.path.realpath(FAKE))
        self.assertEqual(d.kill(signal.SIGTERM)[0], -signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
