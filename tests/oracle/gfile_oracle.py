"""Random sequences of operations on two equal trees give the same results, codes and trees as tf.gfile."""
import os
import random
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow.compat.v1 as tf
from tensorflow.python.lib.io import file_io

PROGRAM = os.path.join(os.environ["MILLRACE_ORACLE"], "gfile_run")
gfile = tf.gfile
PATHS = ["f", "g", "d", "d/", "d/e", "d/x", "d/e/y", "d/.h", "f/x", "none", "none/x", "", "new", "new/a/b", "link",
         "broken", "loop", "n" * 300, "a b", "ü*?", "d/../f", "hdfs://a/b", "."]
PATTERNS = ["*", "d/*", "*/*", "[df]", "?", "d", "none*", "", "**/y", "d/.*", "{d,f}", "\\f", "d/e/*", "[!d]*", "./*",
            "a *", "ü\\**", "d/[a-z]"]


def names(items):
    return "".join(item + "," for item in items)


def read(path):
    with gfile.GFile(path, "rb") as file:
        return file.read().decode() + ","


def stat(path):
    about = gfile.Stat(path)
    return f"{int(about.is_directory)} {0 if about.is_directory else about.length}"


def walk(path, in_order):
    return "".join(f"{d}:{names(sorted(s))}:{names(sorted(f))};" for d, s, f in gfile.Walk(path, in_order == "1"))


RUN = {
    "exists": lambda p: str(int(gfile.Exists(p))),
    "isdir": lambda p: str(int(gfile.IsDirectory(p))),
    "stat": stat,
    "list": lambda p: names(sorted(gfile.ListDirectory(p))),
    # A relative pattern without a directory gives "./f" there.
    "glob": lambda p: names(sorted(f[2:] if f.startswith("./") and not p.startswith("./") else f
                                   for f in gfile.Glob(p))),
    "read": read,
    "write": lambda p, text: file_io.write_string_to_file(p, text),
    "makedirs": gfile.MakeDirs,
    "mkdir": gfile.MkDir,
    "remove": gfile.Remove,
    "rmtree": gfile.DeleteRecursively,
    "copy": lambda p, q, overwrite: gfile.Copy(p, q, overwrite == "1"),
    "rename": lambda p, q, overwrite: gfile.Rename(p, q, overwrite == "1"),
}


def make_tree():
    os.makedirs("d/e")
    for path in ["f", "d/x", "d/e/y", "d/.h", "a b", "ü*?"]:
        with open(path, "w") as file:
            file.write("contents of " + path)
    for name, target in [("link", "d"), ("broken", "nothing"), ("loop", "loop")]:
        os.symlink(target, name)


def tree():
    found = []
    for directory, subdirectories, files in os.walk("."):
        for name in subdirectories + files:
            path = os.path.join(directory, name)
            content = os.readlink(path) if os.path.islink(path) else os.path.isdir(path) or open(path).read()
            found.append((path, content))
    return sorted(found)


def leads_nowhere(path):
    return os.path.islink(path) and not os.path.exists(path)


def is_left_out(command, arguments):
    """Where we differ on purpose."""
    path = arguments[0]
    is_plain = os.path.isdir("d") and not os.path.islink("d")
    if ("d/../f" in arguments or "d/" in arguments) and not is_plain:  # they shorten paths as texts
        return True
    if command == "rmtree":  # they follow links, and remove what is in "."
        inner = [os.path.join(d, n) for d, s, f in os.walk(path) for n in s + f]
        return path in (".", "d/../f") or any(os.path.islink(p.rstrip("/")) for p in [path, *inner])
    if command == "copy":  # they empty the target when the copy fails, or is of a file to itself or to a broken link
        same = [os.path.realpath(p) for p in arguments[:2]]
        return same[0] == same[1] or os.path.isdir(path) or leads_nowhere(arguments[1])
    if command in ("makedirs", "mkdir"):  # they report success without a directory
        return leads_nowhere(path) or command == "mkdir" and os.path.isfile(path)
    if command == "write":  # they write through a link to nothing
        return leads_nowhere(path)
    return command == "rename" and "." in arguments[:2]


def one_line(command, arguments):
    try:
        result, code = RUN[command](*arguments), 0
    except tf.errors.OpError as error:
        result, code = "", error.error_code
    return f"{result or ''}\t{code}"


def random_command(rng):
    command = rng.choice(["exists", "isdir", "stat", "list", "glob", "read", "write", "makedirs", "mkdir", "remove",
                          "rmtree", "copy", "copy", "rename"])
    if command == "glob":
        return command, [rng.choice(PATTERNS)]
    arguments = [rng.choice(PATHS)]
    if command == "write":
        arguments.append(f"text {rng.randrange(1000)}")
    if command in ("copy", "rename"):
        arguments += [rng.choice(PATHS), rng.choice("01")]
    return command, arguments


def sequence(seed, length):
    """Compares every result, by replaying the commands in a tree of our own."""
    rng = random.Random(seed)
    home = os.getcwd()
    commands, expected = [], []
    with tempfile.TemporaryDirectory() as theirs, tempfile.TemporaryDirectory() as ours:
        os.chdir(theirs)
        make_tree()
        while len(commands) < length:
            command, arguments = random_command(rng)
            if command in ("exists", "list") and arguments[0].startswith("hdfs") or is_left_out(command, arguments):
                continue
            commands.append((command, arguments))
            expected.append(one_line(command, arguments))
        their_tree = tree()
        os.chdir(ours)
        make_tree()
        text = "".join("\t".join([command, *arguments]) + "\t\n" for command, arguments in commands)
        run = subprocess.run([PROGRAM], input=text, text=True, check=True, capture_output=True)
        lines = run.stdout.split("\n")[:-1]
        our_tree = tree()
        os.chdir(home)
    assert len(lines) == length
    for i, (a, b) in enumerate(zip(lines, expected)):
        assert a == b, (seed, i, commands[i], "ours", a, "theirs", b, commands[:i])
    assert our_tree == their_tree, (seed, our_tree, their_tree)
    return length


def walks():
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        make_tree()
        os.remove("loop")
        for path, in_order in [("d", "1"), ("d", "0"), (".", "1"), ("link", "1")]:
            run = subprocess.run([PROGRAM], input=f"walk\t{path}\t{in_order}\t\n", text=True, check=True,
                                 capture_output=True)
            ours, theirs = run.stdout, walk(path, in_order) + "\t0\n"
            # The order of directories is that of the system there.
            assert sorted(ours.split(";")) == sorted(theirs.split(";")), (path, ours, theirs)
        os.chdir(home)
    return 4


def main():
    count = sum(sequence(seed, 60) for seed in range(60)) + walks()
    print(f"{count} passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
