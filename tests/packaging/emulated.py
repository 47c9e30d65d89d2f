"""Python for another processor: Debian's packages, as packaging/sysroot unpacks them, run by qemu."""
import glob
import os
import shlex
import shutil

DEBIAN_NAMES = {"aarch64": "arm64", "x86_64": "amd64"}


class Emulator:
    """Creates virtual environments whose interpreter is a script that starts qemu. So are all programs that it starts,
    because this machine's kernel can execute a script, but no program for another processor.

    missing
        Why there is none, or None."""

    def __init__(self, root, machine):
        self.qemu = shutil.which(f"qemu-{machine}-static")
        architecture = DEBIAN_NAMES[machine]
        self.sysroot = os.path.join(root, ".toolchain", f"sysroot-{architecture}")
        found = glob.glob(os.path.join(self.sysroot, "usr", "bin", "python3.?*"))
        self.python = found[0] if found else None
        self.missing = None
        if self.qemu is None:
            self.missing = f"no qemu-{machine}-static: install qemu-user-static"
        elif self.python is None:
            self.missing = f"no Python for {machine}: run packaging/sysroot {architecture}"

    def _write_script(self, path, program):
        words = shlex.join([self.qemu, "-L", self.sysroot])
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {words} -0 "$0" {shlex.quote(program)} "$@"\n')
        os.chmod(path, 0o755)

    def make_environment(self, directory):
        """As python -m venv."""
        version = os.path.basename(self.python)
        for name in ("bin", os.path.join("lib", version, "site-packages")):
            os.makedirs(os.path.join(directory, name))
        with open(os.path.join(directory, "pyvenv.cfg"), "w", encoding="utf-8") as file:
            file.write(f"home = {os.path.dirname(self.python)}\ninclude-system-site-packages = false\n")
        self._write_script(os.path.join(directory, "bin", "python"), self.python)

    def wrap_programs(self, directory):
        """Replaces the programs in a directory by scripts that run them."""
        for name in os.listdir(directory):
            path = os.path.join(directory, name)
            os.rename(path, f"{path}.elf")
            self._write_script(path, f"{path}.elf")
