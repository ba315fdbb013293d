#!/bin/bash
NUM_LAYERS=32
HIDDEN=4096
TP_SIZE=${TP_SIZE:-1}
CP_SIZE=2
MBS=1
GBS=128
SEQ_LENGTH=8192
DTYPE_ARGS=(
    "--bf16"
    "--fp8-format hybrid"
    "--fp8-amax-history-len 1024"
    "--fp8-amax-compute-algo max"
    "--fp8-param-gather"
)
MODEL_ARGS="
    --use-mcore-models
    --num-layers $NUM_LAYERS
    --hidden-size $HIDDEN
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --kv-channels 128
    --seq-length $SEQ_LENGTH
    --max-position-embeddings $SEQ_LENGTH
    --position-embedding-type rope
    --rotary-base 1000000
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --swiglu
    --normalization RMSNorm
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --vocab-size 128256
"
torchrun --nproc_per_node 8 --nnodes 1 "pretrain_gpt.py" \
    $MODEL_ARGS \
    --micro-batch-size $MBS --global-batch-size $GBS \
    ${DTYPE_ARGS[@]} \
    --tensor-model-parallel-size $TP_SIZE \
    --context-parallel-size $CP_SIZE \
    --sequence-parallel \
    --use-distributed-optimizer \
    --overlap-grad-reduce --overlap-param-gather
