"""What a step's memory is read with: the caching allocator of a GPU, or storages of fake tensors."""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

UNIT = 512  # bytes: what the caching allocator rounds a request to


class CudaMeter:
    """torch.cuda's own counters."""

    what = "max_allocated (torch.cuda.max_memory_allocated)"
    leaves_out = "the CUDA context and NCCL's buffers"

    def __enter__(self):
        torch.cuda.reset_peak_memory_stats()
        return self

    def __exit__(self, *_):
        pass

    def now(self):
        return torch.cuda.memory_allocated()

    def peak(self):
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()

    def reserved_peak(self):
        return torch.cuda.max_memory_reserved()


class FakeMeter(TorchDispatchMode):
    """Adds up the storages of fake tensors while they live, each rounded as the caching allocator
    rounds a request. An operator's own temporaries are not seen, as its kernel on a GPU has none
    that it would give a name. PyTorch's own torch.distributed._tools.mem_tracker counts the same to the
    byte, but rounds on a GPU alone and takes each module's hooks for itself."""

    what = "tracked (storages of PyTorch fake tensors, rounded to 512 B; no GPU)"
    leaves_out = "cuBLAS workspaces, what the caching allocator keeps beyond requests, context, NCCL"

    def __init__(self):
        super().__init__()
        self.sizes = {}  # by id of a living storage
        self.live = self.highest = 0

    def __enter__(self):
        self._resize = torch.UntypedStorage.resize_
        meter = self

        # FSDP2 frees and gets unsharded parameters by this.
        def resize(storage, size):
            result = meter._resize(storage, size)
            meter.see(storage)
            return result

        torch.UntypedStorage.resize_ = resize
        return super().__enter__()

    def __exit__(self, *failure):
        torch.UntypedStorage.resize_ = self._resize
        return super().__exit__(*failure)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            leaf = getattr(leaf, "_local_tensor", leaf)  # of a DTensor
            if isinstance(leaf, torch.Tensor) and leaf.device.type != "meta":
                self.see(leaf.untyped_storage())
        return result

    def see(self, storage):
        key = id(storage)
        if key not in self.sizes:
            self.sizes[key] = 0
            weakref.finalize(storage, self.forget, key)
        size = -(-storage.size() // UNIT) * UNIT
        self.live += size - self.sizes[key]
        self.sizes[key] = size
        self.highest = max(self.highest, self.live)

    def forget(self, key):
        self.live -= self.sizes.pop(key)

    def now(self):
        return self.live

    def peak(self):
        return self.highest

    def reserved_peak(self):
        return None
