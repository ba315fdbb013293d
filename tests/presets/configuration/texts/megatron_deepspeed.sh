deepspeed --num_gpus 8 pretrain_gpt.py --tensor-model-parallel-size 2 --num-layers 24 --hidden-size 2048 \
  --num-attention-heads 16 --micro-batch-size 4 --fp16 --deepspeed --deepspeed_config ds.json --zero-stage 1
