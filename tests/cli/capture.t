# A sysroot folder stands for the machine, so that the answers are the same everywhere.

NAME: capture needs a file name
RUN: topotune capture
STATUS: 64
STDERR: -o FILE is missing
STDERR: hint: topotune capture -o node.capture

NAME: a capture of a recorded tree has no date and is redacted
RUN: mkdir -p $TMP/root/proc && echo x >$TMP/root/proc/version && topotune --sysroot $TMP/root capture --text -o -
EXPECT: topotune-capture 1
EXPECT: redacted: yes
EXPECT: end
NOT: date:
STDERR: topotune: wrote -:

NAME: --no-redact is said
RUN: mkdir -p $TMP/root && topotune --sysroot $TMP/root capture --no-redact -o $TMP/a.capture && zstd -dc <$TMP/a.capture
EXPECT: redacted: no
STDERR: NOT redacted

NAME: quiet
RUN: mkdir -p $TMP/root && topotune -q --sysroot $TMP/root capture -o $TMP/a.capture && ls $TMP
EXPECT: a.capture
NOT: wrote
NOT: a.capture.

NAME: a folder that is missing
RUN: topotune capture -o $TMP/none/a.capture
STATUS: 3
STDERR: cannot write
NOT: wrote

NAME: a full disk leaves an error
RUN: topotune capture -o /dev/full
STATUS: 3
STDERR: cannot write /dev/full
STDERR: hint: is the disk full

NAME: a sysroot that is none
RUN: topotune capture --sysroot $TMP/none -o $TMP/a.capture
STATUS: 3
STDERR: not a folder

NAME: an exclusion that is not understood stops the capture
RUN: TOPOTUNE_EXCLUDE=mlx5_0 topotune capture -o $TMP/a.capture; s=$?; ls $TMP; exit $s
STATUS: 64
STDERR: TOPOTUNE_EXCLUDE: 'mlx5_0' is not understood
NOT: a.capture

NAME: an older capture is replaced as a whole
RUN: mkdir -p $TMP/root && echo old >$TMP/a.capture && topotune -q --sysroot $TMP/root capture --text -o $TMP/a.capture && head -n 1 $TMP/a.capture && ls $TMP
EXPECT: topotune-capture 1
EXPECT: a.capture
NOT: a.capture.
