"""make_traces.py FOLDER: the traces that stand beside it, by PyTorch on a CPU, and a memory snapshot that no device wrote.

    cpu_step.json          torch.profiler of three steps of a small decoder: operators, no kernels
    cpu_ddp.json           rank 0 of two that train it with DDP over Gloo
    snapshot_PROTOCOL.pickle   the dictionary that torch.cuda.memory._snapshot documents, filled in by hand
"""
import json
import multiprocessing
import os
import pathlib
import pickle
import sys


class Decoder:
    """A tiny Llama in torch.nn, of one class so that it can be made in each process."""

    @staticmethod
    def make(torch):
        nn, f = torch.nn, torch.nn.functional

        class Layer(nn.Module):
            def __init__(self, h):
                super().__init__()
                self.n1, self.n2 = nn.RMSNorm(h), nn.RMSNorm(h)
                self.qkv, self.o = nn.Linear(h, 3 * h, bias=False), nn.Linear(h, h, bias=False)
                self.up, self.down = nn.Linear(h, 4 * h, bias=False), nn.Linear(4 * h, h, bias=False)

            def forward(self, x):
                b, s, h = x.shape
                q, k, v = self.qkv(self.n1(x)).view(b, s, 3, 4, h // 4).permute(2, 0, 3, 1, 4)
                a = f.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.o(a.transpose(1, 2).reshape(b, s, h))
                return x + self.down(f.silu(self.up(self.n2(x))))

        h, vocabulary = 64, 512
        return nn.Sequential(nn.Embedding(vocabulary, h), Layer(h), nn.RMSNorm(h),
                             nn.Linear(h, vocabulary, bias=False))


def trim(path):
    """Keeps the fields that a reader of the trace can use: the file is small enough to commit."""
    trace = json.loads(path.read_text())
    kept = []
    for event in trace["traceEvents"]:
        if event.get("ph") == "X" and event.get("cat") in ("cpu_op", "user_annotation", "gpu_user_annotation"):
            wanted = ("Collective name", "Group size", "In msg nelems", "Out msg nelems", "dtype",
                      "Process Group Description", "Process Group Name")
            arguments = {k: v for k, v in event.get("args", {}).items() if k in wanted}
            kept.append({k: event[k] for k in ("ph", "cat", "name", "pid", "tid", "ts", "dur")} |
                        ({"args": arguments} if arguments else {}))
    trace["traceEvents"] = kept
    for name in ("deviceProperties", "traceName", "host_name"):
        trace.pop(name, None)
    path.write_text(json.dumps(trace, separators=(",", ":")) + "\n")


def profile(rank, world, path):
    import torch
    import torch.distributed
    from torch.profiler import ProfilerActivity, schedule

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Decoder.make(torch)
    if world > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533")
        torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())

    def ready(profiler):
        if rank == 0:
            profiler.export_chrome_trace(str(path))

    steps = 3 if world == 1 else 2
    with torch.profiler.profile(activities=[ProfilerActivity.CPU],
                                schedule=schedule(wait=0, warmup=1, active=steps), on_trace_ready=ready) as profiler:
        for _ in range(steps + 1):
            tokens = torch.randint(512, (2, 129))
            logits = model(tokens[:, :-1])
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    if world > 1:
        torch.distributed.destroy_process_group()


def snapshot():
    """Three weights and their moments stay; a step makes two activations and a gradient, and frees them."""
    def frames(name, line, file="/home/user/train.py"):
        return [{"name": "empty", "filename": "??", "line": 0}, {"name": name, "filename": file, "line": line}]

    mib, base = 1 << 20, 0x7f0000000000
    blocks, events, at = [], [], base
    for index, (name, line) in enumerate([("init_weights", 12)] * 3 + [("adam", 40)] * 3):
        blocks.append({"address": at, "size": 4 * mib, "requested_size": 4 * mib, "state": "active_allocated",
                       "frames": frames(name, line)})
        events.append({"action": "alloc", "addr": at, "size": 4 * mib, "stream": 0, "time_us": index,
                       "frames": frames(name, line)})
        at += 4 * mib
    free = at
    for step in range(2):
        for place, (name, size) in enumerate([("forward", 2 * mib), ("forward", 2 * mib), ("backward", 4 * mib)]):
            events.append({"action": "alloc", "addr": free + place * 4 * mib, "size": size, "stream": 0,
                           "frames": frames(name, 20 + place)})
        for place, size in enumerate([2 * mib, 2 * mib, 4 * mib]):
            for action in ("free_requested", "free_completed"):
                events.append({"action": action, "addr": free + place * 4 * mib, "size": size, "stream": 0,
                               "frames": []})
    blocks.append({"address": free, "size": 12 * mib, "requested_size": 0, "state": "inactive", "frames": []})
    segment = {"device": 0, "address": base, "total_size": 36 * mib, "allocated_size": 24 * mib,
               "active_size": 24 * mib, "requested_size": 24 * mib, "stream": 0, "segment_type": "large",
               "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks}
    return {"segments": [segment], "device_traces": [events],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                                   "garbage_collection_threshold": 0.0, "expandable_segments": False,
                                   "roundup_power2_divisions": {"1": 0, "64": 1 << 40}}}


def main():
    folder = pathlib.Path(sys.argv[1])
    for protocol in (2, 3, 4, 5):
        (folder / f"snapshot_{protocol}.pickle").write_bytes(pickle.dumps(snapshot(), protocol))
    profile(0, 1, folder / "cpu_step.json")
    trim(folder / "cpu_step.json")
    ranks = [multiprocessing.get_context("spawn").Process(target=profile, args=(r, 2, folder / "cpu_ddp.json"))
             for r in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    trim(folder / "cpu_ddp.json")


if __name__ == "__main__":
    main()
