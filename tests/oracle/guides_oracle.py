"""docs/tensorflow-graphs.md: runs its Python code with real TensorFlow, and its commands on the resulting files."""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

# Appended to the guide's program: trains and saves the checkpoint that graph-run reads.
TRAIN = """
with tf.Session() as session:
    session.run(init)
    for _ in range(200):
        session.run(train, {x: [-1, 0, 1], y: [-5, -2, 1]})
    saver.save(session, "trained/line", global_step=200)
"""


def check_python(printed):
    numbers = [float(number) for number in re.findall(r"-?[0-9]+\.[0-9]*(?:e-?[0-9]+)?", printed)]
    assert len(numbers) == 5 and np.allclose(numbers, [4, 7, 3, -2, 0], atol=1e-4), printed
    assert printed.splitlines()[-1] == "x Placeholder", printed


def main():
    with open(os.path.join(ROOT, "docs", "tensorflow-graphs.md"), encoding="utf-8") as file:
        blocks = re.findall(r"^```(python|sh)\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    environment = dict(os.environ, PATH=os.environ["MILLRACE_BIN"] + ":" + os.environ["PATH"],
                       PYTHONPATH=os.path.join(ROOT, "python"))
    with tempfile.TemporaryDirectory() as directory:
        train = TRAIN
        for kind, text in blocks:
            command = [sys.executable, "-c", text + train] if kind == "python" else ["sh", "-euc", text]
            train = "" if kind == "python" else train
            printed = subprocess.run(
                command, cwd=directory, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            if "import millrace" in text:
                check_python(printed.stdout)
        output = subprocess.run(
            ["graph-run", "run/line-0.meta", "--restore", "trained", "--feed", "x=[2]", "--fetch", "line"],
            cwd=directory, env=environment, check=True, capture_output=True, text=True).stdout
    value = float(output.split()[-1].strip("[]"))
    assert abs(value - 4) < 1e-4, output
    print(f"{len(blocks)} passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
