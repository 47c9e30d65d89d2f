"""The structs of the package have the layout of the public headers: a C compiler checks it."""
import ctypes
import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "python"))

import millrace  # noqa: E402


def structures():
    """The classes that mirror a struct: their docstrings are its name."""
    found = {}
    for module in pkgutil.iter_modules(millrace.__path__):
        if module.name in ("torch", "jax"):
            continue
        for value in vars(importlib.import_module(f"millrace.{module.name}")).values():
            is_struct = isinstance(value, type) and issubclass(value, ctypes.Structure)
            if is_struct and (value.__doc__ or "").startswith("mr_") and hasattr(value, "_fields_"):
                found[value.__doc__] = value
    return found


def program(found):
    """C that does not compile unless every offset and size is the same."""
    lines = ["#include <millrace/millrace.h>", "#include <stddef.h>"]
    for name, struct in sorted(found.items()):
        lines.append(f'static_assert(sizeof({name}) == {ctypes.sizeof(struct)}, "size of {name}");')
        for field, *_ in struct._fields_:
            at = getattr(struct, field)
            place = f"{name}.{field}"
            lines.append(f'static_assert(offsetof({name}, {field}) == {at.offset}, "offset of {place}");')
            lines.append(f'static_assert(sizeof((({name} *)nullptr)->{field}) == {at.size}, "size of {place}");')
    return "\n".join(lines) + "\n"


class LayoutsTest(unittest.TestCase):
    def compile(self, text):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "layouts.c")
            with open(path, "w") as file:
                file.write(text)
            command = [os.path.join(ROOT, "zigw"), "cc", "-std=c23", "-c", path, "-o", os.path.join(directory, "o"),
                       "-I", os.path.join(ROOT, "include"), "-I", os.path.join(ROOT, "generated")]  # fmt: skip
            return subprocess.run(command, capture_output=True, text=True)

    def test_layouts(self):
        found = structures()
        self.assertGreater(len(found), 30)
        result = self.compile(program(found))
        self.assertEqual(result.returncode, 0, result.stderr[-4000:])

    def test_a_wrong_layout_is_found(self):
        class Wrong(ctypes.Structure):
            """mr_string"""

            _fields_ = [("size_bytes", ctypes.c_size_t), ("data", ctypes.c_void_p)]

        result = self.compile(program({"mr_string": Wrong}))
        self.assertIn("offset of mr_string.data", result.stderr)


if __name__ == "__main__":
    unittest.main()
