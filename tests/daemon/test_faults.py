"""Every call of KVM that a start makes fails once: the K-th, for all K.

The start is refused with an error, nothing is left behind, the VM is still
configurable, and the next start works; or the call was one that the daemon can
do without.
"""

import errno
import os
import unittest

from lulld import Daemon, DaemonTest, write_file


class Faults(DaemonTest):
    def threads(self, d):
        """Those of vCPUs and devices; a sanitizer may have one of its own."""
        names = []
        for task in os.listdir("/proc/%d/task" % d.process.pid):
            with open("/proc/%d/task/%s/comm" % (d.process.pid, task)) as f:
                names.append(f.read())
        return [name for name in names if name.startswith(("vcpu", "dev"))]

    def configured(self, **env):
        d = Daemon(self, env=env)
        d.configure(vcpus=2)
        self.ok(d.drive("a", write_file(d.file("image"), size=4096), root=True))
        self.ok(d.put("/entropy"))
        return d

    def files(self, d):
        """What it has open, but for connections, which the server closes in its own time."""
        names = []
        for fd in os.listdir("/proc/%d/fd" % d.process.pid):
            try:
                names.append(os.readlink("/proc/%d/fd/%s" % (d.process.pid, fd)))
            except FileNotFoundError:
                pass
        return sorted(name for name in names if not name.startswith("socket:"))

    def start_with_fault(self, k, error):
        """True if the start was refused; then it is tried again."""
        d = self.configured(LULL_FAKE_FAIL="%d:%d" % (k, error))
        before, config = (self.files(d), self.threads(d)), d.get("/vm/config").json
        reply = d.action("InstanceStart")
        if reply.status == 204:
            d.close()
            return False
        self.refused(d, reply, "Start microvm error: ")
        self.assertEqual(d.state(), "Not started")
        self.assertEqual(d.get("/vm/config").json, config)
        self.assertEqual(d.get("/v1/devices").json["devices"], [])
        self.assertEqual((self.files(d), self.threads(d)), before)
        self.ok(d.action("InstanceStart"))
        self.assertEqual(d.state(), "Running")
        self.ok(d.patch("/v1/vm", state="Stopped"))
        self.assertEqual(d.wait(), 0)  # with all that is KVM's closed
        d.close()
        return True

    def sweep(self, error):
        refused, passed, k = 0, 0, 1
        while passed < 8:
            if self.start_with_fault(k, error):
                refused, passed = refused + 1, 0
            else:
                passed += 1
            k += 1
        # open, version, capabilities, VM, slots, chips, vCPUs and their pages
        self.assertGreater(refused, 25)

    def test_out_of_memory_at_each_call(self):
        self.sweep(errno.ENOMEM)

    def test_no_permission_at_each_call(self):
        self.sweep(errno.EPERM)

    def test_no_kvm_at_all(self):
        d = self.configured(LULL_FAKE_FAIL="1:%d" % errno.ENOENT)
        self.refused(d, d.action("InstanceStart"), "/dev/kvm", "No such file or directory")

    def test_many_failed_starts(self):
        """A start that fails for another reason a hundred times leaks nothing."""
        d = self.configured()
        os.truncate(d.kernel, 100)
        self.refused(d, d.action("InstanceStart"))
        before = self.files(d), self.threads(d)
        for _ in range(100):
            self.refused(d, d.action("InstanceStart"))
        self.assertEqual((self.files(d), self.threads(d)), before)


if __name__ == "__main__":
    unittest.main()
