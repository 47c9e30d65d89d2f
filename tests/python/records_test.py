"""python/millrace: RecordWriter and RecordReader, which write and read record files from beginning to end."""
import gc
import gzip
import os
import pickle
import random
import subprocess
import sys
import threading
import time
import unittest

import numpy as np
from record_support import Files, environment, in_child, mr, run_script, run_threads, some_records

errors = mr.errors


class Write(Files):
    def test_round_trip(self):
        for options in (
            {},
            {"compression": "GZIP"},
            {"compression": "ZLIB", "level": 1},
            {"compression": "GZIP", "seek_bytes": 1000, "threads": 2, "index": True},
            {"atomic": True, "index": True},
        ):
            with self.subTest(options=options):
                records = some_records(1)
                self.write(records, **options)
                reader = mr.RecordReader(self.file)
                self.assertEqual(list(reader), records)
                self.assertEqual(reader.compression, options.get("compression"))
                self.assertEqual(os.path.exists(self.file + ".index"), options.get("index", False))
                os.path.exists(self.file + ".index") and os.remove(self.file + ".index")

    def test_no_records(self):
        self.write([], index=True)
        self.assertEqual(list(mr.RecordReader(self.file)), [])
        self.assertEqual(list(mr.RecordFile(self.file)), [])
        self.assertEqual(mr.scan(self.file).records, 0)

    def test_counts(self):
        with mr.RecordWriter(self.file) as writer:
            self.assertEqual((writer.count, writer.size_bytes), (0, 0))
            writer.write(b"")
            writer.write(b"12345")
            writer.flush()
            self.assertEqual(len(list(mr.RecordReader(self.file))), 2)
            writer.flush(sync=True)
        self.assertEqual((writer.count, writer.size_bytes), (2, 37))
        self.assertTrue(writer.closed)

    def test_kinds_of_bytes(self):
        values = [bytearray(b"abc"), memoryview(b"abcd")[1:], np.arange(3, dtype=np.uint8), np.zeros(2, np.int64)]
        self.write(values)
        self.assertEqual(list(mr.RecordReader(self.file)), [b"abc", b"bcd", b"\0\1\2", bytes(16)])

    def test_many(self):
        records = some_records(3, 5000)
        for options in ({}, {"compression": "GZIP", "seek_bytes": 4000, "index": True}):
            with mr.RecordWriter(self.file, **options) as writer:
                writer.write(records[0])
                writer.write_many(records[1:4000])
                writer.write_many([])
                writer.write_many(iter(records[4000:4700]))
                for record in records[4700:]:
                    writer.write(record)
                self.assertEqual(writer.count, 5000)
                self.assertEqual(writer.size_bytes, sum(map(len, records)) + 16 * 5000)
            self.assertEqual(list(mr.RecordReader(self.file)), records)
        self.assertEqual((writer.count, writer.size_bytes), (5000, sum(map(len, records)) + 16 * 5000))
        rows = np.arange(6000, dtype="i4").reshape(2000, 3)
        large = [bytes(3 << 20), bytearray(b"1"), memoryview(b"222"), bytes(5 << 20)] * 6
        with mr.RecordWriter(self.file) as writer:
            writer.write_many(rows)
            writer.write_many(rows.T)
            writer.write_many(large)
            writer.write_many(np.array([b"a", b"bb"]))
        expected = [row.tobytes() for row in rows] + [row.tobytes() for row in rows.T] + large + [b"a", b"bb"]
        self.assertEqual(list(mr.RecordReader(self.file)), [bytes(record) for record in expected])

    def test_many_wrong(self):
        def fails():
            yield from (b"1", b"2")
            raise KeyError("lost")

        with mr.RecordWriter(self.file) as writer:
            for value in (b"12", "12", 3, None, np.zeros(()), bytearray(2)):
                with self.assertRaisesRegex(TypeError, "records is of type|0-d"):
                    writer.write_many(value)
            with self.assertRaisesRegex(TypeError, r"records\[1502\] is of type str"):
                writer.write_many([b"x"] * 1502 + ["y", b"z"])
            with self.assertRaises(KeyError):
                writer.write_many(fails())
            self.assertEqual(writer.count, 1504)
        self.assertEqual(list(mr.RecordReader(self.file)), [b"x"] * 1502 + [b"1", b"2"])
        for records in ([], [b"1"]):
            with self.assertRaisesRegex(ValueError, "closed"):
                writer.write_many(records)

    def test_small_and_large_alternate(self):
        records = [bytes([i % 256]) * (3 if i % 7 else 5000) for i in range(3000)]
        with mr.RecordWriter(self.file) as writer:
            for i, record in enumerate(records):
                writer.write(record)
                if i % 100 == 0:
                    self.assertEqual(writer.count, i + 1)
                if i % 500 == 0:
                    writer.flush()
                    self.assertEqual(mr.count_records(self.file), i + 1)
        self.assertEqual(list(mr.RecordReader(self.file)), records)

    def test_two_writers(self):
        for options in ({}, {"atomic": True}):
            with mr.RecordWriter(self.file, **options) as writer:
                writer.write(b"1")
                with self.assertRaisesRegex(errors.AbortedError, "another writer"):
                    mr.RecordWriter(self.file, **options)
            self.assertEqual(list(mr.RecordReader(self.file)), [b"1"])

    def test_interrupted_writes(self):
        """An exception between any two instructions loses no record and writes none twice."""
        with mr.RecordWriter(self.file) as writer:
            writer.write(b"0")
            collected = writer._collected
            writer.flush()
            writer._collected = collected  # as if the flush had been interrupted before its last step
            writer.write(b"1")
            self.assertEqual(writer.count, 2)
        self.assertEqual(list(mr.RecordReader(self.file)), [b"0", b"1"])

    def test_wrong_types(self):
        with mr.RecordWriter(self.file) as writer:
            for value in ("text", 1, None, [1], object()):
                with self.assertRaisesRegex(TypeError, "record is of type"):
                    writer.write(value)
            with self.assertRaisesRegex(TypeError, "sync"):
                writer.flush(sync=1)
        self.assertEqual(writer.count, 0)

    def test_wrong_options(self):
        for error, name, options in (
            (ValueError, "compression", {"compression": "BZIP"}),
            (ValueError, "compression", {"compression": 1}),
            (ValueError, "level", {"level": 3}),
            (ValueError, "level", {"level": 10, "compression": "GZIP"}),
            (TypeError, "level", {"level": "3", "compression": "GZIP"}),
            (ValueError, "seek_bytes", {"seek_bytes": 3}),
            (ValueError, "seek_bytes", {"seek_bytes": -1, "compression": "GZIP"}),
            (ValueError, "threads", {"threads": 2}),
            (TypeError, "index", {"index": 1}),
            (TypeError, "atomic", {"atomic": "yes"}),
        ):
            with self.subTest(options=options), self.assertRaisesRegex(error, name):
                mr.RecordWriter(self.file, **options)
        for error, path in ((TypeError, 1), (TypeError, None), (ValueError, "a\0b")):
            with self.assertRaisesRegex(error, "path"):
                mr.RecordWriter(path)
        with self.assertRaises(errors.NotFoundError):
            mr.RecordWriter(self.path("none/records"))

    def test_closed(self):
        writer = mr.RecordWriter(self.file)
        writer.close()
        writer.close()
        writer.discard()
        for call in (lambda: writer.write(b""), writer.flush, writer.__enter__):
            with self.assertRaisesRegex(ValueError, "closed"):
                call()

    def test_exception_in_the_block(self):
        for atomic in (False, True):
            with self.assertRaises(KeyError), mr.RecordWriter(self.path(f"{atomic}"), atomic=atomic) as writer:
                writer.write(b"1")
                raise KeyError
        self.assertEqual(list(mr.RecordReader(self.path("False"))), [b"1"])
        self.assertEqual(sorted(os.listdir(self.directory)), ["False"])

    def test_dropped(self):
        for atomic in (False, True):
            writer = mr.RecordWriter(self.path(f"{atomic}"), atomic=atomic)
            writer.write(b"1")
            with self.assertWarns(ResourceWarning):
                del writer
                gc.collect()
        self.assertEqual(list(mr.RecordReader(self.path("False"))), [b"1"])
        self.assertEqual(sorted(os.listdir(self.directory)), ["False"])

    def test_atomic(self):
        self.write([b"old"])
        with mr.RecordWriter(self.file, atomic=True) as writer:
            writer.write(b"new")
            self.assertEqual(list(mr.RecordReader(self.file)), [b"old"])
            with self.assertRaises(errors.AbortedError):
                mr.RecordWriter(self.file, atomic=True)
        self.assertEqual(list(mr.RecordReader(self.file)), [b"new"])

    def test_threads(self):
        with mr.RecordWriter(self.file) as writer:
            run_threads(4, lambda i: [writer.write(b"%d %d" % (i, k)) for k in range(500)])
        self.assertEqual(set(mr.RecordReader(self.file)), {b"%d %d" % (i, k) for i in range(4) for k in range(500)})

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_full_disk(self):
        with self.assertRaises(errors.ResourceExhaustedError):
            with mr.RecordWriter("/dev/full") as writer:
                for _ in range(100):
                    writer.write(bytes(1 << 20))
        for call in (lambda writer: [writer.write(b"small") for _ in range(1000)],
                     lambda writer: writer.write_many([b"small"] * 1000)):  # fmt: skip
            with self.assertRaises(errors.ResourceExhaustedError), mr.RecordWriter("/dev/full") as writer:
                call(writer)
        with mr.RecordWriter("/dev/full") as writer:
            with self.assertRaises(errors.ResourceExhaustedError):
                writer.write_many([b"small"] * 100000)
            for _ in range(2):
                with self.assertRaises(errors.ResourceExhaustedError):
                    writer.flush()
            with self.assertRaises(errors.ResourceExhaustedError):
                writer.close()
            self.assertTrue(writer.closed)

    def test_not_pickled(self):
        writer = mr.RecordWriter(self.file)
        self.addCleanup(writer.close)
        with self.assertRaisesRegex(TypeError, "cannot pickle"):
            pickle.dumps(writer)


class Read(Files):
    def test_position(self):
        self.write([b"a", b"", b"ccc"])
        with mr.RecordReader(self.file) as reader:
            found = [(record, reader.number, reader.offset) for record in reader]
            self.assertEqual(found, [(b"a", 0, 0), (b"", 1, 17), (b"ccc", 2, 33)])
            self.assertEqual((reader.lost, reader.damage, reader.compression), (0, None, None))
            self.assertEqual(list(reader), [])

    def test_range(self):
        records = [b"%d" % i for i in range(10)]
        for index in (False, True):
            self.write(records, index=index)
            self.assertEqual(list(mr.RecordReader(self.file, first=3, count=2)), records[3:5])
            self.assertEqual(list(mr.RecordReader(self.file, first=8)), records[8:])
            self.assertEqual(list(mr.RecordReader(self.file, first=8, count=(1 << 63) - 1)), records[8:])

    def test_options(self):
        records = some_records(2)
        self.write(records)
        reader = mr.RecordReader(self.file, check=False, direct=True, buffer_bytes=4096, buffer_count=2)
        self.assertEqual(list(reader), records)

    def test_wrong_options(self):
        self.write([b"1"])
        for error, name, options in (
            (TypeError, "check", {"check": 1}),
            (ValueError, "damage", {"damage": "ignore"}),
            (ValueError, "damage", {"damage": None}),
            (ValueError, "damage_max", {"damage_max": 1}),
            (ValueError, "damage_max", {"damage_max": 0, "damage": "skip"}),
            (ValueError, "quarantine", {"quarantine": "x"}),
            (ValueError, "on_damage", {"on_damage": print}),
            (TypeError, "on_damage", {"on_damage": 1, "damage": "skip"}),
            (TypeError, "quarantine", {"quarantine": 1, "damage": "skip"}),
            (ValueError, "first", {"first": -1}),
            (TypeError, "first", {"first": 1.5}),
            (ValueError, "count", {"count": 0}),
            (ValueError, "buffer_bytes", {"buffer_bytes": 1 << 40}),
            (ValueError, "buffer_count", {"buffer_count": 65}),
        ):
            with self.subTest(options=options), self.assertRaisesRegex(error, name):
                mr.RecordReader(self.file, **options)
        with self.assertRaisesRegex(TypeError, "path"):
            mr.RecordReader(None)
        with self.assertRaises(errors.NotFoundError):
            mr.RecordReader(self.path("none"))
        with self.assertRaises(errors.OpError):
            list(mr.RecordReader(self.directory))

    def test_damage_stops(self):
        self.write([b"first", b"second", b"third"])
        self.damage(21 + 12)
        reader = mr.RecordReader(self.file)
        self.assertEqual(next(reader), b"first")
        with self.assertRaisesRegex(errors.DataLossError, "records.*21"):
            next(reader)
        self.assertEqual(next(reader), b"third")
        self.assertEqual(reader.damage[:4], ("bad data", 1, 21, 22))
        self.assertEqual(list(mr.RecordReader(self.file, check=False))[2], b"third")

    def test_damage_is_skipped(self):
        self.write([b"%05d" % i for i in range(10)])
        self.damage(2 * 21 + 12)
        self.damage(5 * 21)
        os.truncate(self.file, 10 * 21 - 1)
        found = []
        reader = mr.RecordReader(self.file, damage="skip", on_damage=found.append, quarantine=self.path("bad"))
        self.assertEqual([int(record) for record in reader], [0, 1, 3, 4, 6, 7, 8])
        self.assertEqual([damage.record for damage in found], [2, 5, 9])
        self.assertEqual(reader.lost, 3)
        self.assertEqual(found[0].path, self.file)
        self.assertIn("record 2", found[0].message)
        reader.close()
        bad = [mr.Example.parse(record) for record in mr.RecordReader(self.path("bad"))]
        self.assertEqual([int(example["record"][0]) for example in bad], [2, 5, 9])
        with self.assertRaises(errors.DataLossError):
            list(mr.RecordReader(self.file, damage="skip", damage_max=1))

    def test_on_damage_raises(self):
        self.write([b"first", b"second", b"third", b"fourth"])
        self.damage(21 + 12)
        reader = mr.RecordReader(self.file, damage="skip", on_damage=lambda damage: 1 // 0)
        self.assertEqual(next(reader), b"first")
        with self.assertRaises(ZeroDivisionError):
            next(reader)
        self.assertEqual(list(reader), [b"third", b"fourth"])

    def test_on_damage_uses_the_reader(self):
        self.write([b"first", b"second", b"third", b"fourth"])
        self.damage(21 + 12)
        taken = []
        reader = mr.RecordReader(self.file, damage="skip", on_damage=lambda damage: taken.append(next(reader)))
        self.assertEqual(list(reader) + taken, [b"first", b"fourth", b"third"])
        reader = mr.RecordReader(self.file, damage="skip", on_damage=lambda damage: reader.close())
        with self.assertRaisesRegex(ValueError, "closed"):
            list(reader)

    def test_huge_length(self):
        """A header whose checksum is right, but whose length exceeds the limit or the file."""
        for size in (1 << 31, (1 << 64) - 1, 100):
            header = size.to_bytes(8, "little")
            checksum = mr._library.library.mr_crc32c_mask
            crc = mr._library.library.mr_crc32c
            checksum.restype = crc.restype = mr._abi.ctypes.c_uint32
            crc.argtypes = (mr._abi.ctypes.c_uint32, mr._abi.ctypes.c_char_p, mr._abi.ctypes.c_size_t)
            with open(self.file, "wb") as file:
                file.write(header + checksum(crc(0, header, 8)).to_bytes(4, "little") + bytes(50))
            with self.subTest(size=size), self.assertRaises(errors.DataLossError):
                list(mr.RecordReader(self.file))
            with self.assertRaises(errors.DataLossError):
                mr.RecordFile(self.file)[0]

    def test_hostile_bytes(self):
        random_ = random.Random(3)
        self.write(some_records(4, 20), compression="GZIP")
        with open(self.file, "rb") as file:
            compressed = file.read()
        for i in range(200):
            with open(self.file, "wb") as file:
                content = bytearray(compressed if i % 2 else random_.getrandbits(800).to_bytes(100, "little"))
                content[random_.randrange(len(content))] ^= 1 << random_.randrange(8)
                file.write(content[: random_.randrange(len(content))])
            try:
                list(mr.RecordReader(self.file, damage="skip" if i % 3 else "stop"))
            except errors.OpError:
                pass

    def test_closed(self):
        self.write([b"1", b"2"])
        reader = mr.RecordReader(self.file)
        next(reader)
        reader.close()
        reader.close()
        calls = (lambda: next(reader), lambda: reader.number, lambda: reader.offset, lambda: reader.lost)
        for call in (*calls, lambda: reader.damage, lambda: reader.compression, reader.__enter__):
            with self.assertRaisesRegex(ValueError, "closed"):
                call()
        with self.assertRaisesRegex(TypeError, "cannot pickle"):
            pickle.dumps(reader)

    def test_two_threads(self):
        records = [b"%d" % i for i in range(20000)]
        self.write(records)
        reader = mr.RecordReader(self.file)
        found = [[], []]
        run_threads(2, lambda i: found[i].extend(reader))
        self.assertEqual(sorted(found[0] + found[1]), sorted(records))

    def test_close_in_another_thread(self):
        self.write([bytes(100)] * 5000)
        for _ in range(20):
            reader = mr.RecordReader(self.file)
            next(reader)

            def read(i, reader=reader):
                try:
                    reader.close() if i else list(reader)
                except ValueError:
                    pass

            run_threads(2, read)

    def test_standard_input(self):
        self.write([b"1", b"22"], compression="GZIP")
        code = "import millrace as mr; print(list(mr.RecordReader('-')))"
        with open(self.file, "rb") as file:
            run = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True, env=environment())
        self.assertEqual(run.stdout, b"[b'1', b'22']\n")

    def test_tensorflows_compression(self):
        self.write([b"1", b"22"])
        with open(self.file, "rb") as file, gzip.open(self.path("zipped"), "wb") as zipped:
            zipped.write(file.read())
        self.assertEqual(list(mr.RecordReader(self.path("zipped"))), [b"1", b"22"])


class ReadAhead(Files):
    """Small records of plain files, which are read many at once after the first ones."""

    def setUp(self):
        super().setUp()
        self.records = [b"%d" % i * (i % 7) for i in range(60000)]
        self.write(self.records)
        self.offsets = np.cumsum([0] + [len(record) + 16 for record in self.records]).tolist()

    def threads(self):
        return sum(thread.name == "millrace-records" for thread in threading.enumerate())

    def assertEnds(self):
        """Whether no thread is left after a moment."""
        deadline = time.monotonic() + 10
        while self.threads() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(self.threads(), 0)

    def test_position(self):
        for check in (True, False):
            reader = mr.RecordReader(self.file, check=check)
            for i, record in enumerate(reader):
                self.assertEqual(record, self.records[i])
                if i % 997 < 3 or i > 59990:
                    self.assertEqual((reader.number, reader.offset, reader.lost), (i, self.offsets[i], 0))
            self.assertEqual((reader.number, i, reader.damage), (59999, 59999, None))
            self.assertEqual(list(reader), [])
        self.assertEnds()

    def test_no_thread_for_the_first_records(self):
        reader = mr.RecordReader(self.file)
        for _ in range(200):
            next(reader)
        self.assertEqual(self.threads(), 0)

    def test_damage(self):
        for number, byte in ((255, 12), (256, 12), (257, 12), (5000, 12), (5000, 0), (59999, 12)):
            with self.subTest(number=number, byte=byte):
                self.damage(self.offsets[number] + byte)
                reader = mr.RecordReader(self.file)
                found = []
                with self.assertRaisesRegex(errors.DataLossError, f"{self.offsets[number]}"):
                    for record in reader:
                        found.append(record)
                self.assertEqual(found, self.records[:number])
                self.assertEqual((reader.number, reader.lost, reader.damage.record), (number - 1, 1, number))
                if byte:
                    self.assertEqual(list(reader), self.records[number + 1 :])
                    self.assertEqual(len(list(mr.RecordReader(self.file, check=False))), 60000)
                skipping = list(mr.RecordReader(self.file, damage="skip"))
                self.assertEqual(skipping, self.records[:number] + self.records[number + 1 :])
                self.damage(self.offsets[number] + byte)
        self.assertEnds()

    def test_truncated(self):
        os.truncate(self.file, self.offsets[30000] + 5)
        reader = mr.RecordReader(self.file)
        found = []
        with self.assertRaises(errors.DataLossError):
            for record in reader:
                found.append(record)
        self.assertEqual(found, self.records[:30000])

    def test_truncated_while_it_is_read(self):
        for size in (2000 * 1016, 2000 * 1016 + 5):  # much less than what is read ahead
            self.write([bytes(1000)] * 15000)
            reader = mr.RecordReader(self.file)
            count = 0
            with self.assertRaises(errors.OpError):
                for _ in reader:
                    count += 1
                    if count == 1000:
                        os.truncate(self.file, size)
            self.assertGreaterEqual(count, 1000)
        self.assertEnds()

    def test_closed_and_dropped(self):
        for ending in ("close", "drop", "ended"):
            reader = mr.RecordReader(self.file)
            for _ in range(1000):
                next(reader)
            if ending == "close":
                reader.close()
                with self.assertRaisesRegex(ValueError, "closed"):
                    next(reader)
            elif ending == "ended":
                self.assertEqual(list(reader), self.records[1000:])
            del reader
            gc.collect()
            self.assertEnds()

    def test_end_of_the_interpreter(self):
        code = (
            "import millrace as mr\n"
            f"reader = mr.RecordReader({self.file!r})\n"
            "for _ in range(1000): record = next(reader)\n"
        )
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment(), timeout=60)
        self.assertEqual((run.returncode, run.stderr), (0, b""))

    def test_three_threads(self):
        reader = mr.RecordReader(self.file)
        found = [[], [], []]
        run_threads(3, lambda i: found[i].extend(reader))
        self.assertEqual(sorted(found[0] + found[1] + found[2]), sorted(self.records))

    def test_fork(self):
        reader = mr.RecordReader(self.file)
        for _ in range(1000):
            next(reader)

        def body():
            try:
                next(reader)
            except ValueError as error:
                return "fork" in str(error) and list(mr.RecordReader(self.file)) == self.records

        self.assertTrue(in_child(body))
        self.assertEqual(list(reader), self.records[1000:])


class Fork(Files):
    def test_reader_and_writer(self):
        self.write([b"1", b"2", b"3"])
        reader, writer = mr.RecordReader(self.file), mr.RecordWriter(self.path("other"), atomic=True)
        next(reader)
        writer.write(b"x")

        def body():
            for call in (lambda: next(reader), lambda: writer.write(b"y")):
                try:
                    call()
                    return False
                except ValueError as error:
                    if "fork" not in str(error):
                        return False
            writer.close()
            reader.close()
            return list(mr.RecordReader(self.file)) == [b"1", b"2", b"3"]

        self.assertTrue(in_child(body))
        self.assertEqual(list(reader), [b"2", b"3"])
        writer.close()
        self.assertEqual(list(mr.RecordReader(self.path("other"))), [b"x"])


class Interrupt(Files):
    def interrupted(self, call, writes=b"", kill="os.kill(os.getpid(), signal.SIGINT)"):
        """Runs a call with the argument `pipe`, a pipe that gets no more bytes than these, until Ctrl-C ends it."""
        with open(self.path("writes"), "wb") as file:
            file.write(writes)
        script = (
            "import millrace as mr, fcntl, os, signal, threading, time\n"
            "reader, writer = os.pipe()\n"
            "fcntl.fcntl(writer, 1031, 1 << 20)\n"  # F_SETPIPE_SZ
            f"os.write(writer, open({self.path('writes')!r}, 'rb').read())\n"
            "pipe = f'/dev/fd/{reader}'\n"
            "mr.RecordReader, mr.count_records\n"  # imported before the signal
            f"threading.Timer(0.4, lambda: {kill}).start()\n"
            "start = time.perf_counter()\n"
            f"try: {call}\n"
            "except KeyboardInterrupt: print('interrupted', time.perf_counter() - start < 10)\n"
        )
        run = run_script(script)
        self.assertEqual(run.stdout, b"interrupted True\n", run.stderr)

    def test_pipes(self):
        self.write([b"1", b"22"])
        with open(self.file, "rb") as file:
            data = file.read()
        for writes in (b"", data[:5], data[:12], data[:20], data):
            self.interrupted("list(mr.RecordReader(pipe))", writes)
        self.write([b"1", bytes(1 << 20)], path=self.path("long"))
        with open(self.path("long"), "rb") as file:
            long_data = file.read()
        for size in (50000, 100000, 900000):
            self.interrupted("list(mr.RecordReader(pipe))", long_data[:size])
        self.interrupted("mr.count_records(pipe)", data)
        os.mkfifo(self.path("fifo"))
        self.interrupted(f"mr.RecordReader({self.path('fifo')!r})")

    def test_signal_that_another_thread_receives(self):
        self.write([b"1", b"22"])
        with open(self.file, "rb") as file:
            data = file.read()
        kill = "signal.pthread_kill(threading.get_ident(), signal.SIGINT)"
        for call, writes in (("list(mr.RecordReader(pipe))", b""), ("list(mr.RecordReader(pipe))", data),
                             ("mr.count_records(pipe)", data)):  # fmt: skip
            self.interrupted(call, writes, kill)

    def test_pipe_continues_after_ctrl_c(self):
        self.write([b"1", b"22"])
        script = (
            "import millrace as mr, os, signal, threading, time\n"
            f"data = open({self.file!r}, 'rb').read()\n"
            "reader, writer = os.pipe()\n"
            "os.write(writer, data[:19])\n"
            "records = mr.RecordReader(f'/dev/fd/{reader}')\n"
            "print(next(records))\n"
            "threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            "try: next(records)\n"
            "except KeyboardInterrupt: print('interrupted')\n"
            "os.write(writer, data[19:])\n"
            "os.close(writer)\n"
            "print(list(records))\n"
        )
        run = run_script(script)
        self.assertEqual(run.stdout, b"b'1'\ninterrupted\n[b'22']\n", run.stderr)

    def test_signal_handlers(self):
        """A handler uses what the main thread is using: it is refused inside a call, and waits for nothing."""
        script = (
            "import millrace as mr, signal, time\n"
            "used, refused = [], []\n"
            "def handler(number, frame):\n"
            "    try:\n"
            "        use()\n"
            "        used.append(1)\n"
            "    except RuntimeError: refused.append(1)\n"
            "    except StopIteration: pass\n"
            "signal.signal(signal.SIGALRM, handler)\n"
            "end = time.monotonic() + 0.3\n"
            f"with mr.RecordWriter({self.file!r}) as writer:\n"
            "    use = lambda: writer.write(b'handler')\n"
            "    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)\n"
            "    count = 0\n"
            "    while time.monotonic() < end or not (used and refused):\n"
            "        writer.write(b'12345678' * 40)\n"
            "        count += 1\n"
            "    signal.setitimer(signal.ITIMER_REAL, 0)\n"
            f"file = mr.RecordFile({self.file!r})\n"
            "print(len(file) == count + len(used))\n"
            f"reader = mr.RecordReader({self.file!r})\n"
            "use, rest = (lambda: rest.append(next(reader))), []\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)\n"
            "rest.extend(reader)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0)\n"
            "print(len(rest) == len(file))\n"
        )
        run = run_script(script)
        self.assertEqual(run.stdout, b"True\nTrue\n", run.stderr)


if __name__ == "__main__":
    unittest.main()
