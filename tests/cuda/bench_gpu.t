# The verb on a driver without a GPU (tests/cuda/fake), found by LD_LIBRARY_PATH.

NAME: the two-GPU question
RUN: topotune bench p2p 0 1 --only matrix --bytes 1M --time 0.05
EXPECT: p2p.write.ce           GPU0 -> GPU1 1 MiB
EXPECT: ok, verified
EXPECT: ok: 8 results

NAME: a GPU that is not there
RUN: topotune bench p2p 0 7 --bytes 1M
STATUS: 3
EXPECT: waived: there is no GPU7 here: CUDA shows 2 GPUs

NAME: corrupt data are an error
RUN: FAKE_CUDA_FAULT=corrupt topotune bench p2p --only matrix --bytes 1M --time 0.05
STATUS: 2
EXPECT: failed, not verified: 1 pieces of 16 bytes from GPU0 arrived wrong in GPU1

NAME: a step that hangs is named and what was measured is kept
RUN: FAKE_CUDA_FAULT=hang topotune bench p2p --only matrix --bytes 1M --limit 1
STATUS: 2
EXPECT: did not end within 1 s
STDERR: 'p2p.write.ce src=GPU0 dst=GPU1 bytes=1048576' did not end within 1 s
STDERR: hint:

NAME: no GPU at all
RUN: FAKE_CUDA_GPUS=0 topotune bench host
STATUS: 3
EXPECT: waived: cuInit: fake error (CUDA_ERROR_NO_DEVICE)

NAME: csv
RUN: topotune bench p2p --only matrix --bytes 1M --time 0.05 --csv
EXPECT: p2p.read.sm,src=GPU1 dst=GPU0 bytes=1048576,gbytes_per_s,

NAME: a run against itself as the baseline
RUN: topotune bench p2p --only matrix --bytes 1M --time 0.05 --json -o $TMP/a.json && topotune bench p2p --only matrix --bytes 1M --time 0.05 --baseline $TMP/a.json
EXPECT: ok: 8 results
NOT: than the baseline
