"""A reader of the formats of docs/formats.md. It is written from that page alone, with Python's standard library.

    read_formats.py index RECORD-FILE        the index of a record file, compared with the file
    read_formats.py damaged-index RECORD-FILE   any changed byte and any truncation of the index is detected
    read_formats.py seekable RECORD-FILE     the records of a seekable GZIP file, read segment by segment
    read_formats.py cache RECORD-FILE        a cache or snapshot
    read_formats.py state FILE STAGES        an iterator's state; STAGES: from the last one, "engine,batch,text_lines"
    read_formats.py session FILE             a session's state
    read_formats.py journal DIR NAME         the journals of a dataset, compared with the files in DIR
    read_formats.py quarantine RECORD-FILE   a quarantine
    read_formats.py crop-ready FILE          a crop-ready JPEG

Prints the contents as `name value…` lines. Exits with 1 and a message if the file does not conform to the page."""

import os
import struct
import sys
import zlib


class Invalid(Exception):
    pass


def require(condition, message):
    if not condition:
        raise Invalid(message)


# ---- Conventions ----

def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


def records_of(stream):
    """The records of an uncompressed stream."""
    offset = 0
    while offset < len(stream):
        require(len(stream) - offset >= 16, "a record is cut")
        length, = struct.unpack_from("<Q", stream, offset)
        header_crc, = struct.unpack_from("<I", stream, offset + 8)
        require(masked(crc32c(stream[offset:offset + 8])) == header_crc, "bad header")
        require(length <= 2 << 30 and offset + 16 + length <= len(stream), "bad length")
        data = stream[offset + 12:offset + 12 + length]
        require(masked(crc32c(data)) == struct.unpack_from("<I", stream, offset + 12 + length)[0], "bad data")
        yield data
        offset += 16 + length


class Reader:
    """Reads the fields of a byte string: varints, bools, bytes and tensors."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        require(size <= len(self.data) - self.at, "fields end early")
        self.at += size
        return self.data[self.at - size:self.at]

    def varint(self):
        number = 0
        for i in range(10):
            byte = self.take(1)[0]
            require(i < 9 or byte <= 1, "a varint is too large")
            number |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                return number
        raise Invalid("a varint is too long")

    def bool(self):
        number = self.varint()
        require(number <= 1, "a bool is not 0 or 1")
        return number

    def bytes(self):
        return self.take(self.varint())

    def end(self):
        require(self.at == len(self.data), "bytes follow the last field")

    def fixed(self, size):
        return int.from_bytes(self.take(size), "little")

    SIZES = {1: 4, 2: 8, 3: 4, 4: 1, 5: 2, 6: 1, 8: 8, 9: 8, 10: 1, 11: 1, 12: 1, 13: 4, 14: 2, 15: 2, 16: 2, 17: 2,
             18: 16, 19: 2, 22: 4, 23: 8}

    def tensor(self):
        dtype, rank = self.varint(), self.varint()
        require(rank <= 8, "rank over 8")
        shape = [self.varint() for _ in range(rank)]
        count = 1
        for dim in shape:
            count *= dim
        if dtype == 7:
            require(count <= len(self.data) - self.at, "more strings than bytes")
            return dtype, shape, [self.bytes() for _ in range(count)]
        data = self.bytes()
        require(len(data) == count * self.SIZES.get(dtype, -1), "a tensor's size does not fit its shape")
        require(dtype != 10 or all(byte <= 1 for byte in data), "a bool is not 0 or 1")
        return dtype, shape, data


# ---- Record index ----

def samples(data):
    if len(data) <= 4096:
        return crc32c(data)
    span, crc = len(data) - 512, 0
    for i in range(8):
        offset = span // 7 * i + span % 7 * i // 7
        crc = crc32c(data[offset:offset + 512], crc)
    return crc


class Index:
    def __init__(self, data, record_file, sample):
        require(len(data) >= 44, "the index is too short")
        require(data[:8] == b"MRINDEX3", "another magic")
        require(masked(crc32c(data[:-4])) == struct.unpack("<I", data[-4:])[0], "the index is damaged")
        file_size, count, point_count, self.compression, crc = struct.unpack_from("<QQQII", data, 8)
        require(len(data) == 44 + 4 * count + 16 * point_count, "the index has another size")
        require(self.compression <= 2 and (point_count == 0 or self.compression == 1), "bad compression")
        self.lengths = struct.unpack_from(f"<{count}I", data, 40)
        numbers = struct.unpack_from(f"<{2 * point_count}Q", data, 40 + 4 * count)
        self.points = list(zip(numbers[::2], numbers[1::2]))
        require(all(length <= 2 << 30 for length in self.lengths), "a length is too large")
        require(file_size == len(record_file) and crc == sample, "the index is stale")
        self.offsets = [0]
        for length in self.lengths:
            self.offsets.append(self.offsets[-1] + length + 16)
        require(self.compression != 0 or self.offsets[-1] == file_size, "the lengths do not add up")
        require(point_count == 0 or self.points[0][0] == 0, "the first point is not for record 0")
        for before, after in zip(self.points, self.points[1:]):
            require(before[0] < after[0] and before[1] < after[1], "points do not ascend")
        require(all(record < count and offset < file_size for record, offset in self.points), "a point is outside")


def open_index(path):
    record_file = read_file(path)
    return Index(read_file(path + ".index"), record_file, samples(record_file)), record_file


def show_index(path):
    index, record_file = open_index(path)
    if index.compression == 0:
        lengths = [len(record) for record in records_of(record_file)]
        require(lengths == list(index.lengths), "the lengths are not those of the file")
    print("count", len(index.lengths))
    print("compression", index.compression)
    print("lengths", *index.lengths)
    print("points", *(f"{record}@{offset}" for record, offset in index.points))


def damage_index(path):
    record_file, data = read_file(path), read_file(path + ".index")
    sample, rejected = samples(record_file), 0
    variants = [data[:i] + bytes([data[i] ^ 1 << i % 8]) + data[i + 1:] for i in range(len(data))]
    variants += [data[:i] for i in range(len(data))]
    for variant in variants:
        try:
            Index(variant, record_file, sample)
        except Invalid:
            rejected += 1
    require(rejected == len(variants), "a damaged index was accepted")
    print("rejected", rejected)


# ---- Seekable GZIP ----

def read_seekable(path):
    """The index and the records, which are read segment by segment."""
    index, data = open_index(path)
    require(index.compression == 1, "not a GZIP file")
    require(data[:10] == bytes.fromhex("1f8b0800000000000003"), "another header")
    require(index.points[:1] == [(0, 10)] or not index.lengths, "the first point is not after the header")
    ends = [offset for _, offset in index.points[1:]] + [len(data) - 10]
    first_records = [record for record, _ in index.points] + [len(index.lengths)]
    stream, records = b"", []
    for i, (record, offset) in enumerate(index.points):
        segment = data[offset:ends[i]]
        require(segment[-4:] == b"\x00\x00\xff\xff", "a segment does not end with an empty stored block")
        plain = zlib.decompressobj(-15).decompress(segment)
        found = list(records_of(plain))
        require([len(r) for r in found] == list(index.lengths[record:first_records[i + 1]]), "another record")
        stream += plain
        records += found
    require(data[-10:-8] == b"\x03\x00", "no empty final block")
    require(struct.unpack("<II", data[-8:]) == (zlib.crc32(stream), len(stream) & 0xFFFFFFFF), "another trailer")
    require(zlib.decompress(data, 31) == stream, "not one GZIP stream")
    return index, records


def show_seekable(path):
    index, records = read_seekable(path)
    print("segments", len(index.points))
    print("records", len(records))
    print("bytes", sum(len(record) for record in records))


# ---- Cache and snapshot ----

def show_cache(path):
    data = read_file(path)
    if data[:2] == b"\x1f\x8b":
        records = read_seekable(path)[1]
    else:
        records = list(records_of(data))
        open_index(path)
    require(len(records) >= 2, "fewer than two records")
    head, end = Reader(records[0]), Reader(records[-1])
    require(head.bytes() == b"millrace cache 2\0", "not a cache of this version")
    digest, components = head.varint(), head.varint()
    require(end.bytes() == b"millrace cache end\0", "no end record")
    require(end.varint() == len(records) - 2, "another number of elements")
    print(f"digest {digest:016x}")
    print("components", components)
    for record in records[1:-1]:
        reader = Reader(record)
        tensors = [reader.tensor() for _ in range(components)]
        print("element", *(f"{dtype}{shape}{data}".replace(" ", "") for dtype, shape, data in tensors))


# ---- States ----

def stage_state(reader, stages, seekable=False):
    """Reads the state of the first of the stages and of its inputs. Returns a description of the contents."""
    name, inputs = stages[0], stages[1:]
    iteration, position = reader.varint(), reader.varint()
    require(position <= 1 << 61, "the position is too large")
    text = [f"{name}@{iteration},{position}"]
    if seekable:
        return text
    if name == "engine" and inputs[0] == "batch":
        text.append(f"rows={reader.varint()} ignored={reader.varint()}")
        orders = Reader(reader.bytes())
        text += stage_state(orders, inputs, True)
        begun, epoch = orders.bool(), orders.varint()
        text += [f"epoch={epoch}"] + stage_state(orders, inputs[1:]) if begun else []
        orders.end()
    elif name == "engine":
        text += stage_state(reader, inputs)
    elif name == "repeat":
        text += [f"pass={reader.varint()} count={reader.varint() - 2}"] + stage_state(reader, inputs)
    elif name == "shuffle":
        input_reader = Reader(reader.bytes()) if reader.bool() else None
        text += stage_state(input_reader or reader, inputs)
        ahead = reader.varint() if input_reader else 0
        full, count = reader.bool(), reader.varint()
        origins = [reader.varint() for _ in range(count)]
        require(len(set(origins)) == count and all(origin < ahead for origin in origins), "another origin")
        text.append(f"ahead={ahead} full={full} count={count}")
    elif name == "text_lines":
        text.append(f"file={reader.varint()} first={reader.varint()} header={reader.bool()} offset={reader.varint()}")
    else:
        raise Invalid(f"{name} is not known")
    return text


def read_state(data, stages=()):
    require(len(data) >= 28 and data[:7] == b"MRSTATE" and data[7:8] in (b"1", b"2"), "not a state")
    require(struct.unpack("<I", data[-4:])[0] == crc32c(data[:-4]), "the state is damaged")
    digest, seed = struct.unpack_from("<QQ", data, 8)
    form, body = data[7:8].decode(), data[24:-4]
    text = f"form {form} digest {digest:016x} seed {seed}"
    if form == "1":
        require(len(body) == 8, "another size")
        position, = struct.unpack("<Q", body)
        require(position <= 1 << 61, "the position is too large")
        return f"{text} position {position}"
    if not stages:
        return text
    reader = Reader(body)
    text += " " + " ".join(stage_state(reader, stages))
    reader.end()
    return text


def show_state(path, stages):
    data = read_file(path)
    print("state", read_state(data, stages.split(",")))
    for i in range(len(data)):
        for variant in (data[:i] + bytes([data[i] ^ 1 << i % 8]) + data[i + 1:], data[:i]):
            try:
                read_state(variant)
            except Invalid:
                continue
            raise Invalid("a damaged state was accepted")


def show_session(path):
    reader = Reader(read_file(path))
    require(reader.take(17) == b"millrace state 1\n", "not a session's state")
    while reader.at < len(reader.data):
        kind = reader.take(1)
        name = reader.take(reader.fixed(4)).decode()
        payload = reader.take(reader.fixed(4))
        if kind == b"r":
            require(len(payload) == 24, "another size")
            print("random", name, *struct.unpack("<QQQ", payload))
        else:
            require(kind == b"i", "an unknown kind")
            print("iterator", name, read_state(payload))


# ---- Journal ----

WORD = (1 << 64) - 1


def mix(x):
    for _ in range(2):
        x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 & WORD
    return x ^ x >> 32


def hash_of(data):
    h = mix(0x9E3779B97F4A7C15 + len(data) & WORD)
    for i in range(0, len(data), 8):
        h = mix(h ^ int.from_bytes(data[i:i + 8], "little")) + 0x9E3779B97F4A7C15 & WORD
    return mix(h)


def unescape(text):
    parts = text.split("%")
    return parts[0] + "".join(chr(int(part[:2], 16)) + part[2:] for part in parts[1:])


def journal_lines(path):
    lines = read_file(path).split(b"\n")[:-1]  # text after the last line break is an incomplete line
    require(not lines or lines[0] == b"millrace tfrecord-make journal 2", "not a journal of this version")
    for line in lines[1:]:
        yield line.decode("ascii").split()


def show_journal(directory, name):
    own = [f".{name}.journal"] + sorted(file for file in os.listdir(directory)
                                       if file.startswith(f".{name}.worker-") and file.endswith(".journal"))
    known = {}
    for file in own:
        if not os.path.exists(f"{directory}/{file}"):
            continue
        for words in journal_lines(f"{directory}/{file}"):
            if words[0] == "shard":
                known[unescape(words[8])] = words
            elif words[0] == "removed":
                known.pop(unescape(words[2]), None)
            else:
                print("line", *(unescape(word) for word in words[:1] + words[3:]))
    for file, words in sorted(known.items()):
        fingerprint, (records, skipped, size, modified) = int(words[1], 16), (int(word) for word in words[4:8])
        path = f"{directory}/{file}"
        if file.startswith("label"):
            require(hash_of(read_file(path)) == fingerprint, "another text")
            print("text", file)
            continue
        about = os.stat(path)
        require(about.st_size == size and about.st_mtime_ns == modified, "another file")
        require(len(open_index(path)[0].lengths) == records, "another number of records")
        print("shard", file, records, skipped, *(unescape(word) for word in words[9:]))


# ---- Quarantine ----

def fields(data):
    """The fields of a protobuf message, which are all varints or bytes in these files."""
    reader = Reader(data)
    while reader.at < len(data):
        tag = reader.varint()
        require(tag & 7 in (0, 2), "another wire type")
        yield tag >> 3, reader.varint() if tag & 7 == 0 else reader.bytes()


def show_quarantine(path):
    for record in records_of(read_file(path)):
        values = {}
        for _, features in fields(record):
            for _, entry in fields(features):
                pair = dict(fields(entry))
                (kind, values_list), = fields(pair[2])
                (_, value), = fields(values_list)
                values[pair[1].decode()] = Reader(value).varint() if kind == 3 and isinstance(value, bytes) else value
        print("range", os.path.basename(values["file"].decode()), values["kind"].decode().replace(" ", "-"),
              values["record"], values["offset"], len(values["bytes"]))
        require(values["message"], "no message")


# ---- Crop-ready JPEG ----

def show_crop_ready(path):
    data = read_file(path)
    require(data[:2] == b"\xff\xd8" and data[-2:] == b"\xff\xd9", "not one image")
    at, markers, restart, frame = 2, [], 0, None
    while not markers or markers[-1] != 0xDA:
        require(data[at] == 0xFF, "no marker")
        markers.append(data[at + 1])
        size, = struct.unpack_from(">H", data, at + 2)
        body = data[at + 4:at + 2 + size]
        if markers[-1] == 0xDD:
            restart, = struct.unpack(">H", body)
        if markers[-1] == 0xC0:
            frame = body
        if markers[-1] == 0xE1:
            exif = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0%c\0\0\0\0\0\0" % body[25]
            require(body == exif and 2 <= body[25] <= 8, "another EXIF segment")
        at += 2 + size
    require(frame is not None and frame[0] == 8, "not baseline")
    require(body[0] == frame[5], "not all components in one scan")
    require(set(markers) <= {0xE0, 0xE1, 0xE2, 0xEE, 0xDB, 0xC0, 0xC4, 0xDD, 0xDA}, "other markers")
    require([m for m in markers if m >= 0xE0] == sorted((m for m in markers if m >= 0xE0),
                                                        key=[0xE0, 0xE2, 0xEE, 0xE1].index), "another order")
    height, width = struct.unpack_from(">HH", frame, 1)
    sampling = [frame[7 + 3 * i] for i in range(frame[5])]
    h, v = (max(s >> 4 for s in sampling), max(s & 15 for s in sampling)) if len(sampling) > 1 else (1, 1)
    row, rows = -(-width // (8 * h)), -(-height // (8 * v))
    choices = (4, 5, 3, 6, 7, 8, 2) if len(sampling) > 1 and h > 1 else (8, 7, 6, 5, 4, 3, 2)
    require(restart == next((r for r in choices if row % r == 0), 1), "another restart interval")
    scan = data[at:-2]
    count = sum(scan[i] == 0xFF and 0xD0 <= scan[i + 1] <= 0xD7 for i in range(len(scan) - 1))
    require(count == row * rows // restart - 1, "another number of restart markers")
    print("crop-ready", width, height, "interval", restart, "segments", count + 1)


COMMANDS = {"index": show_index, "damaged-index": damage_index, "seekable": show_seekable, "cache": show_cache,
            "state": show_state, "session": show_session, "journal": show_journal, "quarantine": show_quarantine,
            "crop-ready": show_crop_ready}


def main():
    require(crc32c(b"123456789") == 0xE3069283, "CRC32C is wrong")
    try:
        COMMANDS[sys.argv[1]](*sys.argv[2:])
    except (Invalid, struct.error, IndexError) as problem:
        sys.exit(f"{' '.join(sys.argv[1:])}: {problem}")


main()
