"""Flags here and in absl, which tf.flags is: the same command lines are accepted, with the same values and the same
arguments that are left. Command lines are those of a table, and random ones from their parts."""

import os
import random
import subprocess
import sys
import tempfile

from absl import flags as absl_flags


def define(mode):
    values = absl_flags.FlagValues()
    absl_flags.DEFINE_string("name", None, "a name", short_name="n", flag_values=values)
    absl_flags.DEFINE_string("other", None, "another name", flag_values=values)
    absl_flags.DEFINE_enum("color", "red", ["red", "Green", "blue"], "a color", case_sensitive=False,
                           flag_values=values)
    absl_flags.DEFINE_bool("verbose", False, "print more", short_name="v", flag_values=values)
    absl_flags.DEFINE_bool("quiet", True, "print less", flag_values=values)
    absl_flags.DEFINE_integer("steps", 7, "steps", lower_bound=1, upper_bound=1000, flag_values=values)
    absl_flags.DEFINE_float("rate", 0.1, "rate", flag_values=values)
    absl_flags.DEFINE_list("list", ["one", "two"], "a list", flag_values=values)
    absl_flags.DEFINE_multi_string("many", None, "texts", flag_values=values)
    absl_flags.DEFINE_multi_integer("numbers", None, "numbers", flag_values=values)
    absl_flags.DEFINE_multi_float("rates", None, "rates", flag_values=values)
    absl_flags.DEFINE_multi_enum("shades", None, ["dark", "light"], "shades", flag_values=values)
    if mode == "l":
        absl_flags.DEFINE_list("wanted", None, "a list", required=True, flag_values=values)
        absl_flags.DEFINE_multi_string("several", None, "texts", required=True, flag_values=values)
        absl_flags.mark_flags_as_mutual_exclusive(["wanted", "name"], flag_values=values)
    if mode == "r":
        absl_flags.mark_flag_as_required("name", flag_values=values)
        absl_flags.mark_flags_as_mutual_exclusive(["many", "numbers", "other"], required=True, flag_values=values)
        absl_flags.mark_bool_flags_as_mutual_exclusive(["verbose", "quiet"], flag_values=values)
    return values


def theirs(mode, arguments):
    values = define(mode)
    values.set_gnu_getopt(mode != "s")
    try:
        rest = values(["program"] + arguments, known_only=mode == "k")
    except (absl_flags.Error, ValueError) as error:
        return f"error: {error}"
    return "\x1f".join(rest[1:] + ["|"] + values.flags_into_string().split("\n"))


TEXTS = ["", "a", "b c", " padded ", "a=b", "-x", "--", "1", "true", "x,y", '"q,r",s', '"open', '"a"b', 'in"side',
         '""', ' "spaced"', ",", "a,,b", '"do""uble"', "é"]
INTEGERS = ["0", "1", "7", "1000", "1001", "-1", "+5", "010", "0x1f", "0X1f", "0o17", "0b11", "1_0", "_1", "1_", "1__0",
            " 12 ", "1 2", "", "x", "1.0", "1e2", "0x", "0x_f", "0xg", "0o8", "-0x1", " 0x1", "0x 1", "0x1 ", "--", "+",
            "-", "00", "0_0", "0x-1", "12345678901"]
FLOATS = ["0", "1", "-1", "+1.5", ".5", "5.", ".", "1e-5", "1E+3", "1e", "e5", "1_0.2_5", "1__0", "1_.5", "1._5", "inf",
          "-Infinity", "nan", "NaN", "infinit", "0x10", "1e400", "-1e-400", " 2.5 ", "2 .5", "", "1e16", "1e15",
          "123456789012345678", "0.0001", "0.00001", "1e22", "3.0000000000000004", "nan(1)", "1e1_0", "1d5", "--1",
          "-0"]
BOOLS = ["true", "True", "t", "T", "1", "false", "FALSE", "f", "0", "yes", "no", "", "2", " true"]
COLORS = ["red", "RED", "green", "Green", "blue", "black", "", "gre"]


def table(directory):
    """Arguments of which random command lines are made."""
    parts = [["--"], ["-"], [""], ["word"], ["--=x"], ["-=x"], ["---steps=3"], ["--steps"], ["--unknown"],
             ["--unknown=3"], ["-u"], ["--nounknown"], ["--nosteps"], ["--noverbose=true"], ["--nov"], ["-v"], ["-nov"],
             ["-v=0"], ["--v"], ["-n", "short"], ["-n=short"], ["--n", "short"], ["--no"], ["--verbose", "false"],
             ["--undefok=unknown"], ["--undefok", "u, unknown"], ["--undefok="], ["--undefok"], ["--undefok=a,b,u "],
             ["--undefok=steps"], ["--Steps=4"], ["--step=4"], ["--verbose=", "x"], ["--noquiet"], ["--quiet"]]
    for flag, texts in (("name", TEXTS), ("other", TEXTS), ("list", TEXTS), ("many", TEXTS), ("steps", INTEGERS),
                        ("numbers", INTEGERS), ("rate", FLOATS), ("rates", FLOATS), ("verbose", BOOLS),
                        ("quiet", BOOLS), ("color", COLORS), ("shades", ["dark", "Dark", "light", ""])):
        for text in texts:
            parts += [[f"--{flag}={text}"], [f"-{flag}={text}"]]
            if flag not in ("verbose", "quiet"):
                parts += [[f"--{flag}", text]]
    files = {"plain": "--steps=9\n\n# a comment\n// another\n  --name = x  \n--verbose\n",
             "words": "word\n--steps\n8\n--rate 0.5\n", "empty": "", "spaces": "   \n\t\n",
             "nested": f"--rate=2\n--flagfile={directory}/plain\n--color=blue\n",
             "rest": "--steps=3\n--\n--name=x\n", "bad": "--steps=x\n", "unknown": "--unknown\n-u=3\n",
             "last": "--many=a\n--many=b", "commented": " # not a comment\n"}
    for name, text in files.items():
        with open(os.path.join(directory, name), "w") as file:
            file.write(text)
        parts += [[f"--flagfile={directory}/{name}"], ["-flagfile", f"{directory}/{name}"]]
    return parts + [["--flagfile="], ["--flagfile"], [f"--flagfile={directory}/missing"], ["--flagfile", ""]]


def main():
    with tempfile.TemporaryDirectory() as directory:
        parts = table(directory)
        draw = random.Random(1)
        cases = [(mode, part) for mode in "pksr" for part in parts]
        cases += [("r", ["--name=x", "--noquiet", *part]) for part in parts]
        cases += [("r", ["--name=x", "--other=y", *part]) for part in parts]
        lists = [[], ["--wanted="], ["--wanted", ""], ["--wanted=a"], ['--wanted=""'], ["--wanted= "], ["--wanted=,"]]
        several = [[], ["--several="], ["--several", ""], ["--several=a", "--several="], ["--several"]]
        names = [[], ["--name="], ["--name=x"], ["--", "--wanted="], ["--wanted="], ["--several="]]
        cases += [("l", [*a, *b, *c]) for a in lists for b in several for c in names]
        valid = [part for part in parts if not theirs("p", part).startswith("error")]
        for _ in range(20000):
            chosen = draw.choices(valid, k=draw.randint(1, 6)) + draw.choices(parts, k=draw.randint(0, 1))
            draw.shuffle(chosen)
            cases.append((draw.choice("pksr"), [argument for part in chosen for argument in part]))
        lines = "".join("\x1f".join([mode] + arguments) + "\n" for mode, arguments in cases)
        program = os.path.join(os.environ["MILLRACE_ORACLE"], "flags_run")
        done = subprocess.run([program], input=lines, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        results = done.stdout.split("\n")[:-1]
        assert len(results) == len(cases), (len(results), len(cases))
        passed = failed = errors = 0
        for (mode, arguments), ours in zip(cases, results):
            expected = theirs(mode, arguments)
            errors += expected.startswith("error")
            is_same = ours.startswith("error") if expected.startswith("error") else ours == expected
            passed += is_same
            failed += not is_same
            if not is_same and failed < 20:
                print(f"FAIL {mode} {arguments}\n  ours   {ours!r}\n  theirs {expected!r}")
        print(f"{errors} of {len(cases)} command lines are errors")
        print(f"{passed} passed, {failed} failed")
        sys.exit(failed > 0)


if __name__ == "__main__":
    main()
