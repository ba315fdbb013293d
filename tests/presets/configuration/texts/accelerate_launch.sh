#!/bin/bash
#SBATCH --nodes=1
export WANDB_PROJECT=sft
accelerate launch \
    --config_file {folder}/accelerate_zero3.yaml \
    --num_processes 8 \
    trl/scripts/sft.py \
    --model_name_or_path Qwen/Qwen2.5-7B \
    --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 4 \
    --gradient_checkpointing \
    --bf16 \
    --output_dir out
