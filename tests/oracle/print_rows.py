"""Prints operator rows (graph/ops/*.c) from TensorFlow's own registry: print_rows.py OPERATOR…

The shape function and the sentence that describes the operator are left to be written."""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import op_def_registry

SETS = {
    "numbertype": "float double int32 uint8 int16 int8 complex64 int64 qint8 quint8 qint32 bfloat16 qint16 quint16 "
    "uint16 complex128 half uint32 uint64",
    "realnumbertype": "float double int32 uint8 int16 int8 int64 bfloat16 uint16 half uint32 uint64",
}


def type_name(number):
    return types_pb2.DataType.Name(number)[3:].lower()


def argument(arg):
    if arg.type_list_attr:
        text = arg.type_list_attr
    else:
        text = arg.type_attr or type_name(arg.type)
        if arg.is_ref:
            text = f"Ref({text})"
    if arg.number_attr:
        text = f"{arg.number_attr} * {text}"
    return f"{arg.name}: {text}"


def shape(value):
    return "unknown" if value.unknown_rank else "[" + ", ".join(str(d.size) for d in value.dim) + "]"


def number(value):
    text = repr(float(value))
    short = f"{value:.9g}"
    for digits in range(1, 10):
        trial = f"{value:.{digits}g}"
        if tf.constant(float(trial)).numpy() == tf.constant(value).numpy():
            short = trial
            break
    return short if len(short) < len(text) else text


def one(kind, value):
    if kind == "string":
        return "'" + value.s.decode() + "'"
    if kind == "int":
        return str(value.i)
    if kind == "float":
        return number(value.f)
    if kind == "bool":
        return "true" if value.b else "false"
    if kind == "type":
        return type_name(value.type)
    if kind == "shape":
        return shape(value.shape)
    if kind == "tensor":
        array = tf.make_ndarray(value.tensor)
        return f"{array.dtype} [" + ", ".join(str(x) for x in array.reshape(-1)) + "]"
    return "?"


def items(kind, values):
    field = kind[0] if kind in ("string", "int", "float", "bool") else kind
    wrapped = []
    for item in getattr(values, field):
        value = tf.compat.v1.AttrValue()
        if field == "shape":
            value.shape.CopyFrom(item)
        else:
            setattr(value, field, item)
        wrapped.append(one(kind, value))
    return wrapped


def allowed(attr, kind):
    if kind == "string":
        return "{" + ", ".join("'" + s.decode() + "'" for s in attr.allowed_values.list.s) + "}"
    names = [type_name(t) for t in attr.allowed_values.list.type]
    for word, members in SETS.items():
        if set(names) == set(members.split()):
            return word
    return "{" + ", ".join(names) + "}"


def attribute(attr):
    is_list = attr.type.startswith("list(")
    kind = attr.type[5:-1] if is_list else attr.type
    text = allowed(attr, kind) if attr.HasField("allowed_values") else kind
    if is_list:
        text = f"list({text})"
    text = f"{attr.name}: {text}"
    if attr.has_minimum:
        text += f" >= {attr.minimum}"
    if attr.HasField("default_value"):
        default = attr.default_value
        text += " = " + ("[" + ", ".join(items(kind, default.list)) + "]" if is_list else one(kind, default))
    return text


def literal(text, indent):
    """A C string, broken at 120 columns."""
    room = 120 - indent - 3
    lines, line = [], ""
    for word in text.split(" "):
        if line and len(line) + len(word) + 1 > room:
            lines.append(line + " ")
            line = word
        else:
            line = f"{line} {word}" if line else word
    lines.append(line)
    return ("\n" + " " * indent).join(f'"{part}"' for part in lines)


def row(op):
    inputs = ", ".join(argument(a) for a in op.input_arg)
    outputs = ", ".join(argument(a) for a in op.output_arg)
    signature = f"{inputs} -> {outputs}".strip()
    attrs = "; ".join(attribute(a) for a in op.attr)
    flags = []
    if op.is_stateful:
        flags.append("MR_OP_STATEFUL")
    if op.is_commutative:
        flags.append("MR_OP_COMMUTATIVE")
    if op.is_aggregate:
        flags.append("MR_OP_AGGREGATE")
    if op.allows_uninitialized_input:
        flags.append("MR_OP_ALLOWS_UNINITIALIZED")
    lines = [f'    {{.name = "{op.name}",', f"     .signature = {literal(signature, 18)},"]
    if attrs:
        lines.append(f"     .attrs = {literal(attrs, 14)},")
    lines.append("     .shape = mr_shape_unknown,")
    if flags:
        lines.append(f"     .flags = {' | '.join(flags)},")
    lines.append('     .doc = ""},')
    return "\n".join(lines)


for name in sys.argv[1:]:
    found = op_def_registry.get(name)
    print(row(found) if found else f"    /* TensorFlow has no operator {name} */")
