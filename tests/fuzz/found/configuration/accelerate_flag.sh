accelerate launch --use_fsd[31mp --fsdp_sharding_strategy FULL_SHARD --num_processes 8 --mixed_precision bf16 \
  train.py --per_device_train_batch_size 2 --output_dir out
 