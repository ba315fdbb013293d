"""What a step's memory is read with: the caching allocator of a GPU, or storages of fake tensors."""

import functools
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
        self.storages = {}  # by address of a living one: its number, bytes, phase and tensor
        self.numbers = 0
        self.live = self.highest = self.paused = 0
        self.phases = {}  # the highest moment of each
        self.phase = "construction"
        self.snapshot = {}  # number: (bytes, phase, tensor) at the highest moment
        self.snapshot_above = None  # takes them from here on
        self.named = {}  # category by number
        self.table = None  # the shape of a tied table
        self.of_host = set()  # addresses of living storages that are no GPU's memory
        self.recorder = None  # who writes down what happens

    @property
    def phase(self):
        """What runs now, in the caller's words."""
        return self._phase

    @phase.setter
    def phase(self, phase):
        self._phase = phase
        self.phases[phase] = max(self.phases.get(phase, 0), self.live)

    def __enter__(self):
        self._resize = torch.UntypedStorage.resize_
        meter = self

        # FSDP2 frees and gets unsharded parameters by this.
        def resize(storage, size):
            result = meter._resize(storage, size)
            meter.see(storage)
            return result

        torch.UntypedStorage.resize_ = resize
        self._watch_shapes()
        return super().__enter__()

    def __exit__(self, *failure):
        torch.UntypedStorage.resize_ = self._resize
        return super().__exit__(*failure)

    def _watch_shapes(self):
        """DTensor works out global shapes with fake tensors of its own, which nothing allocates."""
        from torch.distributed.tensor._sharding_prop import ShardingPropagator
        for name in ("_propagate_tensor_meta_non_cached", "_propagate_tensor_meta"):
            if hasattr(ShardingPropagator, name):
                setattr(ShardingPropagator, name, self.unseen(getattr(ShardingPropagator, name)))

    def mark(self, owner, name, phase):
        """Says which phase runs while a function of `owner` does; what a loss calls stays its own."""
        function = getattr(owner, name)

        @functools.wraps(function)
        def call(*args, **kwargs):
            before = self.phase
            self.phase = "loss" if before == "loss" else phase
            try:
                return function(*args, **kwargs)
            finally:
                self.phase = before
        setattr(owner, name, call)

    def unseen(self, function):
        """The same function, its tensors not counted."""
        def call(*args, **kwargs):
            self.paused += 1
            try:
                return function(*args, **kwargs)
            finally:
                self.paused -= 1
        return call

    def seen(self, function):
        """The same function, its tensors counted though its caller's are not."""
        def call(*args, **kwargs):
            before, self.paused = self.paused, 0
            try:
                return function(*args, **kwargs)
            finally:
                self.paused = before
        return call

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        # The operators on their local tensors come by.
        if any(t.__name__ in ("DTensor", "AsyncCollectiveTensor") for t in types):
            return NotImplemented
        # It gives the tensor that it was given, of which fake tensors make another.
        if function is torch.ops._c10d_functional.wait_tensor.default:
            return args[0]
        if self.adds_gradients_of_table(function, args):
            function = torch.ops.aten.add_.Tensor
        result = function(*args, **(kwargs or {}))
        if not self.paused:
            for leaf in tree_leaves(result):
                if isinstance(leaf, torch.Tensor) and leaf.device.type != "meta":
                    self.see(leaf.untyped_storage(), function, leaf)
            if self.recorder:
                self.recorder.ran(function, args, kwargs or {}, result)
        return result

    def adds_gradients_of_table(self, function, args):
        """Autograd adds the two gradients of a tied table in place, which it does not where a mode sees its tensors
        (PyTorch torch/csrc/autograd/input_buffer.cpp can_accumulate_inplace)."""
        return (self.table and function is torch.ops.aten.add.Tensor and not torch.is_grad_enabled()
                and all(getattr(term, "shape", None) == self.table for term in args))

    def see(self, storage, function=None, tensor=None):
        key = storage._cdata
        if key in self.of_host:
            return
        if key not in self.storages:
            self.numbers += 1
            what = (str(function), str(tensor.dtype), tuple(tensor.shape)) if function else None
            self.storages[key] = (self.numbers, 0, self.phase, what)
            weakref.finalize(storage, self.forget, key)
        number, before, phase, what = self.storages[key]
        size = -(-storage.size() // UNIT) * UNIT
        if size == before:
            return
        self.storages[key] = (number, size, phase, what)
        if self.recorder:
            self.recorder.resized(number, before, size, what)
        self.live += size - before
        self.phases[self.phase] = max(self.phases.get(self.phase, 0), self.live)
        if self.live > self.highest:
            self.highest = self.live
            if self.snapshot_above is not None and self.live >= self.snapshot_above:
                self.snapshot = {v[0]: v[1:] for v in self.storages.values()}

    def leave_to_host(self, storage):
        """Whatever is written into it later, it is not the GPU's."""
        self.of_host.add(storage._cdata)
        weakref.finalize(storage, self.of_host.discard, storage._cdata)

    def forget(self, key):
        number, size, _, what = self.storages.pop(key)
        if self.recorder:
            self.recorder.resized(number, size, 0, what)
        self.live -= size

    def start_step(self, last):
        """Forgets what was highest before. Of the last step, what lives at its highest is kept."""
        if last:
            self.snapshot_above = self.highest * 0.97
        self.highest = self.live
        self.phases = {}

    def name(self, category, tensors):
        """Says what living tensors are, for categories()."""
        tensors = list(tensors)
        for tensor in tensors:
            tensor = getattr(tensor, "_local_tensor", tensor)  # of a DTensor
            found = self.storages.get(tensor.untyped_storage()._cdata)
            if found:
                self.named.setdefault(found[0], category)
        if self.recorder:
            self.recorder.name(category, tensors)

    def categories(self):
        """Bytes at the last step's highest moment: what was named, the rest by the phase that made it."""
        result = {}
        for number, (size, phase, _) in self.snapshot.items():
            category = self.named.get(number, f"made in {phase}")
            result[category] = result.get(category, 0) + size
        return {category: size for category, size in sorted(result.items()) if size}

    def tensors(self, most=12):
        """The largest of the same moment, equal ones together: bytes, count, phase, operator, type, shape."""
        groups = {}
        for size, phase, what in self.snapshot.values():
            found = groups.setdefault((phase, what), [0, 0])
            found[0] += size
            found[1] += 1
        largest = sorted(groups.items(), key=lambda item: -item[1][0])[:most]
        return [[*sums, phase, *(what or ("resize_", "", ()))] for (phase, what), sums in largest]

    def now(self):
        return self.live

    def peak(self):
        return self.highest

    def reserved_peak(self):
        return None
