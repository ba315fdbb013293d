#!/bin/bash
#SBATCH --nodes=16
#SBATCH --ntasks-per-node=8
options=" \
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
    --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm \
    --disable-bias-linear --untie-embeddings-and-output-weights --vocab-size 32000 \
    --num-experts 8 --moe-router-topk 2 --moe-grouped-gemm --moe-token-dispatcher-type alltoall \
    --position-embedding-type rope --attention-dropout 0.0 --hidden-dropout 0.0 \
    --micro-batch-size 1 --global-batch-size 256 --seq-length 4096 --max-position-embeddings 32768 \
    --bf16 --use-distributed-optimizer --sequence-parallel \
    --tensor-model-parallel-size 1 --pipeline-model-parallel-size 4 --expert-model-parallel-size 8 \
    --num-layers-per-virtual-pipeline-stage 4"

srun --container-image nvcr.io/nvidia/pytorch sh -c "python -u /opt/megatron-lm/pretrain_gpt.py ${options}"
