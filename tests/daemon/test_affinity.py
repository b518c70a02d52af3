"""Affinity and topology of a running daemon: what the kernel says of its threads."""

import json
import os
import unittest

from lulld import Daemon, DaemonTest, elf_kernel, write_file

OWN = sorted(os.sched_getaffinity(0))


class Affinity(DaemonTest):
    def tid(self, daemon, index):
        return daemon.get("/v1/vcpus").json["vcpus"][index]["tid"]

    def test_what_was_given_before_the_start_holds_from_it_on(self):
        d = Daemon(self, guest="spin")
        path = "/v1/vcpus/1/affinity"
        self.ok(d.put(path, cpus=OWN[:1]))
        self.assertEqual(d.get(path).json, {"cpus": OWN[:1]})
        self.ok(d.put("/v1/devices/serial/affinity", cpus=OWN[-1:]))
        d.start(vcpus=2)
        self.assertEqual(os.sched_getaffinity(self.tid(d, 1)), set(OWN[:1]))
        self.assertEqual(os.sched_getaffinity(self.tid(d, 0)), set(OWN))
        serial = [x for x in d.get("/v1/devices").json["devices"] if x["id"] == "serial"][0]
        self.assertEqual(serial["affinity"], OWN[-1:])
        self.assertEqual(os.sched_getaffinity(serial["tid"]), set(OWN[-1:]))

    def test_a_spinning_vcpu_is_moved_while_it_runs(self):
        d = Daemon(self, guest="spin")
        d.start()
        for cpu in OWN * 3:
            self.ok(d.put("/v1/vcpus/0/affinity", cpus=[cpu]))
            self.assertEqual(os.sched_getaffinity(self.tid(d, 0)), {cpu})

    def test_cpus_that_the_host_lacks_are_refused(self):
        d = Daemon(self)
        d.start()
        reply = d.put("/v1/vcpus/0/affinity", cpus=[1023])
        self.assertEqual((reply.status, reply.json["error"]["field"]), (422, "cpus"))
        self.assertEqual(d.get("/v1/vcpus/0/affinity").json, {"cpus": None})

    def test_the_configuration_file_has_both(self):
        d = Daemon(self)
        config = write_file(d.file("config.json"), json.dumps({
            "boot-source": {"kernel_image_path": write_file(d.file("k"), elf_kernel())},
            "drives": [], "machine-config": {"vcpu_count": 4, "mem_size_mib": 64},
            "topology": {"sockets": 2, "numa": {"node": "socket"}},
            "affinity": {"vcpus": [{"index": 3, "cpus": OWN[:1]}]}}).encode())
        e = Daemon(self, "--config-file", config)
        e.wait_for_state("running")
        self.assertEqual(os.sched_getaffinity(self.tid(e, 3)), set(OWN[:1]))
        model = e.get("/v1/topology").json
        self.assertEqual((model["sockets"], model["cores"]), (2, 2))
        self.assertEqual([n["vcpus"] for n in model["numa"]["nodes"]], [[0, 1], [2, 3]])

    def test_a_device_that_is_not_there_fails_the_start(self):
        d = Daemon(self)
        d.configure()
        self.ok(d.put("/v1/devices/nothing/affinity", cpus=OWN[:1]))
        self.refused(d, d.action("InstanceStart"), "there is no device nothing")
        self.assertEqual(d.state(), "Not started")


if __name__ == "__main__":
    unittest.main()
