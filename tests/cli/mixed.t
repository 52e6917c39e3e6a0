# `bench mixed` and `bench levels` without GPUs and without MPI: what is refused, and how.

NAME: a profile that is none
RUN: topotune bench mixed --profile dense
STATUS: 3
STDERR: topotune: dense: cannot read: No such file or directory
STDERR: hint: known profiles are dense-ddp fsdp moe

NAME: a bad line of a profile is named
RUN: printf 'topotune mixed profile 1\nname x\nstream a op=dance bytes=1M every=1s\n' > own.profile; topotune bench mixed --profile own.profile
STATUS: 3
STDERR: topotune: own.profile:3: 'dance' is no operation; known are all_reduce

NAME: not a profile at all
RUN: echo hello > own.profile; topotune bench mixed --profile own.profile
STATUS: 3
STDERR: topotune: own.profile:1: the first line is not 'topotune mixed profile 1'

NAME: a word that is no GPU
RUN: topotune bench mixed all_reduce
STATUS: 64
STDERR: topotune: bench mixed: 'all_reduce' is no GPU

NAME: no NCCL
RUN: TOPOTUNE_NCCL_LIBRARY=/nowhere/libnccl.so.2 topotune bench mixed
STATUS: 3
EXPECT: waived: /nowhere/libnccl.so.2: not found

NAME: levels without a training step
RUN: topotune bench levels
STATUS: 64
STDERR: topotune: bench levels: which training step?
STDERR: hint: --train

NAME: a training step that cannot run here is waived, and nothing is claimed
RUN: TOPOTUNE_NCCL_LIBRARY=/nowhere/libnccl.so.2 topotune bench levels --train 'echo this step needs PyTorch; exit 3'
STATUS: 3
EXPECT: 1 collective  unknown: /nowhere/libnccl.so.2: not found
EXPECT: 2 step        unknown: this step needs PyTorch
EXPECT: info: level unknown: too little was measured to name a level

NAME: a training step that fails is an error with its last words
RUN: TOPOTUNE_NCCL_LIBRARY=/nowhere/libnccl.so.2 topotune bench levels --train 'echo out of memory; exit 7'
STATUS: 2
EXPECT: 2 step        unknown: --train ended with status 7: out of memory

NAME: a training step that hangs is ended
RUN: TOPOTUNE_NCCL_LIBRARY=/nowhere/libnccl.so.2 topotune bench levels --train 'sleep 100' --train-limit 1
STATUS: 2
EXPECT: 2 step        unknown: --train: did not end within 1 s

NAME: a bad line of the steps is named
RUN: TOPOTUNE_NCCL_LIBRARY=/nowhere/libnccl.so.2 topotune bench levels --train 'printf "{\"schema\":\"topotune.step/1\",\"rank\":0,\"ranks\":1}\n{\"step\":0}\n" > $TOPOTUNE_STEP_LOG.0'
STATUS: 2
EXPECT: unknown: step.0:2: a step has no 'seconds'

NAME: the level that loses is named, with its evidence
RUN: printf '%s\n' '{"schema":"topotune.step/1","kind":"ddp","op":"all_reduce","framework":"own","backend":"none","rank":0,"ranks":1}' > s; for i in 0 1 2 3 4 5; do printf '{"step":%s,"seconds":0.1,"compute_seconds":0.05,"dataloader_seconds":0.04,"exposed_communication_seconds":0.001}\n' $i >> s; done; TOPOTUNE_NCCL_LIBRARY=/nowhere/libnccl.so.2 topotune bench levels --train 'cp s $TOPOTUNE_STEP_LOG.0'
STATUS: 1
EXPECT: warn: level profile: the data loader takes 40 of 100 ms a step (40 %)
EXPECT: info: unknown: the collective alone: /nowhere/libnccl.so.2: not found
