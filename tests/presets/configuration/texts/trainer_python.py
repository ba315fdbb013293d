from transformers import Trainer, TrainingArguments

training_args = TrainingArguments(
    output_dir="./out",
    per_device_train_batch_size=4,
    gradient_accumulation_steps=2,  # 8 GPUs: 64
    gradient_checkpointing=True,
    optim="adamw_torch_fused",
    bf16=True,
    fsdp="shard_grad_op auto_wrap",
    learning_rate=2e-5,
)
trainer = Trainer(model=model, args=training_args, train_dataset=train)
trainer.train()
