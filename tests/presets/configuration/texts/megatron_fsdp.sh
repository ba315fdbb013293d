torchrun --nproc-per-node=8 --nnodes=2 --node-rank=0 pretrain_gpt.py \
  --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --no-gradient-accumulation-fusion \
  --use-distributed-optimizer --init-model-with-meta-device --ckpt-format fsdp_dtensor \
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 \
  --ffn-hidden-size 14336 --swiglu --disable-bias-linear --untie-embeddings-and-output-weights \
  --normalization RMSNorm --position-embedding-type rope --vocab-size 128256 \
  --hidden-dropout 0 --attention-dropout 0 --bf16 --recompute-activations \
  --micro-batch-size 1 --global-batch-size 128 --seq-length 8192 --max-position-embeddings 8192
