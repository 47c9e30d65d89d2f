"""python/millrace: record files by number, indexed, scanned and salvaged."""
import os
import pickle
import signal
import threading
import time
import unittest

import numpy as np
from record_support import Files, in_child, mr, run_script, run_threads, some_records

errors = mr.errors


class ByNumber(Files):
    def test_sequence(self):
        records = some_records(5, 600)
        self.write(records)
        for options in ({}, {"threads": 3}):
            file = mr.RecordFile(self.file, **options)
            self.assertEqual(len(file), 600)
            self.assertEqual(list(file), records)
            self.assertEqual([file[i] for i in range(-600, 600)], records * 2)
            for key in (slice(None), slice(3, 9), slice(-5, None), slice(None, None, -7), slice(9, 3), slice(1000)):
                self.assertEqual(file[key], records[key])
            self.assertEqual(file.read(np.array([5, 1, -1])), [records[5], records[1], records[-1]])
            self.assertEqual(file[np.int64(3)], records[3])

    def test_compressed(self):
        records = some_records(6, 300)
        self.write(records, compression="GZIP", seek_bytes=1000, index=True)
        file = mr.RecordFile(self.file, threads=2)
        self.assertEqual((list(file), file[::-1], file.compression), (records, records[::-1], "GZIP"))
        self.write(records, path=self.path("zlib"), compression="ZLIB")
        with self.assertRaises(errors.UnimplementedError):
            mr.RecordFile(self.path("zlib"))

    def test_long_records(self):
        records = [bytes(3 << 20), b"1", bytes(5 << 20)]
        self.write(records)
        self.assertEqual(mr.RecordFile(self.file)[:], records)

    def test_no_such_record(self):
        self.write([b"1", b"2"])
        file = mr.RecordFile(self.file)
        for number in (2, -3, 1 << 70, -(1 << 70)):
            with self.assertRaisesRegex(IndexError, str(number)):
                file[number]
            with self.assertRaises(IndexError):
                file.read([0, number])
        for key in ("1", 1.0, None):
            with self.assertRaises(TypeError):
                file[key]
        with self.assertRaisesRegex(TypeError, "numbers"):
            file.read(["1"])
        with self.assertRaisesRegex(ValueError, "number"):
            file.record_size(2)

    def test_members(self):
        self.write([b"a", b"", b"ccc"])
        file = mr.RecordFile(self.file)
        self.assertEqual([file.offset(i) for i in range(4)], [0, 17, 33, 52])
        self.assertEqual([file.record_size(i) for i in range(3)], [1, 0, 3])
        self.assertIsNone(file.compression)
        file.prefetch(1)

    def test_damage(self):
        self.write([b"first", b"second"])
        self.damage(21 + 12)
        file = mr.RecordFile(self.file)
        with self.assertRaisesRegex(errors.DataLossError, "record 1"):
            file[1]
        self.assertEqual(file[0], b"first")

    def test_closed(self):
        self.write([b"1"])
        file = mr.RecordFile(self.file)
        with file:
            pass
        file.close()
        for call in (lambda: file[0], lambda: file[:], lambda: list(file), lambda: file.offset(0), file.__enter__):
            with self.assertRaisesRegex(ValueError, "closed"):
                call()

    def test_close_while_reading(self):
        self.write([bytes(1000)] * 1000)
        for _ in range(20):
            file = mr.RecordFile(self.file)

            def read(i, file=file):
                try:
                    file.close() if i == 2 else list(file)
                except ValueError:
                    pass

            run_threads(3, read)

    def test_pickled(self):
        self.write([b"1", b"2"])
        file = mr.RecordFile(self.file, threads=2)
        self.assertEqual(pickle.loads(pickle.dumps(file))[:], [b"1", b"2"])
        file.close()
        self.assertTrue(pickle.loads(pickle.dumps(file)).closed)


class Fork(Files):
    def test_file_is_opened_again(self):
        self.write([b"1", b"2", b"3"])
        file = mr.RecordFile(self.file)
        self.assertTrue(in_child(lambda: file[:] == [b"1", b"2", b"3"] and file.offset(1) == 17))
        self.assertEqual(file[-1], b"3")


class IndexAndScan(Files):
    def test_index(self):
        self.write([b"a", b"", b"ccc"])
        index = mr.index(self.file)
        self.assertEqual((index.count, index.origin, index.compression), (3, "built", None))
        self.assertEqual(index.offsets.tolist(), [0, 17, 33, 52])
        self.assertEqual(mr.write_index(self.file), 3)
        self.assertEqual(mr.index(self.file).origin, "loaded")
        self.assertEqual(mr.count_records(self.file), 3)
        self.write([b"other"])
        self.assertEqual(mr.index(self.file).origin, "stale")
        with self.assertRaises(errors.NotFoundError):
            mr.write_index(self.path("none"))

    def test_index_of_compressed(self):
        self.write(some_records(7), compression="GZIP", seek_bytes=1000)
        with self.assertRaises(errors.UnimplementedError):
            mr.index(self.file)
        self.assertEqual(mr.write_index(self.file, threads=2), 100)
        index = mr.index(self.file)
        self.assertGreater(len(index.points), 2)
        self.assertEqual(index.points.shape[1], 2)

    def test_scan(self):
        for i in range(3):
            self.write(some_records(i), path=self.path(f"{i}.tfrecord"))
        sizes = sum(len(record) for i in range(3) for record in some_records(i))
        for paths in (self.path("*.tfrecord"), [self.path(f"{i}.tfrecord") for i in range(3)]):
            self.assertEqual(mr.scan(paths), (300, sizes, 0, 0))
            self.assertEqual(mr.scan(paths, threads=1, check=False).records, 300)

    def test_scan_damage(self):
        self.write([b"%05d" % i for i in range(10)])
        self.damage(2 * 21 + 12)
        with self.assertRaises(errors.DataLossError):
            mr.scan(self.file)
        found = []
        totals = mr.scan(self.file, damage="skip", on_damage=found.append, quarantine=self.path("bad"))
        self.assertEqual(totals, (9, 45, 1, 21))
        self.assertEqual([damage.record for damage in found], [2])
        with self.assertRaises(ZeroDivisionError):
            mr.scan(self.file, damage="skip", on_damage=lambda damage: 1 // 0)

    def test_scan_wrong_arguments(self):
        for error, name, paths, options in (
            (ValueError, "paths", [], {}),
            (TypeError, "paths", 1, {}),
            (TypeError, "paths", [1], {}),
            (ValueError, "threads", self.file, {"threads": 0}),
            (ValueError, "damage", self.file, {"damage": "x"}),
        ):
            with self.subTest(name=name, paths=paths), self.assertRaisesRegex(error, name):
                mr.scan(paths, **options)
        with self.assertRaises(errors.NotFoundError):
            mr.scan(self.path("none"))

    def test_salvage(self):
        records = [b"%05d" % i for i in range(10)]
        self.write(records)
        self.damage(2 * 21 + 12)
        self.write(records, path=self.path("good"))
        output = self.path("saved")
        found = []
        saved = mr.salvage(
            [self.file, self.path("good")], output, quarantine=self.path("bad"), threads=2, on_damage=found.append
        )
        self.assertEqual(saved, (19, 95, 1, 21, ()))
        self.assertEqual(len(found), 1)
        self.assertEqual(list(mr.RecordFile(output)), records[:2] + records[3:] + records)
        self.assertEqual(mr.index(output).origin, "loaded")
        self.assertEqual(len(list(mr.RecordReader(self.path("bad")))), 1)

    def test_salvage_of_a_truncated_stream(self):
        self.write(some_records(8), compression="GZIP")
        os.truncate(self.file, os.path.getsize(self.file) // 2)
        saved = mr.salvage(self.file, self.path("saved"))
        self.assertEqual(list(mr.RecordReader(self.path("saved"))), some_records(8)[: saved.records])
        self.assertEqual(saved.lost + len(saved.stopped) > 0, True)

    def test_salvage_refuses_its_input(self):
        self.write([b"1"])
        os.link(self.file, self.path("link"))
        for options in ({"output": self.path("link")}, {"output": self.path("x"), "quarantine": self.file}):
            with self.assertRaisesRegex(ValueError, "output|quarantine"):
                mr.salvage(self.file, **options)
        with self.assertRaisesRegex(ValueError, "quarantine"):
            mr.salvage(self.file, self.path("x"), quarantine=self.path("x"))
        with self.assertRaises(errors.NotFoundError):
            mr.salvage(self.path("none"), self.path("saved"))
        with self.assertRaises(ZeroDivisionError):
            self.damage(13)
            mr.salvage(self.file, self.path("saved"), on_damage=lambda damage: 1 // 0)
        self.assertEqual(sorted(os.listdir(self.directory)), ["link", "records"])


class Interrupt(Files):
    def test_index(self):
        with mr.RecordWriter(self.file) as writer:
            writer.write_many([b"x" * 200] * 400000)
        script = (
            "import millrace as mr, os, signal, threading\n"
            "count = 0\n"
            "mr.write_index\n"  # imported before the signal
            "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            "try:\n"
            f"    while True: count += mr.write_index({self.file!r}, threads=1)\n"
            "except KeyboardInterrupt: print('interrupted')\n"
        )
        run = run_script(script)
        self.assertEqual(run.stdout, b"interrupted\n", run.stderr)

    def test_abandoned_results_are_dropped(self):
        from millrace._record_common import interruptible

        dropped, started, ends = [], threading.Event(), threading.Event()

        def call():
            started.set()
            ends.wait(30)
            return "result"

        def interrupt():
            started.wait(30)
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with self.assertRaises(KeyboardInterrupt):
            interruptible(call, drop=dropped.append)
        self.assertEqual(dropped, [])
        ends.set()
        for _ in range(1000):
            if dropped:
                break
            time.sleep(0.01)
        self.assertEqual(dropped, ["result"])
        self.assertEqual(interruptible(lambda: 3), 3)
        with self.assertRaises(ZeroDivisionError):
            interruptible(lambda: 1 // 0)

    def test_scan_is_interrupted(self):
        self.write([bytes(1 << 20)] * 8)
        script = (
            "import millrace as mr, os, signal, threading, time\n"
            "mr.scan\n"  # imported before the signal
            "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            f"try: mr.scan([{self.file!r}] * 1000000, threads=1)\n"
            "except KeyboardInterrupt: print('interrupted')\n"
        )
        run = run_script(script)
        self.assertEqual(run.stdout, b"interrupted\n", run.stderr)


if __name__ == "__main__":
    unittest.main()
