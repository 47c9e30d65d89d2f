"""PyTorch's counterpart of gpu-kit's measurement of prefetch_to_device: pinned batches, .to(non_blocking=True) on a
separate stream, an event for each. One thread gathers rows into pinned memory, like DataLoader's pin_memory
thread.

    python3 torch_prefetch.py [INDEX]

Prints one line: the result, or the reason why nothing can be measured."""

import queue
import sys
import threading
import time

BATCH, SIDE, ROWS, STEPS, WARM, COPIES, DEPTH = 64, 224, 256, 100, 5, 60, 3


def pinned_batches(torch, rows):
    """Batches in pinned memory, gathered ahead by a thread. Batches in `done` are reused."""
    ready, done = queue.Queue(), queue.Queue()
    for _ in range(DEPTH + 1):
        done.put((torch.empty(BATCH, SIDE, SIDE, 3, pin_memory=True), None))

    def gather():
        index = 0
        while True:
            batch, event = done.get()
            if batch is None:
                return
            if event is not None:
                event.synchronize()
            index = (index + 1) % (ROWS // BATCH)
            batch.copy_(rows[index * BATCH : (index + 1) * BATCH])
            ready.put(batch)

    threading.Thread(target=gather, daemon=True).start()
    return ready, done


def time_steps(torch, device, rows, works):
    """Seconds per step; batches are copied ahead on a separate stream."""
    ready, done = pinned_batches(torch, rows)
    stream, scratch = torch.cuda.Stream(device), torch.empty(BATCH, SIDE, SIDE, 3, device=device)

    def copy():
        host = ready.get()
        with torch.cuda.stream(stream):
            there = host.to(device, non_blocking=True)
        event = stream.record_event()
        done.put((host, event))
        return there, event

    coming = [copy() for _ in range(DEPTH)]
    for step in range(STEPS + WARM):
        if step == WARM:
            torch.cuda.synchronize(device)
            begin = time.perf_counter()
        there, event = coming.pop(0)
        torch.cuda.current_stream(device).wait_event(event)
        there.record_stream(torch.cuda.current_stream(device))
        coming.append(copy())
        for _ in range(COPIES if works else 0):
            scratch.copy_(there)
        if works:
            torch.cuda.current_stream(device).synchronize()
    torch.cuda.synchronize(device)
    done.put((None, None))
    return (time.perf_counter() - begin) / STEPS


def main():
    try:
        import torch
    except ImportError:
        print("torch: not installed")
        return
    if not torch.cuda.is_available():
        print("torch: no GPU found")
        return
    device = torch.device("cuda", int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    torch.cuda.set_device(device)
    rows = torch.arange(ROWS * SIDE * SIDE * 3, dtype=torch.float32).reshape(ROWS, SIDE, SIDE, 3)
    alone = time_steps(torch, device, rows, False)
    beside = time_steps(torch, device, rows, True)
    size = BATCH * SIDE * SIDE * 3 * 4
    print(f"torch {torch.__version__}, pinned .to(non_blocking): {size / alone * 1e-9:.2f} GB/s; "
          f"a step with it takes {beside * 1e3:.2f} ms")


main()
