#!/bin/bash
MODEL=meta-llama/Llama-2-7b-hf
torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend c10d train.py \
    --model_name_or_path $MODEL \
    --data_path ./alpaca_data.json \
    --bf16 True \
    --output_dir out \
    --per_device_train_batch_size 4 \
    --gradient_accumulation_steps 8 \
    --save_strategy "steps" \
    --fsdp "full_shard auto_wrap" \
    --fsdp_transformer_layer_cls_to_wrap 'LlamaDecoderLayer' \
    --tf32 True
