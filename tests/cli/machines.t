# Recorded machines. h200x2-vm.show.txt is what `topotune show` printed live on the machine that the capture is of.

NAME: show from the capture equals live show
RUN: topotune show "$DATA/machines/h200x2-vm.capture"
GOLDEN: machines/h200x2-vm.show.txt

NAME: a healthy machine has no finding
RUN: topotune check "$DATA/machines/h200x2-vm.capture"
EXPECT: ok (nothing found)

NAME: JSON of the same machine
RUN: topotune show "$DATA/machines/h200x2-vm.capture" --json
EXPECT: "schema"
EXPECT: topotune.topology/1
EXPECT: "capture"
EXPECT: "10de:2335"

NAME: the guest with two NUMA nodes: every class of path
RUN: topotune show "$DATA/machines/guest.capture"
EXPECT: GPU0   X    PXB   SYS   SYS   PIX   PHB   SYS   SYS
EXPECT: GPU3  SYS   SYS   NODE   X    SYS   SYS   NODE  PHB

NAME: nodes of a fleet
RUN: topotune check "$DATA/machines/guest.capture" "$DATA/machines/guest.capture" "$DATA/machines/guest.capture" --rule FLEET06
EXPECT: 3 nodes
EXPECT: No node differs

NAME: one line for Nagios
RUN: topotune check "$DATA/machines/h200x2-vm.capture" --nagios
EXPECT: TOPOTUNE OK -

NAME: a capture cut in half is refused, not guessed
RUN: head -c 4000 "$DATA/machines/h200x2-vm.capture" > "$TMP/half" && topotune check "$TMP/half"
STATUS: 3
STDERR: topotune:

NAME: an empty file
RUN: : > "$TMP/empty" && topotune show "$TMP/empty"
STATUS: 3
STDERR: empty

NAME: a file that is not there
RUN: topotune show "$TMP/none"
STATUS: 3
STDERR: none

NAME: the wrong kind of file
RUN: echo "hello" > "$TMP/hello" && topotune check "$TMP/hello"
STATUS: 3
STDERR: not recognised

NAME: a sysroot that is no folder
RUN: topotune show --sysroot "$TMP/none"
STATUS: 3
STDERR: not a folder
