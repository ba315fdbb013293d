"""Runs steps on a GPU: how long they took, what memory, and which kernels."""

import statistics
import sys
import time

import torch
from instruments import CudaMeter

WARM, TIMED = 4, 8  # steps; the first ones compile


class Reading(CudaMeter):
    """What a row has of fake tensors, a GPU does not tell."""

    phases = {}

    def categories(self):
        return {}

    def tensors(self):
        return []


def start_rank(world):
    """This process as the first of so many ranks, on the first GPU; collectives move nothing."""
    from torch.testing._internal.distributed.fake_pg import FakeStore
    torch.cuda.set_device(0)
    torch.distributed.init_process_group("fake", rank=0, world_size=world, store=FakeStore())


def run_steps(step):
    """Seconds of each timed step by the GPU's clock, none waited for, as a training loop runs them, and what the
    counters say after them."""
    began = time.perf_counter()
    for _ in range(WARM):
        step()
    torch.cuda.synchronize()
    print(f"{WARM} steps to warm up: {time.perf_counter() - began:.1f} s", file=sys.stderr)
    torch.cuda.reset_peak_memory_stats()
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(TIMED + 1)]
    ends[0].record()
    for end in ends[1:]:
        step()
        end.record()
    torch.cuda.synchronize()
    return [first.elapsed_time(last) / 1e3 for first, last in zip(ends, ends[1:])], Reading()


def profile(step, path):
    """The kernels of one step, by the time that they took."""
    from torch.profiler import ProfilerActivity
    with torch.profiler.profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        step()
        torch.cuda.synchronize()
    with open(path, "w", encoding="utf-8") as file:
        for event in sorted(profiler.key_averages(), key=lambda event: -event.self_device_time_total):
            if event.self_device_time_total > 0 and event.device_type == torch.autograd.DeviceType.CUDA:
                print(f"{event.self_device_time_total:12.1f} us {event.count:6} {event.key[:200]}", file=file)


def measured_row(row, name, seconds, meter):
    """The row of a tracer, as it was measured instead."""
    row["measured"] |= {"max_reserved_gib": meter.reserved_peak() / 2**30,
                        "alloc_retries": torch.cuda.memory_stats()["num_alloc_retries"]}
    return row | {
        "family": f"gpu-{name}", "source": f"validator/pytorch/measure_{name}.py",
        "device": torch.cuda.get_device_name(),
        "step_time_s": round(statistics.median(seconds), 6), "step_times_s": [round(s, 6) for s in seconds],
        "device_state": {"sm_clock_mhz": torch.cuda.clock_rate(), "power_w": torch.cuda.power_draw() / 1e3},
        "notes": f"The middle of {TIMED} steps after {WARM}. Left out: {meter.leaves_out}."}
