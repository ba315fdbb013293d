python sft.py --model_name_or_path Qwen/Qwen2-0.5B --per_device_train_batch_size 2 \
  --gradient_checkpointing --use_peft --lora_r 32 --lora_alpha 16 --output_dir out
