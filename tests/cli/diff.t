NAME: the same input twice
RUN: printf '\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-31\nGPU1\tNV18\t X \t0-31\n' >$TMP/a.txt; topotune diff $TMP/a.txt $TMP/a.txt
EXPECT: before:
EXPECT: after:
EXPECT: no differences

NAME: fewer NVLinks and another affinity
RUN: printf '\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-31\nGPU1\tNV18\t X \t0-31\n' >$TMP/a.txt; sed 's/NV18/NV16/; s/0-31/0-15/' $TMP/a.txt >$TMP/b.txt; topotune diff $TMP/a.txt $TMP/b.txt
EXPECT: GPUs
EXPECT: CPUs: 0-31 → 0-15
EXPECT: Paths
EXPECT: NVL (18 links) → NVL (16 links)
EXPECT: differences in

NAME: a GPU is gone
RUN: printf '\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n' >$TMP/a.txt; printf '\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-3\t0\n' | topotune diff $TMP/a.txt - --json --kind nvidia-smi-topo
EXPECT: "schema": "topotune.diff/1"
EXPECT: "identical": false
EXPECT: "kind": "removed"
EXPECT: "subject": "GPU1"

NAME: an input that cannot be read
RUN: topotune diff $TMP/none $TMP/none
STATUS: 3
STDERR: none

NAME: standard input twice
RUN: topotune diff - -
STATUS: 64

NAME: one input only
RUN: topotune diff $TMP/a
STATUS: 64
