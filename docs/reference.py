#!/usr/bin/env python3
"""Writes the API reference: one page for each public header, with a search over all names.

    docs/reference.py OUT HEADER…

A header is read as paragraphs: lines without an empty line between them, which are a comment and the declarations that
it describes. Each declared name is an anchor, and each use of a name links to it. The bodies of macros and of inline
functions are left out. A public declaration whose paragraph has no comment is an error, except for an opaque type, and
after the title of a section, which describes it.
"""
import html
import json
import os
import re
import sys

NAME = re.compile(r"\b(?:mr|MR)_\w+")
SECTION = re.compile(r"/\* ---- (.*?) ----")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# The name that a declaration declares: of a macro, a type, or a function.
DECLARED = [
    re.compile(r"#define (\w+)"),
    re.compile(r"^typedef [^;{]*\(\*(\w+)\)", re.DOTALL),
    re.compile(r"^typedef .*?(\w+);\Z", re.DOTALL),
    re.compile(r"(\w+)\s*\("),
]
OPAQUE = re.compile(r"typedef struct (\w+) \1;")
CONSTANT = re.compile(r"[{,]\s*(MR_\w+)")
DEFINITION = re.compile(r"(\S+(?: ?\S+){0,4}(?<![.:;]))  +(\S.*)")
ATTRIBUTES = re.compile(r"\b(?:MR_API|MR_NODISCARD_|MR_PRINTF_\(\d, \d\)) (?=\w)")
INTERNAL = re.compile(r"#define \w+_\b")
IGNORED = re.compile(r'#(?!define)|#define MILLRACE_\w+_H|extern "C"|}$')

STYLE = """
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #1c2430; background: #fff; display: flex; }
nav { width: 17rem; height: 100vh; position: sticky; top: 0; overflow: auto; background: #f3f5f8; flex: none; }
nav > * { margin: 1rem; } nav ul, main ul { padding-left: 1.2rem; } nav li { list-style: none; margin-left: -1.2rem; }
main { max-width: 68rem; padding: 1rem 2rem 6rem; min-width: 0; }
input { width: 15rem; padding: .4rem; font: inherit; box-sizing: border-box; }
a { color: #0a58a8; text-decoration: none; } a:hover { text-decoration: underline; }
pre, code { font: 13.5px/1.45 ui-monospace, monospace; }
pre { background: #f3f5f8; padding: .7rem; overflow: auto; border-radius: 4px; }
section { border-top: 1px solid #dde3ea; padding-top: .5rem; margin-top: 1.5rem; }
section:has(:target) pre { outline: 2px solid #0a58a8; }
dt { font-weight: 600; } dd { margin: 0 0 .3rem 1.5rem; } i { color: #5b6675; font-style: normal; }
@media (prefers-color-scheme: dark) {
  body { color: #dfe5ec; background: #14181e; } nav, pre { background: #1d232b; } a { color: #7db7f0; }
  section { border-color: #333c47; } i { color: #97a3b1; }
}
"""

SEARCH = """
const input = document.querySelector("input"), found = document.querySelector("#found");
input.oninput = () => {
  const words = input.value.toLowerCase().split(/\\s+/).filter(Boolean);
  const rank = (name) => name.length + (name.includes("_" + words[0]) ? 0 : 100);
  const names = words.length ? Object.keys(NAMES).filter((n) => words.every((w) => n.toLowerCase().includes(w))) : [];
  names.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  found.replaceChildren(...names.slice(0, 40).map((name) => {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = NAMES[name] + "#" + name;
    link.textContent = name;
    item.append(link);
    return item;
  }));
};
input.onkeydown = (event) => { if (event.key === "Enter") found.querySelector("a")?.click(); };
document.onkeydown = (event) => {
  if (event.key !== "/" || document.activeElement === input) return;
  event.preventDefault();
  input.focus();
};
"""


class Paragraph:
    """A comment and its declarations."""

    def __init__(self, line):
        self.line = line
        self.comment = ""
        self.declarations = []


def depth_of(text):
    """Open brackets, outside comments and literals."""
    text = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', "", COMMENT.sub("", text))
    return sum(text.count(c) for c in "({[") - sum(text.count(c) for c in ")}]")


def is_complete(text):
    if text.startswith("#"):
        return not text.rstrip().endswith("\\")
    code = COMMENT.sub("", text).rstrip()
    return "/*" not in code and depth_of(text) == 0 and (code.endswith(";") or code.endswith("}"))


def public_lines(text):
    """The lines of a header without attributes and without what only C++ sees."""
    lines, conditions = [], []
    for line in ATTRIBUTES.sub("", text).split("\n"):
        if line.startswith("#if"):
            conditions.append(line)
        elif line.startswith("#else") and conditions[-1] in ("#ifdef __cplusplus", "#ifndef __cplusplus"):
            conditions[-1] = "#ifdef __cplusplus" if conditions[-1].startswith("#ifndef") else "#ifndef __cplusplus"
        elif line.startswith("#endif"):
            conditions.pop()
        lines.append("#" if "#ifdef __cplusplus" in conditions else line)
    return lines


def parse(lines):
    """The header's opening comment and its paragraphs; a string is the title of a section."""
    intro, items, paragraph, at = "", [], None, 0
    while at < len(lines):
        start, text = at, lines[at]
        at += 1
        if not text.strip() or IGNORED.match(text):
            paragraph = None if not text.strip() else paragraph
            continue
        if text.startswith("/*"):
            while "*/" not in text:
                text += "\n" + lines[at]
                at += 1
            if start == 0:
                intro = text
            elif SECTION.match(text):
                items.append(SECTION.match(text)[1])
                paragraph = None
                if len(text) > len(SECTION.match(text)[0]) + 10:
                    paragraph = Paragraph(start + 1)
                    paragraph.comment = SECTION.sub("/*", text)
                    items.append(paragraph)
            else:  # a comment between declarations starts an entry of its own
                paragraph = Paragraph(start + 1)
                paragraph.comment = text
                items.append(paragraph)
            continue
        while at < len(lines) and not is_complete(text):
            text += "\n" + lines[at]
            at += 1
        if at < len(lines) and re.fullmatch(r" +/\*.*", lines[at]):  # the rest of a comment at the end of the line
            while "*/" not in lines[at]:
                text += "\n" + lines[at]
                at += 1
            text += "\n" + lines[at]
            at += 1
        if paragraph is None:
            paragraph = Paragraph(start + 1)
            items.append(paragraph)
        paragraph.declarations.append(text)
    for item in items:
        if isinstance(item, Paragraph) and all(INTERNAL.match(text) for text in item.declarations):
            item.comment = item.comment if not item.declarations else ""
        if isinstance(item, Paragraph):
            item.declarations = [text for text in item.declarations if not INTERNAL.match(text)]
    return intro, [item for item in items if isinstance(item, str) or item.comment or item.declarations]


def shown(declaration):
    """A declaration without the body of a macro or of an inline function."""
    if declaration.startswith("#define"):
        match = re.match(r"#define \w+\((?:[^()]|\([^)]*\))*\)", declaration)
        if match:
            return match[0]
        return re.sub(r"\s*\\\n\s*", " ", declaration)
    if declaration.startswith("static inline"):
        return declaration[len("static inline "):declaration.index("\n{")] + ";"
    return declaration


def names_of(declaration):
    """The names that a declaration declares, constants of an enum included."""
    text = re.sub(r"\[\[.*?\]\]", "", COMMENT.sub("", declaration)).strip()
    names = []
    for pattern in DECLARED:
        match = pattern.search(text)
        if match:
            names.append(match[1])
            break
    if re.match(r"(typedef )?enum", text):
        names += CONSTANT.findall(text)
    if re.match(r"typedef struct (\w+)", text):
        names.append(re.match(r"typedef struct (\w+)", text)[1])
    return [name for name in dict.fromkeys(names) if NAME.fullmatch(name)]


def is_described(paragraph, previous):
    if paragraph.comment or isinstance(previous, str):
        return True
    return any("/*" in text or OPAQUE.fullmatch(text) for text in paragraph.declarations)


def plain(comment):
    """The text of a comment, without its delimiters."""
    text = re.sub(r"\s*\*/$", "", comment.strip()[2:])
    first, *rest = text.split("\n")
    return "\n".join([first.strip()] + [re.sub(r"^ ?\*? ?", "", line, count=1) for line in rest])


class Page:
    def __init__(self, header, anchors):
        self.header, self.anchors = header, anchors

    def link(self, text):
        """Escaped text in which names are links."""
        def replace(match):
            page = self.anchors.get(match[0])
            return f'<a href="{page}#{match[0]}">{match[0]}</a>' if page else match[0]
        return NAME.sub(replace, html.escape(text, quote=False))

    def code(self, text):
        text = self.link(text)
        return "<pre>" + re.sub(r"/\*.*?\*/", lambda m: f"<i>{m[0]}</i>", text, flags=re.DOTALL) + "</pre>"

    def text(self, text):
        return re.sub(r"`([^`]+)`", r"<code>\1</code>", self.link(text))

    def prose(self, comment):
        """Paragraphs; lines "name  text" as definitions; code and indented lines as they are."""
        out = []
        for block in re.split(r"(```c\n.*?\n```)", plain(comment), flags=re.DOTALL):
            if block.startswith("```"):
                out.append(self.code(block[5:-4]))
                continue
            for part in re.split(r"\n\s*\n", block.strip("\n")):
                out.append(self.part(part))
        return "".join(out)

    def part(self, part):
        """One paragraph. A line "name  text" starts a definition, which indented lines continue."""
        lines = part.split("\n")
        if all(line.startswith("  ") for line in lines):
            return self.code("\n".join(line[2:] for line in lines))
        out, kind = "", ""
        for line in lines:
            definition = DEFINITION.match(line)
            if definition:
                out += {"": "<dl>", "p": "</p><dl>", "dd": "</dd>"}[kind]
                out += f"<dt><code>{self.link(definition[1])}</code></dt><dd>{self.text(definition[2])}"
                kind = "dd"
            elif kind == "p" or kind == "dd" and line.startswith(" "):
                out += "\n" + self.text(line.strip())
            else:
                out += ("</dd></dl>" if kind else "") + "<p>" + self.text(line.strip())
                kind = "p"
        return out + {"": "", "p": "</p>", "dd": "</dd></dl>"}[kind]

    def paragraph(self, paragraph):
        ids = [name for text in paragraph.declarations for name in names_of(text)]
        spans = "".join(f'<span id="{name}"></span>' for name in ids if self.anchors.get(name) == self.file())
        text = "\n".join(shown(text) for text in paragraph.declarations)
        code = self.code(text) if text else ""
        return f"<section>{spans}{code}{self.prose(paragraph.comment) if paragraph.comment else ''}</section>"

    def file(self):
        return self.header.replace(".h", ".html")


def frame(title, body, pages):
    menu = "".join(f'<li><a href="{page.file()}">{page.header}</a></li>' for page in pages)
    return (f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
            '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="style.css"><nav>'
            '<h3><a href="index.html">millrace</a></h3><input type="search" placeholder="Search names ( / )" '
            f'aria-label="Search names" autocomplete="off"><ul id="found"></ul><ul>{menu}</ul></nav>'
            f'<main>{body}</main><script src="search.js"></script></html>\n')


def write(directory, name, text):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        file.write(text)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    directory, paths = sys.argv[1], sys.argv[2:]
    os.makedirs(directory, exist_ok=True)
    anchors, contents, faults = {}, [], []
    for path in sorted(paths, key=os.path.basename):
        with open(path, encoding="utf-8") as file:
            intro, items = parse(public_lines(file.read()))
        page = Page(os.path.basename(path), anchors)
        contents.append((page, intro, items))
        for previous, item in zip([None] + items, items):
            if isinstance(item, str):
                continue
            names = [name for text in item.declarations for name in names_of(text)]
            for name in names:
                anchors.setdefault(name, page.file())
            if names and not is_described(item, previous):
                faults.append(f"{path}:{item.line}: {names[0]}: no comment")
    pages = [page for page, _, _ in contents]
    rows = ""
    for page, intro, items in contents:
        body = f"<h1>&lt;millrace/{page.header}&gt;</h1>" + (page.prose(intro) if intro else "")
        body += "".join(f"<h2>{html.escape(i)}</h2>" if isinstance(i, str) else page.paragraph(i) for i in items)
        write(directory, page.file(), frame(page.header, body, pages))
        summary = page.text(plain(intro).split("\n")[0])
        rows += f'<dt><a href="{page.file()}">{page.header}</a></dt><dd>{summary}</dd>'
    write(directory, "index.html", frame("millrace", f"<h1>millrace: API reference</h1><dl>{rows}</dl>", pages))
    write(directory, "style.css", STYLE)
    write(directory, "search.js", f"const NAMES = {json.dumps(anchors, sort_keys=True)};\n{SEARCH}")
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
