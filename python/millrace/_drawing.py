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


def _number(dataset: "Dataset") -> str:
    count = dataset.cardinality()
    number = {_abi.INFINITE: "endless", _abi.CARDINALITY_UNKNOWN: "unknown number of"}.get(count, f"{count:,}")
    return f"{number} element{'' if count == 1 else 's'}"


def _summary(dataset: "Dataset") -> str:
    specs = ", ".join((f"{spec.name}: " if spec.name else "") + spec.text() for spec in dataset.element_spec)
    return f"{_number(dataset)} of ({specs})"


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


# Colors that are readable on a light and on a dark background: the notebook's own, and gray with transparency.
_BOX = (
    "display:inline-block;box-sizing:border-box;border:1px solid #8888;border-radius:6px;padding:3px 10px;"
    "background:#8881;max-width:640px;overflow-wrap:anywhere;font:13px/1.4 ui-monospace,Menlo,Consolas,monospace"
)
_ARROW = "<div style='opacity:.6;line-height:15px;height:15px;padding-left:16px;font-size:13px'>&#8595;</div>"


def _boxes(stage: Stage) -> str:
    chain: List[Stage] = []
    while True:
        chain.append(stage)
        if len(stage.inputs) != 1:
            break
        stage = stage.inputs[0]
    first = ""
    if stage.inputs:
        columns = "".join(
            f"<div style='display:flex;flex-direction:column;align-items:flex-start'>{_boxes(before)}{_ARROW}</div>"
            for before in stage.inputs
        )
        first = f"<div style='display:flex;align-items:flex-end;flex-wrap:wrap;gap:16px'>{columns}</div>"
    parts = []
    for item in reversed(chain):
        rest = f"<span style='opacity:.65'>({html.escape(item.arguments)})</span>"
        parts.append(f"<div style='{_BOX}'><b>{html.escape(item.name)}</b>{rest}</div>")
    return first + _ARROW.join(parts)


def _components(dataset: "Dataset") -> str:
    cell = "style='text-align:left;padding:1px 14px 1px 0;border:0'"
    rows = "".join(
        f"<tr style='background:none'><td {cell}><b>{html.escape(spec.name or str(i))}</b></td>"
        f"<td {cell}>{html.escape(spec.text())}</td></tr>"
        for i, spec in enumerate(dataset.element_spec)
    )
    return (
        f"<div style='margin-top:8px;font-size:13px'>{html.escape(_number(dataset))} of</div>"
        f"<table style='margin:2px 0 0 0;border-collapse:collapse;font:13px/1.4 ui-monospace,Menlo,Consolas,monospace'>"
        f"{rows}</table>"
    )


def as_html(dataset: "Dataset") -> str:
    """The stages as boxes, source first, and the components of the elements."""
    return f"<div style='color:inherit'>{_boxes(dataset._stage)}{_components(dataset)}</div>"
