# The verb on RDMA ports of a folder (tests/gdr/machine.sh), with a verbs module and a CUDA driver that need no hardware
# (TOPOTUNE_MODULES, LD_LIBRARY_PATH).

NAME: writes and reads of each port with itself and with its neighbour
RUN: bash $DATA/gdr/machine.sh $TMP/m && TOPOTUNE_MODULES=$FAKE_MODULES topotune --sysroot $TMP/m bench gdr --memory host --bytes 64K --time 0.02 --fail-on error
EXPECT: gdr.latency.write      mlx5_0:1 -> mlx5_0:1 memory host 8 B
EXPECT: verified
EXPECT: gdr.write              mlx5_0:1 -> mlx5_0:1 memory host 64 KiB
EXPECT: gdr.read               mlx5_1:1 -> mlx5_1:1 memory host 64 KiB
EXPECT: gdr.read               mlx5_0:1 -> mlx5_1:1 memory host 64 KiB
NOT: mlx5_1:1 -> mlx5_0:1
NOT: mlx5_2

NAME: GPU memory by DMA-BUF
RUN: bash $DATA/gdr/machine.sh $TMP/m && TOPOTUNE_MODULES=$FAKE_MODULES topotune --sysroot $TMP/m bench gdr mlx5_0 GPU1 --memory gpu --bytes 64K --time 0.02 --json | grep -o '"registered_by":"dma-buf"' | wc -l
EXPECT: 4

NAME: without DMA-BUF in the NIC's driver by nvidia-peermem, and the result says why
RUN: bash $DATA/gdr/machine.sh $TMP/m && TOPOTUNE_MODULES=$FAKE_MODULES FAKE_VERBS_FAULT=no-dmabuf topotune --sysroot $TMP/m bench gdr mlx5_0 GPU1 --memory gpu --bytes 64K --time 0.02 --json
EXPECT: "registered_by"
EXPECT: "peermem"
EXPECT: ibv_reg_dmabuf_mr: Operation not supported (errno 95)

NAME: neither: both steps and the remedy
RUN: bash $DATA/gdr/machine.sh $TMP/m && TOPOTUNE_MODULES=$FAKE_MODULES FAKE_VERBS_FAULT="no-dmabuf no-peermem" topotune --sysroot $TMP/m bench gdr mlx5_0 0 --memory gpu
STATUS: 2
EXPECT: failed: ibv_reg_mr: ibv_reg_dmabuf_mr: Operation not supported (errno 95); then ibv_reg_mr: Bad address (errno 14); remedy: no path by DMA-BUF, and nvidia-peermem is not loaded: modprobe nvidia-peermem (GDR01)

NAME: the driver exports no DMA-BUF
RUN: bash $DATA/gdr/machine.sh $TMP/m && TOPOTUNE_MODULES=$FAKE_MODULES FAKE_CUDA_FAULT=no-dmabuf FAKE_VERBS_FAULT=no-peermem topotune --sysroot $TMP/m bench gdr mlx5_0 0 --memory gpu
STATUS: 2
EXPECT: dma-buf export: cuMemGetHandleForAddressRange: fake error

NAME: locked memory
RUN: bash $DATA/gdr/machine.sh $TMP/m && TOPOTUNE_MODULES=$FAKE_MODULES FAKE_VERBS_FAULT=memlock topotune --sysroot $TMP/m bench gdr mlx5_0 --memory host
STATUS: 2
EXPECT: failed: ibv_reg_mr: Cannot allocate memory (errno 12); remedy: raise the limit of locked memory: ulimit -l unlimited (KERN01)

NAME: wrong data are an error
RUN: bash $DATA/gdr/machine.sh $TMP/m && TOPOTUNE_MODULES=$FAKE_MODULES FAKE_VERBS_FAULT=corrupt topotune --sysroot $TMP/m bench gdr mlx5_0 --memory host --bytes 4K
STATUS: 2
EXPECT: failed: 1 of 8 bytes arrived wrong, the first at 4 (ACS05)

NAME: ports that do not reach each other are no fault of the machine
RUN: bash $DATA/gdr/machine.sh $TMP/m && TOPOTUNE_MODULES=$FAKE_MODULES FAKE_VERBS_FAULT=apart topotune --sysroot $TMP/m bench gdr --memory host --bytes 64K --time 0.02 --fail-on error
EXPECT: mlx5_0:1 -> mlx5_1:1 memory host
EXPECT: waived: the ports do not reach each other: connect: ibv_modify_qp to RTR: Connection timed out

NAME: nothing completes
RUN: bash $DATA/gdr/machine.sh $TMP/m && TOPOTUNE_MODULES=$FAKE_MODULES FAKE_VERBS_FAULT=rnr topotune --sysroot $TMP/m bench gdr mlx5_0 --memory host
STATUS: 2
EXPECT: failed: completion: transport retry counter exceeded (status 12); remedy: nothing answered

NAME: no right to the devices: not measured
RUN: bash $DATA/gdr/machine.sh $TMP/m && TOPOTUNE_MODULES=$FAKE_MODULES FAKE_VERBS_FAULT=denied topotune --sysroot $TMP/m bench gdr --memory host
STATUS: 3
EXPECT: waived: open: ibv_open_device: Permission denied (errno 13); remedy: no right to /dev/infiniband/uverbs*

NAME: a kernel without RDMA
RUN: bash $DATA/gdr/machine.sh $TMP/m && TOPOTUNE_MODULES=$FAKE_MODULES FAKE_VERBS_FAULT=no-devices topotune --sysroot $TMP/m bench gdr --memory host
STATUS: 3
EXPECT: waived: devices: ibv_get_device_list: Function not implemented (errno 38); remedy: the kernel has no RDMA

NAME: no port that was named
RUN: bash $DATA/gdr/machine.sh $TMP/m && TOPOTUNE_MODULES=$FAKE_MODULES topotune --sysroot $TMP/m bench gdr mlx5_2
STATUS: 3
EXPECT: waived: no active RDMA port among those named: mlx5_0:1 ACTIVE, mlx5_1:1 ACTIVE, mlx5_2:1 DOWN

NAME: no RDMA device
RUN: mkdir -p $TMP/m/sys/class && TOPOTUNE_MODULES=$FAKE_MODULES topotune --sysroot $TMP/m bench gdr
STATUS: 3
EXPECT: waived: no RDMA device on this machine

NAME: no module beside the program
RUN: bash $DATA/gdr/machine.sh $TMP/m && mkdir $TMP/none && TOPOTUNE_MODULES=$TMP/none topotune --sysroot $TMP/m bench gdr --memory host
STATUS: 3
EXPECT: waived: libtopotune-verbs.so

NAME: a size that is none
RUN: topotune bench gdr --bytes 64X
STATUS: 64
STDERR: bench gdr: '64X' is no size

NAME: a memory that is none
RUN: topotune bench gdr --memory disk
STATUS: 64
STDERR: --memory

NAME: what was named and is not there is said, the rest is measured
RUN: bash $DATA/gdr/machine.sh $TMP/m && TOPOTUNE_MODULES=$FAKE_MODULES topotune --sysroot $TMP/m bench gdr mlx5_0 mlx5_9 GPU1 GPU7 --bytes 64K --time 0.02 --fail-on error
EXPECT: waived: no active RDMA port among those named: mlx5_0:1 ACTIVE
EXPECT: memory GPU7
EXPECT: waived: there is no GPU7 here: CUDA shows 2 GPUs
EXPECT: gdr.read               mlx5_0:1 -> mlx5_0:1 memory host 64 KiB
EXPECT: gdr.read               mlx5_0:1 -> mlx5_0:1 memory GPU1 64 KiB
NOT: memory GPU0
