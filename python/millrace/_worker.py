"""The program of worker processes: maps the blocks that <millrace/processes.h> describes. Without the library."""
from __future__ import annotations

import mmap
import os
import pickle
import select
import struct
import threading
import traceback
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

_AREA_BYTES = 1 << 36
_ALIGNMENT = 64
_FIELD_WORDS = 15
STRING = 7
# Of one component: name, TensorFlow's number of the dtype, NumPy's dtype, shape or None.
Component = Tuple[Optional[str], int, Any, Optional[Tuple[Optional[int], ...]]]


def _align(offset: int) -> int:
    return (offset + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT


def _is_fixed(component: Component) -> bool:
    return component[1] != STRING and component[3] is not None and None not in component[3]


class _Area:
    """A block's part of the shared memory, mapped for a number of rows and bytes."""

    def __init__(self, memory: int, index: int, rows: int, size: int, inputs: Sequence, outputs: Sequence) -> None:
        self.rows = rows
        self.size = _align(max(size, 1 << 16)) + (1 << 20)
        self.memory = memory
        self.index = index
        self.map = self._map()
        buffer = self.map
        self.header = np.frombuffer(buffer, np.uint64, 8)
        self.table = np.frombuffer(buffer, np.uint64, 4 * rows, 64).reshape(rows, 4)
        offset = _align(64 + 32 * rows)
        self.fields = []
        for components in (inputs, outputs):
            count = sum(not _is_fixed(c) for c in components)
            self.fields.append(np.frombuffer(buffer, np.int64, rows * count * _FIELD_WORDS, offset)
                               .reshape(rows, count, _FIELD_WORDS))  # fmt: skip
            offset = _align(offset + rows * count * _FIELD_WORDS * 8)
        self.arrays: List[List[Any]] = []
        for components in (inputs, outputs):
            arrays: List[Any] = []
            for component in components:
                if not _is_fixed(component):
                    arrays.append(None)
                    continue
                _, _, dtype, shape = component
                count = rows * int(np.prod(shape, dtype=np.int64))
                arrays.append(np.frombuffer(buffer, dtype, count, offset).reshape((rows, *shape)))
                offset = _align(offset + count * dtype.itemsize)
            self.arrays.append(arrays)

    def _map(self) -> mmap.mmap:
        return mmap.mmap(self.memory, self.size, mmap.MAP_SHARED, offset=self.index * _AREA_BYTES)

    def write(self, end: int, data: bytes) -> Tuple[int, int]:
        """Appends bytes; returns their offset and the new end."""
        offset = _align(end)
        end = offset + len(data)
        if end > self.size:  # views of the old mapping stay valid: it is the same memory
            self.size = _align(2 * end)
            self.map = self._map()
        self.map[offset:end] = data
        self.header[1] = end
        return offset, end


class Worker:
    """Runs the function for the rows of blocks."""

    def __init__(self, function: Any, names: Any, inputs: Sequence, outputs: Sequence, is_random: bool, pack: Any):
        self.function, self.names, self.is_random, self.pack = function, names, is_random, pack
        self.inputs, self.outputs = inputs, outputs
        self.areas: dict = {}

    def run(self, connection: Any, memory: int) -> None:
        message = bytearray(40)
        while connection.recv_into(message) == 40:
            index, rows_max, rows, first, end = struct.unpack("5Q", message)
            area = self.areas.get(index)
            if area is None or area.rows != rows_max or area.size < end:
                area = self.areas[index] = _Area(memory, index, rows_max, end, self.inputs, self.outputs)
            connection.send(struct.pack("Q", self._map(area, rows, first, end)))

    def _map(self, area: _Area, rows: int, first: int, end: int) -> int:
        header, table, function = area.header, area.table, self.function
        target, output = area.arrays[1][0], self.outputs[0]
        is_plain = (
            self.names is None and not self.is_random and len(self.inputs) == len(self.outputs) == 1
            and area.arrays[0][0] is not None and target is not None and output[3]
        )  # fmt: skip
        for row in range(first, rows):
            header[0] = row
            try:
                if is_plain:
                    value = area.arrays[0][0][row]
                    result = function(value if type(value) is not np.ndarray else value.copy())
                    if type(result) is np.ndarray and result.dtype == output[2] and result.shape == output[3]:
                        target[row] = result
                        continue
                else:
                    result = self._call(area, row)
                end = self._store(area, row, end, self.pack(result))
            except BaseException as exception:
                offset, end = area.write(end, _described(exception))
                table[row, 0], table[row, 1] = 1, offset
        return end

    def _call(self, area: _Area, row: int) -> Any:
        values, variable = [], 0
        for component, array in zip(self.inputs, area.arrays[0]):
            if array is not None:
                value = array[row]
                values.append(value.copy() if type(value) is np.ndarray else value)
                continue
            values.append(_read(area, area.fields[0][row, variable].tolist(), component))
            variable += 1
        extra = ()
        if self.is_random:
            key = [int(area.table[row, 2]), int(area.table[row, 3])]
            extra = (np.random.Generator(np.random.Philox(key=key)),)
        if self.names is not None:
            return self.function(dict(zip(self.names, values)), *extra)
        return self.function(*values, *extra)

    def _store(self, area: _Area, row: int, end: int, arrays: Sequence[np.ndarray]) -> int:
        variable = 0
        for component, array, value in zip(self.outputs, area.arrays[1], arrays):
            if array is not None:
                array[row] = value
                continue
            data = _strings(value) if component[1] == STRING else value.tobytes()
            offset, end = area.write(end, data)
            field = [offset, len(data), value.ndim, *value.shape]
            area.fields[1][row, variable, : len(field)] = field
            variable += 1
        return end


def _read(area: _Area, field: List[int], component: Component) -> Any:
    offset, size, rank = field[:3]
    shape = tuple(field[3 : 3 + rank])
    data = area.map[offset : offset + size]
    if component[1] != STRING:
        value = np.frombuffer(bytearray(data), component[2]).reshape(shape)
        return value if rank else value[()]
    count = int(np.prod(shape, dtype=np.int64))
    at, strings = 8 * count, []
    for length in struct.unpack_from(f"{count}Q", data):
        strings.append(data[at : at + length])
        at += length
    if not rank:
        return strings[0]
    array = np.empty(count, object)
    array[:] = strings
    return array.reshape(shape)


def _strings(value: np.ndarray) -> bytes:
    items = [item.encode() if isinstance(item, str) else bytes(item) for item in value.ravel().tolist()]
    return struct.pack(f"{len(items)}Q", *map(len, items)) + b"".join(items)


def _described(exception: BaseException) -> bytes:
    text = "".join(traceback.format_exception(type(exception), exception, exception.__traceback__))
    try:
        pickled = pickle.dumps(exception)
        pickle.loads(pickled)
    except BaseException:
        pickled = b""
    data = pickle.dumps((pickled, type(exception).__name__, str(exception), text))
    return struct.pack("Q", len(data)) + data


def _watch(connection: Any, parent: int) -> None:
    """Ends this process with the parent, or when the parent closes the connection."""
    poll = select.poll()
    poll.register(connection, getattr(select, "POLLRDHUP", 0x2000))
    try:
        poll.register(os.pidfd_open(parent), select.POLLIN)
    except (AttributeError, OSError):
        pass
    poll.poll()
    os._exit(0)


def main(connection: Any, memory: Any, parent: int, others: Sequence[int], arguments: Tuple) -> None:
    import signal

    # Ctrl-C reaches the process group: the parent ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for descriptor in others:
        try:
            os.close(descriptor)
        except OSError:
            pass
    threading.Thread(target=_watch, args=(connection, parent), daemon=True).start()
    descriptor = memory if isinstance(memory, int) else memory.detach()
    Worker(*arguments).run(connection, descriptor)
    os._exit(0)
