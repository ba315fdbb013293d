"""Megatron-LM's fine-grained offload of activations for fake tensors, which it and Transformer Engine know by class and
device as none of a GPU's. Streams are none here: a copy is done, and what was copied is free, at once. So counts
torch.cuda.max_memory_allocated() too, for which a block that another stream still reads is free."""

import torch


def take_fake_tensors():
    import transformer_engine.pytorch.cpu_offload_v1 as engine
    from megatron.core.pipeline_parallel.fine_grained_activation_offload import ChunkOffloadHandler
    mark = engine.mark_activation_offload

    def mark_activation_offload(*tensors, offload=True):
        for tensor in tensors:
            if not isinstance(tensor, torch.Tensor) or hasattr(tensor, "get_data_tensors"):
                mark(tensor, offload=offload)
            else:
                setattr(tensor, "activation_offloading" if offload else "_TE_do_not_offload", True)

    engine.mark_activation_offload = mark_activation_offload
    ChunkOffloadHandler._can_manage_tensor_for_offload = staticmethod(
        lambda tensor: not isinstance(tensor, torch.nn.Parameter))
    take_whole_storages(ChunkOffloadHandler)


def take_whole_storages(handler):
    """A view of most of a storage is copied as all of it. A fake tensor that is set to a storage, as it is then, keeps
    that for ever (PyTorch 2.15); one strided over it does not."""
    offload = handler.offload

    def of_storage(self, view, **how):
        whole, size = view.untyped_storage().nbytes(), view.element_size()
        most = whole % size == 0 and view.numel() * size >= self.BASE_OFFLOAD_MIN_COVERAGE * whole
        if view.is_contiguous() or not most:
            return offload(self, view, **how)
        *state, _ = offload(self, view.as_strided((whole // size,), (1,), 0), **how)
        return *state, (view.size(), view.stride(), view.storage_offset())

    handler.offload = of_storage
