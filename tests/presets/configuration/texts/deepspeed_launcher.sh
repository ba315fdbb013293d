deepspeed --num_gpus 8 --num_nodes 2 --master_port 29501 finetune.py \
  --deepspeed {folder}/ds_z3_config.json \
  --model_name_or_path bigscience/bloom-7b1 \
  --per_device_train_batch_size 2 --gradient_accumulation_steps 4 \
  --fp16 --gradient_checkpointing true --output_dir out
