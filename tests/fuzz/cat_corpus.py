"""Writes the seed corpus of cat_fuzz to tests/fuzz/corpus/cat.

    python3 tests/fuzz/cat_corpus.py"""
import os

import records_corpus as records
import where_corpus as where

DIRECTORY = os.path.join(records.CORPUS, "cat")
TEXT = records.entry(
    b"t\xff\n", records.field(1, records.field(1, 'gr\u00fc\u00df "dich"\n'.encode()) + records.field(1, b"\xff\x00"))
)
NAN = records.entry(b"n", records.field(2, b"\x0d\x00\x00\xc0\x7f\x0d\x00\x00\x80\xff\x0d\x01\x00\x00\x00"))
MANY = b"".join(records.entry(b"%d" % (i % 20), records.INTEGERS) for i in range(40))


def main():
    os.makedirs(DIRECTORY, exist_ok=True)
    seeds = {name: b"\0" + data for name, data in records.EXAMPLES.items()}
    seeds["sequence"] = b"\1" + records.EXAMPLES["every"] + where.STEPS
    seeds["text"] = b"\0" + records.field(1, TEXT + NAN)
    seeds["hex"] = b"\x31" + records.field(1, TEXT + NAN)
    seeds["many"] = b"\0" + records.field(1, MANY)
    seeds["raw"] = b"\x0e" + b"no Example"
    for name, data in seeds.items():
        with open(os.path.join(DIRECTORY, name), "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
