#!/usr/bin/env python3
"""Writes a program's man page and its completions for bash, zsh and fish, from what it prints for --help.

usage: help_texts.py OUTPUT_DIR PROGRAM...

Writes man/NAME.1, bash/NAME, zsh/_NAME and fish/NAME.fish below OUTPUT_DIR. The environment variable MILLRACE_DATE
("22 Nov 2026") is the date of the man pages. A help text has this form:

    NAME does something.                    the sentence becomes the section NAME

        NAME examples

    usage: NAME [options] FILE

    paragraphs, options, operands           options may be in groups: "Show:" on a line of its own

    exit status: 0 success, 1 failure

"TOPIC is a, b, or an option" announces topics, whose options replace those of the short text. Otherwise --help NAME
prints more about an option if the program has "--help [NAME]".
"""
import datetime
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field


@dataclass
class Option:
    """One option or operand (without a name) and what the help says about it."""

    letter: str
    name: str
    argument: str
    text: str = ""
    details: list = field(default_factory=list)  # blocks

    @property
    def summary(self):
        """The first sentence, for completions, in at most 70 characters."""
        text = re.split(r"[.;] ", self.text)[0]
        return text if len(text) <= 70 else text[:70].rsplit(" ", 1)[0].rstrip(",:") + "…"

    @property
    def choices(self):
        return self.argument.split("|") if "|" in self.argument else []

    @property
    def is_repeatable(self):
        return "repeat" in self.text


@dataclass
class Page:
    """A help text. A block is a paragraph (a string), verbatim lines (a list), or an Option; a section is a title and
    its blocks."""

    name: str
    purpose: str = ""
    version: str = ""
    usage: str = ""
    examples: list = field(default_factory=list)
    description: list = field(default_factory=list)
    sections: list = field(default_factory=list)
    exit_status: list = field(default_factory=list)
    topics: list = field(default_factory=list)

    @property
    def options(self):
        return [b for _, blocks in self.sections for b in blocks if isinstance(b, Option) and b.name]


OPTION = re.compile(r"^  (?:-(\w), |    )?--([\w-]+)(?: (\S+))?(?:  +(\S.*))?$")
OPERAND = re.compile(r"^  ([A-Z][A-Z]+|\([\w ]+\))  +(\S.*)$")


def parse_blocks(lines):
    """Divides lines into blocks; titles ("Show:") are returned as tuples of one string."""
    blocks, is_joined = [], False
    for line in lines:
        option, operand = OPTION.match(line), OPERAND.match(line)
        if not line.strip():
            is_joined = False
        elif option:
            blocks.append(Option(*(group or "" for group in option.groups())))
        elif operand:
            blocks.append(Option("", "", *operand.groups()))
        elif re.match(r"^ {10,}\S", line) and blocks and isinstance(blocks[-1], Option):
            blocks[-1].text = f"{blocks[-1].text} {line.strip()}".strip()
        elif line.startswith("  "):
            if is_joined and isinstance(blocks[-1], list):
                blocks[-1].append(line)
            else:
                blocks.append([line])
            is_joined = True
        elif re.match(r"^[A-Z][\w ]*:$", line):
            blocks.append((line[:-1],))
        elif is_joined and isinstance(blocks[-1], str):
            blocks[-1] += " " + line
        else:
            blocks.append(line)
            is_joined = True
    return blocks


def take_exit_status(blocks, page):
    """Moves the sentence about the exit status out of the paragraphs."""
    for i, block in enumerate(blocks):
        found = isinstance(block, str) and re.search(r"(?:The )?[Ee]xit status:? (\d .*?)\.?$", block)
        if found:
            page.exit_status = [item.split(" ", 1) for item in re.split(r", (?=\d )", found[1])]
            blocks[i] = block[: found.start()].strip()
    return [block for block in blocks if block]


def run(program, *arguments):
    environment = dict(os.environ, LC_ALL="C.UTF-8", COLUMNS="80")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True, env=environment).stdout


def read_topics(page, program, blocks):
    """The sections of a program with topics: one for each, in the order in which the help lists them."""
    announced = next(b for b in blocks if isinstance(b, str) and "TOPIC is " in b)
    page.topics = re.search(r"TOPIC is (.*?), or an option", announced)[1].split(", ")
    page.description += [b for b in blocks if isinstance(b, str) and b is not announced]
    for topic in page.topics:
        page.sections.append((topic.capitalize(), parse_blocks(run(program, "--help", topic).splitlines())))


def read_options(page, program, blocks):
    """The sections of a program without topics: the groups of its help. Options that only the help about another
    option shows are a group of their own."""
    has_details = any(isinstance(b, Option) and b.name == "help" and b.argument for b in blocks)
    title, sections, hidden = "", [], {}
    for block in blocks:
        if isinstance(block, tuple):
            title = block[0]
            sections.append((title, []))
        elif isinstance(block, Option):
            if not sections:
                sections.append((title, []))
            sections[-1][1].append(block)
        else:
            page.description.append(block)
    queue = [b for _, group in sections for b in group if b.name not in ("", "help", "version")] if has_details else []
    known = {option.name for option in queue}
    while queue:
        option = queue.pop(0)
        shown = parse_blocks(run(program, "--help", option.name).splitlines())
        option.details = [b for b in shown if not isinstance(b, Option)]
        new = [b for b in shown if isinstance(b, Option) and b.name not in known]
        known.update(b.name for b in new)
        hidden.update((b.name, b) for b in new)
        queue += new
    page.sections = sections + ([("Options of some commands", list(hidden.values()))] if hidden else [])


def read_page(program):
    name = os.path.basename(program)
    page = Page(name, version=run(program, "--version").split("(", 1)[1].replace(")", "").strip())
    blocks = take_exit_status(parse_blocks(run(program, "--help").splitlines()), page)
    first = blocks.pop(0)
    if not first.startswith(name + " ") or not first.endswith("."):
        sys.exit(f"{name}: the first sentence of its help is not \"{name} does something.\"")
    page.purpose = first[len(name) + 1 : -1]
    while not (isinstance(blocks[0], str) and blocks[0].startswith("usage: ")):
        page.examples.append(blocks.pop(0))
    page.usage = blocks.pop(0)[len("usage: ") :]
    if any(isinstance(b, str) and "TOPIC is " in b for b in blocks):
        read_topics(page, program, blocks)
    else:
        read_options(page, program, blocks)
    return page


# ---- Man pages ----


def roff(text, is_code=False):
    """Text for groff: no character that it would replace or take as a request. Minus signs of options and ranges are
    kept, hyphens of words are not."""
    text = text.replace("\\", "\\e")
    minus = r"-" if is_code else r"(?<!\w)-|-(?!\w)|(?<=--)[\w-]+"
    text = re.sub(minus, lambda found: found[0].replace("-", "\\-"), text)
    for character, name in (("'", "aq"), ("`", "ga"), ("^", "ha"), ("~", "ti")):
        text = text.replace(character, f"\\({name}")
    text = "".join(c if ord(c) < 128 else f"\\[u{ord(c):04X}]" for c in text)
    return "\\&" + text if text[:1] in (".", "'") else text


def roff_option(option):
    if not option.name:
        return f".I {roff(option.argument)}"
    names = ([f"\\-{option.letter}"] if option.letter else []) + ["\\-\\-" + option.name.replace("-", "\\-")]
    label = ", ".join(f"\\fB{name}\\fR" for name in names)
    return label + (f" \\fI{roff(option.argument, True)}\\fR" if option.argument else "")


def roff_blocks(blocks, request=".PP"):
    """A paragraph macro before each block, verbatim lines indented."""
    lines = []
    for i, block in enumerate(blocks):
        if isinstance(block, Option):
            lines += [".TP", roff_option(block), roff(block.text)]
            if block.details:
                lines += roff_blocks(block.details, ".IP")
        elif isinstance(block, list):
            margin = min(len(line) - len(line.lstrip()) for line in block)
            lines += [request, ".nf", *("    " + roff(line[margin:], True) for line in block), ".fi"]
        else:
            lines += [request, roff(block)]
    return lines


def wrap(line, width=78):
    """The source lines of a paragraph. A request stays on one line."""
    if line.startswith(".") or len(line) <= width:
        return [line]
    lines, current = [], ""
    for word in line.split(" "):
        if current and len(current) + 1 + len(word) > width:
            lines.append(current)
            current = word if word[:1] not in (".", "'") else "\\&" + word
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current]


def man_page(page, others):
    date = datetime.datetime.strptime(os.environ["MILLRACE_DATE"], "%d %b %Y").date()
    lines = [f'.TH {roff(page.name.upper(), True)} 1 "{date}" "{page.version}" "User Commands"']
    lines += [".SH NAME", f"{roff(page.name, True)} \\- {roff(page.purpose)}"]
    words = page.usage.split(" ")
    lines += [".SH SYNOPSIS", f"\\fB{roff(words[0], True)}\\fR {roff(' '.join(words[1:]), True)}"]
    lines += [".SH DESCRIPTION", f".B {roff(page.name, True)}", roff(page.purpose) + "."]
    lines += roff_blocks(page.description) + [".SH OPTIONS"]
    for title, blocks in page.sections:
        lines += ([f".SS {roff(title)}"] if title else []) + roff_blocks(blocks)
    lines += [".SH EXIT STATUS"]
    for code, meaning in page.exit_status:
        lines += [".TP", f".B {code}", roff(meaning)]
    lines += [".SH EXAMPLES", *roff_blocks(page.examples), ".SH SEE ALSO"]
    lines += [f".BR {roff(name, True)} (1){',' * (name != others[-1])}" for name in others]
    # A paragraph macro directly after a heading has no effect.
    text = [line for i, line in enumerate(lines) if not (line == ".PP" and lines[i - 1].startswith((".SH", ".SS")))]
    is_verbatim, output = False, []
    for line in text:
        is_verbatim = line == ".nf" or (is_verbatim and line != ".fi")
        output += [line] if is_verbatim else wrap(line)
    return "\n".join(output) + "\n"


# ---- Completions ----


def bash_completion(page):
    function = "_" + page.name.replace("-", "_")
    cases = ""
    for o in page.options:
        words = " ".join(value_choices(page, o))
        command = f"mapfile -t COMPREPLY < <(compgen -W '{words}' -- \"$current\"); return"
        cases += f"    {'|'.join(names_of(o))}) {command} ;;\n" if words else ""
    names = " ".join("--" + o.name for o in page.options)
    return f"""# bash completion of {page.name}. A value without choices, and an operand, is completed as a file name.
{function}()
{{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
    [[ $current == = ]] && current=
    [[ $previous == = ]] && previous=${{COMP_WORDS[COMP_CWORD - 2]}}
    COMPREPLY=()
    case $previous in
{cases}    esac
    [[ $current != -* ]] || mapfile -t COMPREPLY < <(compgen -W '{names}' -- "$current")
}}
complete -o bashdefault -o default -F {function} {page.name}
"""


def zsh_completion(page):
    rows = []
    for o in page.options:
        names = names_of(o)
        value, is_optional = value_name(o)
        summary = re.sub(r"([][\\])", r"\\\1", o.summary).replace("'", "'\\''")
        excluded = "*" if o.is_repeatable else f"({' '.join(names)})" if len(names) > 1 else ""
        choices = value_choices(page, o)
        files = {"DIR": "_files -/", "FILE": "_files"}.get(value, " ")
        action = f"({' '.join(choices)})" if choices else files
        argument = f":{':' * is_optional}{value}:{action}".replace("'", "") if value else ""
        for name in names:
            suffix = "" if not value else "=-" if is_optional and name[1] == "-" else "=" if name[1] == "-" else "+"
            rows.append(f"    '{excluded}{name}{suffix}[{summary}]{argument}' \\")
    return "\n".join([f"#compdef {page.name}", "", "_arguments -s -S \\", *rows, "    '*:file:_files'", ""])


def fish_completion(page):
    lines = [f"# fish completion of {page.name}"]
    for o in page.options:
        value, is_optional = value_name(o)
        choices = value_choices(page, o)
        flags = f"-s {o.letter} " * bool(o.letter) + f"-l {o.name}"
        if choices:
            flags += (" -x" if not is_optional else " -f") + f" -a '{' '.join(choices)}'"
        elif value:
            flags += " -r"
        summary = o.summary.replace("\\", "\\\\").replace("'", "\\'")
        lines.append(f"complete -c {page.name} {flags} -d '{summary}'")
    return "\n".join(lines) + "\n"


def names_of(option):
    return [f"-{option.letter}"] * bool(option.letter) + [f"--{option.name}"]


def value_name(option):
    """The name of the value, plain, and whether it is optional."""
    plain = "value" if option.choices else re.sub(r"[^A-Za-z0-9=/]", "", option.argument)
    return plain, option.argument.startswith("[")


def value_choices(page, option):
    if option.name == "help" and option.argument:
        return [*page.topics, "all"] if page.topics else [o.name for o in page.options]
    return option.choices


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    output, *programs = sys.argv[1:]
    for program in programs:
        page = read_page(program)
        others = sorted(os.path.basename(other) for other in programs if other != program)
        write(f"{output}/man/{page.name}.1", man_page(page, others))
        write(f"{output}/bash/{page.name}", bash_completion(page))
        write(f"{output}/zsh/_{page.name}", zsh_completion(page))
        write(f"{output}/fish/{page.name}.fish", fish_completion(page))


if __name__ == "__main__":
    main()
