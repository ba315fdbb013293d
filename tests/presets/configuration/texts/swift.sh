NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type full \
    --per_device_train_batch_size 1 --gradient_accumulation_steps 2 --deepspeed zero3 --output_dir out
