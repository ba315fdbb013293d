from megatron.bridge.recipes.llama import llama3_8b_pretrain_config


def mine():
    cfg = llama3_8b_pretrain_config()
    cfg.mixed_precision = "bf16_with_fp8_current_scaling_mixed"
    cfg.model.tensor_model_parallel_size = 1
    return cfg
