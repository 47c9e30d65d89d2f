"""Pipelines as text and as HTML, for interactive sessions and notebooks."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, List, Tuple

from . import _abi

if TYPE_CHECKING:
    from .dataset import Dataset


class Stage:
    """A source or transformation: its name, its arguments as text, and the stages before it."""

    __slots__ = ("name", "arguments", "inputs")

    def __init__(self, name: str, arguments: str, inputs: Tuple["Stage", ...]) -> None:
        self.name = name
        self.arguments = arguments
        self.inputs = inputs

    def text(self) -> str:
        """ "shuffle(seed=1)"."""
        return f"{self.name}({self.arguments})"

    def has(self, name: str) -> bool:
        """Whether it, or a stage before it, has a name."""
        stages = [self]
        while stages:
            stage = stages.pop()
            if stage.name == name:
                return True
            stages += stage.inputs
        return False


def arguments(*positional: object, **named: object) -> str:
    """The text of arguments; those that are None are left out."""
    parts = [_short(value) for value in positional if value is not None]
    parts += [f"{name}={_short(value)}" for name, value in named.items() if value is not None]
    return ", ".join(parts)


def _short(value: object) -> str:
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _summary(dataset: "Dataset") -> str:
    count = dataset.cardinality()
    number = {_abi.INFINITE: "endless", _abi.CARDINALITY_UNKNOWN: "unknown number of"}.get(count, f"{count:,}")
    specs = ", ".join((f"{spec.name}: " if spec.name else "") + spec.text() for spec in dataset.element_spec)
    return f"{number} element{'' if count == 1 else 's'} of ({specs})"


def _lines(stage: Stage, indent: str) -> List[str]:
    lines: List[str] = []
    while True:
        lines.append(f"{indent}{stage.text()}")
        if len(stage.inputs) != 1:
            break
        stage = stage.inputs[0]
    lines.reverse()
    for i, before in enumerate(reversed(stage.inputs)):
        lines[0:0] = _lines(before, f"{indent}    ") + ([""] if i else [])
    return lines


def as_text(dataset: "Dataset") -> str:
    """A line about the elements, then a line for each stage, source first."""
    return "\n".join([f"Dataset: {_summary(dataset)}", *_lines(dataset._stage, "  ")])


_BOX = (
    "display:inline-block;border:1px solid #8886;border-radius:6px;padding:3px 10px;margin:0;"
    "font:13px ui-monospace,monospace"
)


def _boxes(stage: Stage) -> str:
    chain: List[Stage] = []
    while True:
        chain.append(stage)
        if len(stage.inputs) != 1:
            break
        stage = stage.inputs[0]
    arrow = "<div style='color:#888;line-height:14px;padding-left:18px'>&#8595;</div>"
    parts = []
    if stage.inputs:
        columns = "".join(f"<div style='margin-right:16px'>{_boxes(before)}</div>" for before in stage.inputs)
        parts.append(f"<div style='display:flex;align-items:flex-end;flex-wrap:wrap'>{columns}</div>")
    for item in reversed(chain):
        rest = f"<span style='color:#888'>({html.escape(item.arguments)})</span>"
        parts.append(f"<div style='{_BOX}'><b>{html.escape(item.name)}</b>{rest}</div>")
    return arrow.join(parts)


def as_html(dataset: "Dataset") -> str:
    """The stages as boxes, source first, and a line about the elements."""
    return f"<div>{_boxes(dataset._stage)}<div style='margin-top:6px'>{html.escape(_summary(dataset))}</div></div>"
