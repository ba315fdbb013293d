from colossalai.amp import AMP_TYPE

BATCH_SIZE = 8
SEQ_LEN = 2048
parallel = dict(pipeline=2, tensor=dict(size=4, mode='1d'))
fp16 = dict(mode=AMP_TYPE.NAIVE)
