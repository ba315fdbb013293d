from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.config import ConfigContainer


def llama3_70b_pretrain_config() -> ConfigContainer:
    """Pre-training of Llama 3 70B on 64 GPUs."""
    cfg = _pretrain_common()
    cfg.model = AutoBridge.from_hf_pretrained("meta-llama/Meta-Llama-3-70B").to_megatron_provider(load_weights=False)
    cfg.tokenizer.tokenizer_model = "meta-llama/Meta-Llama-3-70B"

    seq_length = 8192
    cfg.model.seq_length = seq_length
    cfg.dataset.seq_length = seq_length

    # Parallelism
    cfg.model.tensor_model_parallel_size = 4
    cfg.model.pipeline_model_parallel_size = 4
    cfg.model.pipeline_dtype = torch.bfloat16
    cfg.model.virtual_pipeline_model_parallel_size = 5
    cfg.model.context_parallel_size = 2
    cfg.model.sequence_parallel = True

    cfg.train.train_iters = 1168251
    cfg.train.global_batch_size = 128
    cfg.train.micro_batch_size = 1

    cfg.model.transformer_impl = "transformer_engine"
    cfg.model.attention_backend = None
    cfg.model.cross_entropy_loss_fusion = True
    cfg.model.recompute_granularity = None
    cfg.ddp.grad_reduce_in_fp32 = True
    cfg.optimizer.use_precision_aware_optimizer = False
    return cfg
