NAME: NCCL topology XML as JSON
RUN: topotune show "$DATA/fuzz/corpus/nccl_topo_xml/box.xml" --json
EXPECT: "schema": "topotune.topology/1"
EXPECT: "kind": "nccl-topo-xml"
EXPECT: "nic-speed"
STDERR: box.xml:12: warning: speed 99999999999 Mb/s of veth0 is above 10 Tb/s

NAME: quiet says nothing about the input
RUN: topotune show -q "$DATA/fuzz/corpus/nccl_topo_xml/box.xml" --json
NOT: warning: speed

NAME: the kind follows from the content of standard input
RUN: cat "$DATA/fuzz/corpus/hwloc_xml/v2.xml" | topotune show - --json
EXPECT: "kind": "hwloc-xml"
EXPECT: "name": "stdin"

NAME: a cut file is shown and said to be incomplete
RUN: topotune show "$DATA/fuzz/corpus/nccl_topo_xml/cut.xml" --json
EXPECT: "complete": false
STDERR: cut.xml:1: warning: the file ends in the tag <pci>: it is cut off

NAME: what is written for NCCL is read back to the same bytes
RUN: topotune show "$DATA/fuzz/corpus/hwloc_xml/v2.xml" --nccl-xml -
SAME: topotune show "$DATA/fuzz/corpus/hwloc_xml/v2.xml" --nccl-xml - | topotune show - --nccl-xml -

NAME: another kind of file is refused in one line
RUN: echo '<graphs version="1"></graphs>' | topotune show - --json
STATUS: 3
STDERR: topotune: stdin: a graph file of NCCL (NCCL_GRAPH_DUMP_FILE), not a topology

NAME: an empty file is refused
RUN: topotune show /dev/null
STATUS: 3
STDERR: topotune: /dev/null: empty, not recognised as

NAME: a missing file is refused
RUN: topotune show "$TMP/none.xml"
STATUS: 3
STDERR: none.xml: cannot read: No such file or directory

NAME: an unknown kind is wrong usage
RUN: topotune show --kind frobnicate "$DATA/fuzz/corpus/nccl_topo_xml/box.xml"
STATUS: 64
STDERR: --kind frobnicate

NAME: a matrix has no tree for NCCL
RUN: printf '\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n' | topotune show - --nccl-xml -
STATUS: 3
STDERR: no PCI tree is known
