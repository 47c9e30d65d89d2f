"""Writes the seed corpus of where_fuzz to tests/fuzz/corpus/where.

    python3 tests/fuzz/where_corpus.py"""
import os

import records_corpus as records

DIRECTORY = os.path.join(records.CORPUS, "where")
RECORD = records.EXAMPLES["every"]
STEPS = records.field(
    2, records.field(1, records.field(1, b"s") + records.field(2, records.field(1, records.INTEGERS) * 2))
)
EXPRESSIONS = {
    "compare": "a == 7 && b < 1.5 || !(c != 'hello')",
    "arithmetic": "a * 2 - 3 / d % 4 + -b >= 0x10",
    "functions": "exists(a) && size(b) == 2 && bytes(c) < 9 && feature(\"image/height\") == 3.0",
    "match": "c =~ '^h[a-z]{2,4}o$' || e contains \"l\\x6co\"",
    "pairs": "a == d && c <= e",
    "deep": "(" * 20 + "!exists(x)" + ")" * 20,
    "wrong": "a == 1 && (b = 'x",
    "odd-pattern": "c =~ '(a*)*b|[[:alpha:]-]+(x{3}){9}'",
}


def main():
    os.makedirs(DIRECTORY, exist_ok=True)
    for name, text in EXPRESSIONS.items():
        with open(os.path.join(DIRECTORY, name), "wb") as file:
            file.write(text.encode() + b"\0" + RECORD)
    with open(os.path.join(DIRECTORY, "sequence"), "wb") as file:
        file.write(b"steps(s) == 2 && s == 300 && a < s\0" + RECORD + STEPS)


if __name__ == "__main__":
    main()
