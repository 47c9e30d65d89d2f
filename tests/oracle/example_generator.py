"""Generator of serialized Examples and SequenceExamples, encoded byte by byte from a seed. It prefers rare encodings:
map entries with the value first, duplicate names, concatenated messages, unknown fields, lists that are packed,
unpacked or in chunks, empty lists, Features without a list, lengths and integers in more bytes than needed, and keys
that do not match their values.

A plan determines the values of each name in a spec; the encoding is chosen while a record is serialized. TensorFlow's
parser cannot read three encodings of SequenceExamples (see example.h). canonical=True omits only these, so that the
same seed generates the same record for TensorFlow in an encoding that it reads."""

import dataclasses
import math
import random
import struct


@dataclasses.dataclass
class Feature:
    """One line of a spec."""

    name: str
    dtype: str
    form: str = "fixed"
    shape: tuple = ()
    default_value: object = None
    scope: str = "example"  # or context, list
    value: str = None
    keys: tuple = ()
    parts: tuple = ()  # such as ("splits", key) or ("uniform", length)
    sorted: bool = False
    missing: bool = False
    int32: bool = False

    @property
    def value_key(self):
        return self.value or self.name

    @property
    def stride(self):
        return math.prod(self.shape)

    def line(self):
        flags = ",".join(f for f in ("sorted", "missing", "int32") if getattr(self, f))
        default_value = "-" if self.default_value is None else self.default_value if self.default_value != "" else "''"
        shape, keys = ",".join(map(str, self.shape)), ",".join(self.keys)
        parts = ",".join(f"{kind}:{key}" for kind, key in self.parts)
        fields = [self.scope, self.name, self.dtype, self.form, shape, default_value, self.value, keys, parts, flags]
        return " ".join("-" if f in (None, "") else str(f) for f in fields)


def varint(value, padding=0):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    for _ in range(min(padding, 10 - len(out))):
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


class Generator:
    def __init__(self, seed, wild, canonical=False):
        self.random = random.Random(seed)
        self.wild = wild  # probability of rare encodings
        self.canonical = canonical
        self.in_step = self.in_sequence = False

    def rare(self, factor=1.0):
        return self.random.random() < self.wild * factor

    # ---- Wire format ----

    def field(self, number, payload):
        return varint(number << 3 | 2) + varint(len(payload), self.rare(0.3) and self.random.randint(1, 4)) + payload

    def unknown(self):
        number = self.random.choice([3, 5, 16, 1000] if self.in_sequence else [2, 5, 16, 1000])
        kind = self.random.choice([0, 1, 2, 5])
        return varint(number << 3 | kind) + {
            0: varint(self.random.getrandbits(64)),
            1: bytes(8),
            2: varint(3) + b"abc",
            5: bytes(4),
        }[kind]

    def integer(self):
        r = self.random
        return r.choice(
            [0, 1, -1, 127, 128, 2**31, -(2**31), 2**63 - 1, -(2**63), r.getrandbits(14), -r.getrandbits(40)]
        )

    def values(self, kind, count):
        r = self.random
        if kind == "string":
            return [r.randbytes(r.choice([0, 1, 5, 200])) for _ in range(count)]
        if kind == "float":
            return [r.choice([0.0, -0.0, 1.5, float("inf"), r.gauss(0, 1)]) for _ in range(count)]
        return [self.integer() for _ in range(count)]

    def list(self, kind, values):
        if kind == "string":
            return b"".join(self.field(1, value) for value in values)
        if kind == "float":
            values = [struct.pack("<f", value) for value in values]
            tag, packed = b"\x0d", b"".join(values)
        else:
            values = [varint(value, self.rare(0.2) and self.random.randint(1, 3)) for value in values]
            tag, packed = b"\x08", b"".join(values)
        if self.rare():
            return b"".join(tag + value for value in values)
        if not values and not self.rare():
            return b""
        if self.rare(0.3):  # a second chunk, which protobuf parsers append
            second = self.field(1, values[0] if values else b"")
            return self.field(1, packed) + (b"" if self.canonical and self.in_step else second)
        return self.field(1, packed)

    def feature(self, kind, values):
        if self.rare(0.4):
            return b""
        if self.rare(0.1):
            kind = self.random.choice(["string", "float", "int64"])
            values = self.values(kind, len(values))
        number = {"string": 1, "float": 2, "int64": 3}[kind]
        body = self.field(number, self.list(kind, values))
        if self.rare(0.2):
            more = self.unknown()
            body += b"" if self.canonical and self.in_step else more
        if self.rare(0.02):
            body = b"\x22\x00"
        return body

    def entry(self, name, body):
        parts = [self.field(1, name.encode()), self.field(2, body)]
        if self.rare() and not (self.canonical and self.in_sequence):
            parts.reverse()
        if self.rare(0.01):
            parts.append(self.unknown())
        return self.field(1, b"".join(parts))

    # ---- Plans: the values of each name ----

    def count(self, feature):
        if feature.form == "fixed" and not self.rare(0.05):
            return feature.stride
        if feature.form == "sequence" and not self.rare(0.05):
            return feature.stride * self.random.choice([0, 1, 2, 5])
        # TensorFlow writes excess unpacked floats of a fixed shape past its buffer and crashes.
        most = feature.stride if feature.form == "fixed" and feature.dtype == "float" else 7
        return self.random.choice([n for n in (0, 1, 2, 3, 7) if n <= most])

    def parted(self, feature, plan, known):
        """Plans the partition keys of a ragged feature. Returns the number of values that they partition."""
        if feature.parts in known:
            return known[feature.parts]
        r = self.random
        items = r.choice([0, 1, 2, 3])
        for kind, key in feature.parts:
            if kind == "uniform":
                items *= key
                continue
            lengths = [r.choice([0, 1, 1, 2, 3]) for _ in range(items)]
            if kind == "rowids" and lengths:
                lengths[-1] = max(lengths[-1], 1)
            ends = [sum(lengths[: i + 1]) for i in range(items)]
            plan[key] = {
                "splits": [0] + ends,
                "lengths": lengths,
                "starts": ([0] + ends)[:-1],
                "limits": ends,
                "rowids": [i for i, n in enumerate(lengths) for _ in range(n)],
            }[kind]
            if kind == "splits" and items == 0 and self.rare():
                plan[key] = []
            if self.rare(0.3):
                self.spoil(plan[key])
            items = sum(lengths)
        known[feature.parts] = items
        return items

    def spoil(self, keys):
        r = self.random
        way = r.choice(["more", "less", "last", "negative", "order", "far"])
        if way == "less" and keys:
            keys.pop()
        elif way in ("last", "negative", "far") and keys:
            keys[r.randrange(len(keys))] += {"last": r.choice([-1, 1]), "negative": -9, "far": 99}[way]
        elif way == "order":
            keys.reverse()
        else:
            keys.append(keys[-1] if keys else 0)

    def placed(self, feature, plan):
        """Plans the indices of a sparse feature. Returns the number of values."""
        r = self.random
        places = {tuple(r.randrange(size) for size in feature.shape) for _ in range(r.choice([0, 1, 2, 3, 9]))}
        places = sorted(places)
        if not self.rare(0.5):
            r.shuffle(places)
        for d, key in enumerate(feature.keys):
            plan[key] = [place[d] for place in places]
            if self.rare(0.2):
                self.spoil(plan[key])
        return len(places)

    def plan(self, features):
        """Plans features outside of feature lists: {name: (kind, values)}."""
        keys, kinds, counts, known = {}, {}, {}, {}
        for f in features:
            if f.form == "ragged" and f.parts:
                counts[f.value_key] = self.parted(f, keys, known)
            elif f.form == "sparse":
                counts[f.value_key] = self.placed(f, keys)
            kinds[f.value_key] = f.dtype
        for f in features:
            if f.value_key not in counts:
                counts[f.value_key] = self.count(f)
        plan = {name: (kinds[name], self.values(kinds[name], count)) for name, count in counts.items()}
        plan.update({name: ("int64", values) for name, values in keys.items()})
        return plan

    def stray(self, features, name):
        """Other values for a name, of the kind that a feature of the spec could have."""
        for f in features:
            if f.value_key == name:
                return f.dtype, self.values(f.dtype, self.count(f))
        return "int64", [self.random.randrange(4) for _ in range(self.random.choice([0, 1, 2]))]

    # ---- Messages ----

    def context(self, features):
        r = self.random
        entries = []
        for name, (kind, values) in self.plan(features).items():
            if self.rare(0.15):
                continue
            entries.append(self.entry(name, self.feature(kind, values)))
            if self.rare(0.3):
                entries.append(self.entry(name, self.feature(*self.stray(features, name))))
        for other in ("other", "a", features[0].name + "x" if features else "b", ""):
            if self.rare(0.5):
                kind = r.choice(["string", "float", "int64"])
                entries.append(self.entry(other, self.feature(kind, self.values(kind, 2))))
        return entries

    def steps(self, kind, steps):
        self.in_step = True
        body = b"".join(self.field(1, self.feature(kind, values)) for values in steps)
        self.in_step = False
        return body

    def lists(self, features):
        """Entries of feature lists. Features that share a partition have the same number of steps."""
        r = self.random
        steps = r.choice([0, 1, 2, 3])
        plan = {}
        for f in features:
            if f.parts:
                continue
            odd = self.rare(0.05)
            own = [
                self.values(
                    f.dtype, f.stride if f.form == "sequence" and not (odd and self.rare(5)) else r.choice([0, 1, 2, 5])
                )
                for _ in range(r.choice([0, 1, 2, 3, 5]))
            ]
            plan[f.value_key] = (f.dtype, own)
        parted = [f for f in features if f.parts]
        for _ in range(steps):
            for name, (kind, values) in self.plan(parted).items():
                plan.setdefault(name, (kind, []))[1].append(values)
        entries = []
        for name, (kind, own) in plan.items():
            if self.rare(0.3):
                continue
            if self.rare(0.1) and parted:
                own = own[:-1]
            entries.append(self.entry(name, self.steps(kind, own)))
            if self.rare(0.3):
                entries.append(
                    self.entry(name, self.steps(kind, [self.values(kind, 1) for _ in range(r.choice([0, 1, 2]))]))
                )
        if self.rare():
            entries.append(self.entry("other", self.steps("float", [[1.0], []])))
        return entries

    def message(self, make):
        """The fields of one message, sometimes in several pieces with unknown fields between them. make() returns
        [(field, entries)]."""
        r = self.random
        message = b""
        while True:
            for number, entries in make():
                if self.rare():
                    r.shuffle(entries)
                if self.rare(0.01):
                    entries.append(self.unknown())
                if entries or not self.rare(3):
                    message += self.field(number, b"".join(entries))
                if self.rare(0.3):
                    message += self.unknown()
            if not self.rare(0.3):
                return message

    def example(self, spec):
        self.in_sequence = False
        return self.message(lambda: [(1, self.context(spec))])

    def sequence(self, spec):
        self.in_sequence = True
        context, lists = [f for f in spec if f.scope == "context"], [f for f in spec if f.scope == "list"]

        def make():
            both = [(1, self.context(context)), (2, self.lists(lists))]
            if self.rare():
                both.reverse()
            return both

        return self.message(make)
