"""The wire format of protocol buffers, as far as graphs need it: fields by number."""


def _varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("damaged protocol buffer: a number is incomplete")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """Yields (number, value) for each field: an int, or a memoryview of a string, bytes or message."""
    data = memoryview(data)
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            if size > end - at:
                raise ValueError("damaged protocol buffer: a field is incomplete")
            value = data[at : at + size]
            at += size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            if size > end - at:
                raise ValueError("damaged protocol buffer: a field is incomplete")
            value = int.from_bytes(data[at : at + size], "little")
            at += size
        else:
            raise ValueError(f"damaged protocol buffer: a field has the wire type {kind}")
        if tag >> 3 == 0:
            raise ValueError("damaged protocol buffer: a field has the number 0")
        yield tag >> 3, value


def every(data, number):
    """The values of a repeated field."""
    return [value for n, value in fields(data) if n == number]


def last(data, number, default=b""):
    """The value of a field that occurs once."""
    values = every(data, number)
    return values[-1] if values else default


def text(value):
    """The value of a string field."""
    return bytes(value).decode("utf-8")


def texts(data, number):
    return [text(value) for value in every(data, number)]


def entries(data, number):
    """A map field with string keys, as a dict."""
    return {text(last(entry, 1)): last(entry, 2) for entry in every(data, number)}


def concatenated(data, number):
    """A message field; occurrences are merged, as protocol buffers define it."""
    return b"".join(every(data, number))
