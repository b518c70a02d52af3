"""Files and sizes that cannot be used: a clear error, the state kept, the process alive."""

import os
import random
import resource
import unittest

from lulld import Daemon, DaemonTest, elf_kernel, is_sanitized, write_file

# Word by word what clients of Firecracker look for.
TAP_FAULT = ("Network config error: Could not create the network device: "
             "Open tap device failed: ")
KERNEL_FAULT = ("Start microvm error: System configuration error: Cannot load kernel due to "
                "invalid memory configuration or invalid kernel image: kernel: ")
INITRD_FAULT = "Start microvm error: Error with initrd initialization: initrd: "
INITRD_PATH_FAULT = ("Boot source error: The initrd file cannot be opened due to invalid path or "
                     "invalid permissions. ")


def host_memory_mib():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1 << 20)


class Kernels(DaemonTest):
    def test_kernels_that_cannot_be_opened(self):
        d = Daemon(self)
        self.ok(d.put("/boot-source", kernel_image_path=d.kernel, boot_args="good"))
        os.mkfifo(d.file("fifo"))
        for path, text in ((d.file("none"), "No such file"), (d.folder, "directory"),
                           (d.file("fifo"), "not a regular file"), (d.socket, ""),
                           ("/dev/zero", "not a regular file"), ("", "kernel"),
                           ("/" + "a" * 5000, "")):
            with self.subTest(path=path[:40]):
                self.refuses(d, "PUT", "/boot-source", {"kernel_image_path": path}, text)
        self.assertEqual(d.get("/vm/config").json["boot-source"]["boot_args"], "good")

    def test_initrds_that_cannot_be_opened(self):
        d = Daemon(self)
        for path, text in ((d.file("none"), "No such file or directory (os error 2)"),
                           (d.folder, "Is a directory"),
                           ("/dev/null", "/dev/null is not a regular file")):
            self.refuses(d, "PUT", "/boot-source",
                         {"kernel_image_path": d.kernel, "initrd_path": path},
                         INITRD_PATH_FAULT + text)

    def starts_not(self, d, *texts):
        """The start is refused, the VM stays configurable and starts with a good kernel."""
        self.refuses(d, "PUT", "/actions", {"action_type": "InstanceStart"},
                     "Start microvm error: ", *texts)
        self.assertEqual(d.state(), "Not started")
        self.assertEqual(d.get("/v1/vcpus").json["vcpus"], [])
        self.assertEqual(d.get("/v1/devices").json["devices"], [])

    def test_kernels_that_are_none(self):
        good = elf_kernel(b"\xf4" * 5000)
        noise = random.Random(1)
        kernels = {
            "empty": b"",
            "one byte": b"\x7f",
            "magic alone": b"\x7fELF",
            "text": b"#!/bin/sh\nexit 0\n" * 100,
            "cut in the head": good[:40],
            "cut in the table": good[:100],
            "cut in the segment": good[:-1],
            "random": noise.randbytes(100000),
            "random behind a magic": b"\x7fELF\2\1\1" + noise.randbytes(100000),
            "zeros": bytes(100000),
            "beyond the memory": elf_kernel(address=0x40000000),
            "below the floor": elf_kernel(address=0x1000),
            "at the end of addresses": elf_kernel(address=0xfffffffffffff000),
        }
        d = Daemon(self)
        self.ok(d.put("/machine-config", vcpu_count=2, mem_size_mib=64))
        for name, data in kernels.items():
            with self.subTest(kernel=name):
                bad = write_file(d.file("bad"), data)
                self.ok(d.put("/boot-source", kernel_image_path=bad))
                self.starts_not(d, KERNEL_FAULT)
        d.start()

    def test_a_kernel_that_was_cut_after_it_was_given(self):
        d = Daemon(self)
        d.configure()
        os.truncate(d.kernel, 20)
        self.starts_not(d, KERNEL_FAULT)

    def test_random_kernels(self):
        """Fifty files that differ from a good one in a few bytes of the head."""
        noise = random.Random(2)
        good = elf_kernel(b"\xf4" * 100)
        for _ in range(5):
            d = Daemon(self)
            self.ok(d.put("/machine-config", vcpu_count=1, mem_size_mib=64))
            for _ in range(10):
                data = bytearray(good)
                for _ in range(noise.randrange(1, 6)):
                    data[noise.randrange(0, 120)] = noise.randrange(256)
                self.ok(d.put("/boot-source", kernel_image_path=write_file(d.file("k"), data)))
                if d.action("InstanceStart").status == 204:
                    break
                self.assertEqual(d.state(), "Not started")
            self.assertIsNone(d.process.poll())

    def test_initrds_that_do_not_fit(self):
        d = Daemon(self)
        self.ok(d.put("/machine-config", vcpu_count=1, mem_size_mib=64))
        for size in (0, 65 << 20, 1 << 40):
            with self.subTest(size=size):
                initrd = write_file(d.file("initrd"), size=size)
                self.ok(d.put("/boot-source", kernel_image_path=d.kernel, initrd_path=initrd))
                self.starts_not(d, INITRD_FAULT)

    def test_command_lines(self):
        d = Daemon(self)
        for args in ("a" * 2048, "a" * 8000, "tab\there", "line\nfeed", "\x7f", "\u00e9"):
            with self.subTest(args=args[:20]):
                self.refuses(d, "PUT", "/boot-source",
                             {"kernel_image_path": d.kernel, "boot_args": args})
        self.ok(d.put("/boot-source", kernel_image_path=d.kernel, boot_args="a" * 2047))
        # What the board appends does not fit any more.
        self.ok(d.put("/entropy"))
        reply = d.action("InstanceStart")
        if reply.status != 204:
            self.refused(d, reply, "command line")


class Machines(DaemonTest):
    def test_sizes_that_no_machine_has(self):
        d = Daemon(self)
        self.ok(d.put("/machine-config", vcpu_count=2, mem_size_mib=96))
        for body in ({"vcpu_count": 0, "mem_size_mib": 64}, {"vcpu_count": 33, "mem_size_mib": 64},
                     {"vcpu_count": 3, "mem_size_mib": 64, "smt": True},
                     {"vcpu_count": 1, "mem_size_mib": 0},
                     {"vcpu_count": 1, "mem_size_mib": 1 << 44},
                     {"vcpu_count": 1, "mem_size_mib": (1 << 64) - 1},
                     {"vcpu_count": 1, "mem_size_mib": 63, "huge_pages": "2M"}):
            with self.subTest(body=body):
                self.refuses(d, "PUT", "/machine-config", body, "Machine config error: ")
        for body in ({"vcpu_count": 256, "mem_size_mib": 64}, {"vcpu_count": -1, "mem_size_mib": 1},
                     {"vcpu_count": 1, "mem_size_mib": -1},
                     {"vcpu_count": 1, "mem_size_mib": 1 << 64}):
            with self.subTest(body=body):
                self.refuses(d, "PUT", "/machine-config", body, "deserializing")
        for body in ({"vcpu_count": 33}, {"mem_size_mib": 0}, {"vcpu_count": 3, "smt": True}, {}):
            with self.subTest(patch=body):
                self.refuses(d, "PATCH", "/machine-config", body)
        self.assertEqual(d.get("/machine-config").json["vcpu_count"], 2)

    def test_all_vcpus_there_can_be(self):
        d = Daemon(self, guest="port-flood")
        d.start(vcpus=32)
        vcpus = d.get("/v1/vcpus").json["vcpus"]
        self.assertEqual([v["index"] for v in vcpus], list(range(32)))
        self.assertEqual(len({v["tid"] for v in vcpus}), 32)
        self.assertLess(d.kill()[1], 5)

    def test_the_smallest_memory(self):
        """It cannot hold a kernel; that is an error of the start, not a crash."""
        d = Daemon(self)
        for mem in (1, 2, 3, 15, 16):
            with self.subTest(mem=mem):
                self.ok(d.put("/machine-config", vcpu_count=1, mem_size_mib=mem))
                self.ok(d.put("/boot-source", kernel_image_path=d.kernel))
                self.refuses(d, "PUT", "/actions", {"action_type": "InstanceStart"})
        d.start(mem=17)

    def test_more_memory_than_the_host_has(self):
        d = Daemon(self)
        d.configure(mem=host_memory_mib() * 4)
        self.refuses(d, "PUT", "/actions", {"action_type": "InstanceStart"},
                     "Start microvm error: ", "Invalid Memory Configuration")
        d.start(mem=64)

    def test_memory_above_the_hole(self):
        d = Daemon(self)
        if host_memory_mib() < 5 * 1024:
            self.skipTest("the host has less than 5 GiB")
        d.start(mem=5 * 1024)

    def test_address_space_that_runs_out(self):
        """The memory of the daemon itself is limited: an error, no crash."""
        if is_sanitized():
            self.skipTest("sanitizers need more address space to run at all")
        d = Daemon(self, limits=[(resource.RLIMIT_AS, (3 << 30, 3 << 30))])
        d.configure(mem=4096)
        self.refuses(d, "PUT", "/actions", {"action_type": "InstanceStart"})
        d.start(mem=64)


class Drives(DaemonTest):
    def test_paths_that_are_no_image(self):
        d = Daemon(self)
        os.mkfifo(d.file("fifo"))
        self.ok(d.drive("good", write_file(d.file("image"), size=4096)))
        for path, text in ((d.file("none"), "No such file"), (d.folder, "directory"),
                           (d.file("fifo"), ""), (d.socket, ""), ("/dev/zero", ""), ("", ""),
                           ("/proc/self/mem/x", "")):
            for name in ("bad", "good"):
                with self.subTest(path=path, name=name):
                    self.refuses(d, "PUT", "/drives/" + name,
                                 {"drive_id": name, "path_on_host": path,
                                  "is_root_device": False}, "Drive config error: ", text)
        d.start()

    def test_files_of_any_size_are_images(self):
        d = Daemon(self)
        for i, size in enumerate((0, 1, 511, 513, 4096, 1 << 40)):
            image = write_file(d.file("image%d" % i), size=size)
            self.ok(d.drive("d%d" % i, image))
            self.assertEqual("drive d%d: the size of" % i in d.stdout(), size % 512 != 0)
        self.ok(d.drive("null", "/dev/null", root=True))
        d.start()
        self.assertEqual(len(d.get("/vm/config").json["drives"]), 7)

    def test_a_file_that_may_only_be_read(self):
        """A running program, since the tests may have all privileges."""
        d = Daemon(self)
        busy = os.path.realpath(d.file("lulld"))
        self.refuses(d, "PUT", "/drives/a", {"drive_id": "a", "path_on_host": busy,
                                             "is_root_device": False}, "Drive config error: ")
        self.ok(d.drive("a", busy, read_only=True))
        locked = write_file(d.file("locked"), size=512)
        os.chmod(locked, 0o400)
        if os.geteuid() != 0:
            self.refuses(d, "PUT", "/drives/b", {"drive_id": "b", "path_on_host": locked,
                                                 "is_root_device": False}, "Permission denied")
        self.ok(d.drive("b", locked, read_only=True))

    def test_one_image_in_two_hands(self):
        d = Daemon(self)
        image = write_file(d.file("image"), size=4096)
        self.ok(d.drive("a", image))
        self.refuses(d, "PUT", "/drives/b", {"drive_id": "b", "path_on_host": image,
                                             "is_root_device": False}, "in use")
        other = Daemon(self)
        self.refuses(other, "PUT", "/drives/a", {"drive_id": "a", "path_on_host": image,
                                                 "is_root_device": False}, "in use")
        self.ok(d.drive("a", image))  # the same drive again is no second hand
        d.kill()
        self.ok(other.drive("a", image))

    def test_two_root_drives(self):
        d = Daemon(self)
        self.ok(d.drive("a", "/dev/null", root=True))
        self.refuses(d, "PUT", "/drives/b", {"drive_id": "b", "path_on_host": "/dev/null",
                                             "is_root_device": True},
                     "A root block device already exists!")

    def test_more_drives_than_there_are_places(self):
        d = Daemon(self)
        for i in range(16):
            self.ok(d.drive("d%d" % i, "/dev/null"))
        self.refuses(d, "PUT", "/drives/more", {"drive_id": "more", "path_on_host": "/dev/null",
                                                "is_root_device": False}, "drives")

    def test_an_image_that_is_gone_at_the_start_was_opened_before(self):
        d = Daemon(self)
        image = write_file(d.file("image"), size=4096)
        self.ok(d.drive("a", image))
        os.unlink(image)
        d.start()

    def test_a_file_size_limit_is_an_error_for_the_guest(self):
        """Writing past RLIMIT_FSIZE raises a signal, which must not end the daemon."""
        d = Daemon(self, "--log-path", "/dev/null", guest="blk-write-error",
                   limits=[(resource.RLIMIT_FSIZE, (512, 512))])
        image = write_file(d.file("image"), size=4096)
        self.ok(d.drive("a", image))
        d.start()
        self.assertEqual(d.wait(), 0)

    def test_networks_that_cannot_be_had(self):
        d = Daemon(self)
        for body, text in (
                ({"iface_id": "n", "host_dev_name": "nonexistent0"}, TAP_FAULT),
                ({"iface_id": "n", "host_dev_name": "a" * 40}, TAP_FAULT),
                ({"iface_id": "n", "host_dev_name": "/dev/null"}, "Network config error: "),
                ({"iface_id": "n", "host_dev_name": ""}, "host_dev_name"),
                ({"iface_id": "n", "host_dev_name": "t", "mtu": 67}, "MTU 67"),
                ({"iface_id": "n", "host_dev_name": "t", "guest_mac": "1:2:3"}, "guest_mac")):
            with self.subTest(body=body):
                self.refuses(d, "PUT", "/network-interfaces/n", body, text)


if __name__ == "__main__":
    unittest.main()
