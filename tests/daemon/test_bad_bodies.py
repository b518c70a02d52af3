"""Bodies that are not what a call asks for: each refused with its field named."""

import concurrent.futures
import json
import random
import unittest

from lulld import Daemon, DaemonTest, UnixConnection, connect, write_file

MACHINE = '{"vcpu_count":2,"mem_size_mib":64}'


class Fields(DaemonTest):
    def setUp(self):
        self.d = Daemon(self)
        self.image = write_file(self.d.file("image"), size=512)

    def no(self, method, path, raw, *texts):
        with self.subTest(path=path, body=raw[:60]):
            self.refuses(self.d, method, path, None, *texts, raw=raw)

    def test_an_unknown_field(self):
        for path, good in (("/machine-config", {"vcpu_count": 1, "mem_size_mib": 64}),
                           ("/boot-source", {"kernel_image_path": self.d.kernel}),
                           ("/drives/a", {"drive_id": "a", "path_on_host": self.image,
                                          "is_root_device": False}),
                           ("/network-interfaces/n", {"iface_id": "n", "host_dev_name": "t"}),
                           ("/entropy", {}), ("/serial", {}), ("/logger", {}),
                           ("/actions", {"action_type": "InstanceStart"})):
            self.no("PUT", path, json.dumps({**good, "surprise": 1}), "unknown field", "surprise")

    def test_a_missing_field(self):
        for path, body, field in (
                ("/machine-config", '{"vcpu_count":1}', "mem_size_mib"),
                ("/machine-config", '{"mem_size_mib":64}', "vcpu_count"),
                ("/boot-source", '{"boot_args":"a"}', "kernel_image_path"),
                ("/drives/a", '{"drive_id":"a","path_on_host":"x"}', "is_root_device"),
                ("/drives/a", '{"path_on_host":"x","is_root_device":false}', "drive_id"),
                ("/network-interfaces/n", '{"iface_id":"n"}', "host_dev_name"),
                ("/metrics", "{}", "metrics_path"), ("/actions", "{}", "action_type")):
            self.no("PUT", path, body, "missing field", field)

    def test_a_wrong_type(self):
        for value in ('"2"', "2.0", "1e0", "true", "null", "[]", "{}", "-0", "0x2", "+2", "02"):
            self.no("PUT", "/machine-config", '{"vcpu_count":%s,"mem_size_mib":64}' % value)
        for value in ("1", '"true"', "null", "[]"):
            self.no("PUT", "/drives/a", '{"drive_id":"a","path_on_host":"%s","is_root_device":%s}'
                    % (self.image, value))
        for value in ("1", "true", "[]", "{}", "null"):
            self.no("PUT", "/boot-source", '{"kernel_image_path":%s}' % value)

    def test_a_number_out_of_range(self):
        for value in ("256", "-1", "4294967297", "18446744073709551616", "1e999", "9" * 400):
            self.no("PUT", "/machine-config", '{"vcpu_count":%s,"mem_size_mib":64}' % value)
        for value in ("-1", "18446744073709551616", "1e30"):
            self.no("PUT", "/machine-config", '{"vcpu_count":1,"mem_size_mib":%s}' % value)

    def test_a_duplicate_field(self):
        self.no("PUT", "/machine-config", '{"vcpu_count":1,"vcpu_count":1,"mem_size_mib":64}',
                "duplicate field", "vcpu_count")
        self.no("PUT", "/machine-config", '{"vcpu_count":1,"\\u0076cpu_count":1,"mem_size_mib":6}',
                "duplicate")

    def test_an_unknown_value(self):
        self.no("PUT", "/actions", '{"action_type":"Explode"}', "unknown variant", "Explode")
        self.no("PUT", "/machine-config", '{"vcpu_count":1,"mem_size_mib":64,"huge_pages":"1G"}',
                "1G")
        self.no("PUT", "/logger", '{"level":"Loud"}', "Loud")

    def test_texts_that_are_no_json(self):
        for raw in ("{", "}", "{}}", "nul", "'a'", '{"a":1,}', "{a:1}", "[1,2", "\x00", "\ufeff{}",
                    '{"vcpu_count":1 "mem_size_mib":64}', "// hello\n{}", '{"a":"\x01"}',
                    '{"vcpu_count":NaN,"mem_size_mib":1}', " ", "\n", MACHINE + "x",
                    '{"vcpu_count\\u0000":1,"mem_size_mib":64}'):
            self.no("PUT", "/machine-config", raw)

    def test_bytes_that_are_no_text(self):
        for raw in (b'{"kernel_image_path":"\xff\xfe"}', b'{"kernel_image_path":"\xc0\xaf"}',
                    b'{"kernel_image_path":"\xed\xa0\x80"}', b"\x80", b"\xff" * 1000,
                    b'{"kernel_image_path":"a\\u0000b"}', b'{"kernel_image_path":"\\ud800"}'):
            self.no("PUT", "/boot-source", raw)

    def test_values_that_are_no_object(self):
        for raw in ("1", '"a"', "null", "true", "[]", '[{"vcpu_count":1}]'):
            self.no("PUT", "/machine-config", raw)

    def test_deep_nesting(self):
        for depth in (17, 100, 10000):
            self.no("PUT", "/machine-config", "[" * depth + "]" * depth)
            self.no("PUT", "/machine-config", '{"a":' * depth + "1" + "}" * depth)
        self.no("PUT", "/machine-config", "[" * 10000)

    def test_many_small_values(self):
        """Each costs a parser a hundred times its text."""
        self.no("PUT", "/machine-config", "[" + "{}," * 10000 + "{}]")
        self.no("PUT", "/machine-config", "{" + ",".join('"k%d":0' % i for i in range(4000)) + "}")

    def test_large_bodies(self):
        for size in (51201, 1 << 20, 64 << 20):
            with self.subTest(size=size):
                before = self.snapshot(self.d)
                c = UnixConnection(self.d.socket)
                c.putrequest("PUT", "/machine-config")
                c.putheader("Content-Length", str(size))
                c.endheaders()
                try:
                    c.send(b" " * min(size, 1 << 20))
                except (BrokenPipeError, ConnectionResetError):
                    pass
                reply = c.getresponse()
                self.assertEqual(reply.status, 400)
                self.assertIn("larger than the limit of 51200", json.loads(reply.read())["error"])
                c.close()
                self.assertEqual(self.snapshot(self.d), before)

    def test_a_body_at_the_limit(self):
        body = MACHINE.ljust(51200)
        self.ok(self.d.call("PUT", "/machine-config", raw=body))
        self.assertEqual(self.d.get("/machine-config").json["vcpu_count"], 2)

    def test_bodies_where_none_belongs_and_none_where_one_does(self):
        self.no("GET", "/", "{}", "GET request cannot have a body.")
        for method, path in (("PUT", "/machine-config"), ("PATCH", "/vm")):
            self.refuses(self.d, method, path, None, "Empty %s request." % method)

    def test_ids(self):
        for path, text in (("/drives/", "The ID cannot be empty."), ("/drives/a-b", "alphanumeric"),
                           ("/drives/" + "a" * 65, ""), ("/drives/b", "does not match")):
            self.no("PUT", path, '{"drive_id":"a","path_on_host":"%s","is_root_device":false}'
                    % self.image, text)

    def test_random_changes_of_a_good_body(self):
        """No answer but yes or no, and no end of the daemon."""
        noise = random.Random(3)
        good = bytearray(json.dumps({"drive_id": "a", "path_on_host": self.image,
                                     "is_root_device": False, "rate_limiter": {
                                         "bandwidth": {"size": 1, "refill_time": 1}}}).encode())
        for _ in range(300):
            raw = bytearray(good)
            for _ in range(noise.randrange(1, 5)):
                raw[noise.randrange(len(raw))] = noise.randrange(256)
            self.assertIn(self.d.call("PUT", "/drives/a", raw=bytes(raw)).status, (204, 400))
        self.ok(self.d.get("/vm/config"))


class Http(DaemonTest):
    """Requests that are wrong as HTTP: answered or cut, never a crash."""

    REQUESTS = [
        b"\r\n\r\n", b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/0.9\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n", b"TRACE / HTTP/1.1\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /%2e%2e/ HTTP/1.1\r\n\r\n",
        b"GET /vm%00/config HTTP/1.1\r\n\r\n", b"GET /vm/../version HTTP/1.1\r\n\r\n",
        b"GET /vm//config HTTP/1.1\r\n\r\n", b"GET /" + b"a" * 300 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 2000 + b"\r\n",
        b"GET / HTTP/1.1\r\na: " + b"b" * 20000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n: x\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"PUT /machine-config HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"PUT /machine-config HTTP/1.1\r\nContent-Length: +7\r\n\r\n",
        b"PUT /machine-config HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"PUT /machine-config HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"PUT /machine-config HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"PUT /machine-config HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
        b"Content-Length: 2\r\n\r\n{}",
    ]

    @staticmethod
    def head_of_answer(d, request):
        s = connect(d.socket, 15)
        try:
            s.sendall(request)
            return s.recv(65536)
        except (ConnectionResetError, BrokenPipeError):
            return b""
        finally:
            s.close()

    def test_none_is_obeyed_and_none_ends_the_daemon(self):
        d = Daemon(self)
        before = self.snapshot(d)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            heads = list(pool.map(lambda r: self.head_of_answer(d, r), self.REQUESTS))
        for request, head in zip(self.REQUESTS, heads):
            with self.subTest(request=request[:60]):
                self.assertRegex(head, rb"^(HTTP/1\.[01] [45]\d\d |$)")
        self.assertEqual(self.snapshot(d), before)


if __name__ == "__main__":
    unittest.main()
