TP=$1
PP=$2
torchrun --nproc_per_node 8 --nnodes $NNODES pretrain_gpt.py --num-layers 24 --hidden-size 2048 \
  --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 --bf16 \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP
