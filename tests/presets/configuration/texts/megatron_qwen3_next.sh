#!/bin/bash
MODEL_ARGS=(
    --num-layers 12 --hidden-size 2048 --num-attention-heads 16 --group-query-attention --num-query-groups 2
    --kv-channels 256 --qk-layernorm --attention-output-gate --rotary-percent 0.25 --position-embedding-type rope
    --experimental-attention-variant gated_delta_net --linear-attention-freq "([1]*3+[0]*1)*3"
    --linear-num-key-heads 16 --linear-num-value-heads 32
    --num-experts 512 --moe-router-topk 10 --moe-ffn-hidden-size 512 --moe-grouped-gemm
    --moe-shared-expert-intermediate-size 512 --moe-shared-expert-gate --moe-token-dispatcher-type alltoall
    --swiglu --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights
    --vocab-size 151936 --max-position-embeddings 262144
)
torchrun --nproc-per-node 8 --nnodes 2 pretrain_gpt.py "${MODEL_ARGS[@]}" \
    --tensor-model-parallel-size 2 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1 --sequence-parallel \
    --micro-batch-size 1 --global-batch-size 64 --seq-length 4096 --bf16 --use-distributed-optimizer \
    --attention-dropout 0.0 --hidden-dropout 0.0
