from torchtitan.config import ParallelismConfig, TrainingConfig
from torchtitan.trainer import Trainer


def llama3_8b() -> Trainer.Config:
    return Trainer.Config(training=TrainingConfig(local_batch_size=1, seq_len=8192))


def llama3_405b() -> Trainer.Config:
    return Trainer.Config(
        training=TrainingConfig(local_batch_size=2, seq_len=8192),
        parallelism=ParallelismConfig(tensor_parallel_degree=8),
    )
