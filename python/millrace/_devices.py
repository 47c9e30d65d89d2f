"""The devices of this process."""
import ctypes

from ._library import library

_PREFIX = "/job:localhost/replica:0/task:0"


class Device:
    """name  in full, such as "/job:localhost/replica:0/task:0/device:CPU:0"
    memory_limit_bytes  TensorFlow's constant for a CPU; 0: not known"""

    def __init__(self, name, device_type, memory_limit_bytes):
        self.name = name
        self.device_type = device_type
        self.memory_limit_bytes = memory_limit_bytes
        self.incarnation = 0

    def __repr__(self):
        return f"_DeviceAttributes({self.name}, {self.device_type}, {self.memory_limit_bytes}, {self.incarnation})"


def list_devices():
    devices = [Device(f"{_PREFIX}/device:CPU:0", "CPU", 256 << 20)]
    handle = ctypes.c_void_p()
    while library.mr_device_open(f"/gpu:{len(devices) - 1}".encode(), ctypes.byref(handle), None) == 0:
        library.mr_device_close(handle)
        devices.append(Device(f"{_PREFIX}/device:GPU:{len(devices) - 1}", "GPU", 0))
    return devices
