#!/bin/bash
torchrun --nproc_per_node 8 --nnodes 1 train.py --output_dir out --batch_size 4 --lr 1e-4 --gradient_checkpointing
