NAME: a wrong value is an error with its place and its correction
RUN: printf 'export NCCL_IB_TIMEOUT=1800\n' > $TMP/a.env; topotune lint $TMP/a.env
STATUS: 2
EXPECT: NCCL23
EXPECT: a.env:1

NAME: a correct file is silent
RUN: printf 'NCCL_DEBUG=WARN\nNCCL_IB_TIMEOUT=22\n' > $TMP/a.env; topotune lint $TMP/a.env --json
EXPECT: "verdict": "ok"

NAME: a warning is 1, and 0 when only errors count
RUN: printf 'NCCL_P2P_DISABLE=1\n' | topotune lint --kind env -
STATUS: 1

NAME: fail on errors only
RUN: printf 'NCCL_P2P_DISABLE=1\n' | topotune lint --kind env --fail-on error -

NAME: the correction is a diff that patch takes
RUN: cd $TMP && printf '#!/bin/sh\nexport NCCL_NVLINK_DISABLE=0\nexport NCCL_BUFFSIZE=4M\ntorchrun x.py\n' > a.sh && { topotune lint --fix a.sh > d; patch -p1 -s < d; cat a.sh; }
EXPECT: export NCCL_BUFFSIZE=4194304
NOT: NVLINK

NAME: in place
RUN: cd $TMP && printf 'NCCL_NET_GDR_FLUSH=1\nNCCL_DEBUG=WARN\n' > a.env && { topotune lint --in-place a.env -q > d; cat a.env; }
EXPECT: NCCL_DEBUG=WARN
NOT: FLUSH

NAME: several inputs, each finding names its file
RUN: cd $TMP && echo NCCL_P2P_LEVEL=2 > a.env && echo NCCL_IB_CUDA_SUPPORT=1 > b.env && topotune lint a.env b.env --json
STATUS: 1
EXPECT: "file": "a.env"
EXPECT: "file": "b.env"

NAME: an unreadable input beside a good one is not "ok"
RUN: echo NCCL_DEBUG=WARN > $TMP/a.env; topotune lint $TMP/a.env $TMP/none.env
STATUS: 3
STDERR: none.env

NAME: binary text is refused
RUN: printf '\177ELF\001\002\003\000\000\001\002\003\004\005\006\007' > $TMP/x; topotune lint $TMP/x
STATUS: 3
STDERR: binary

NAME: a language that is not read is not "ok"
RUN: cd $TMP && printf 'export NCCL_ALGO := foo\nrun:\n' > Makefile && topotune lint Makefile
STATUS: 3
STDERR: 1 of its lines name variables of NCCL

NAME: a broken text is said with its line and the rest is read
RUN: printf '#!/bin/sh\necho "open\nexport NCCL_IB_TIMEOUT=1800\n' > $TMP/a.sh; topotune lint $TMP/a.sh
STATUS: 2
STDERR: a.sh:2: the quote
EXPECT: NCCL23

NAME: an include that does not exist is said
RUN: printf '#!/bin/sh\nsource ./absent.sh\n' > $TMP/a.sh; topotune lint $TMP/a.sh
STDERR: a.sh:2: ./absent.sh does not exist

NAME: an include is read
RUN: printf '#!/bin/sh\n. ./inner.sh\n' > $TMP/a.sh; echo 'export NCCL_IB_TIMEOUT=99' > $TMP/inner.sh; topotune lint $TMP/a.sh
STATUS: 2
EXPECT: inner.sh:1

NAME: the environment
RUN: env -i NCCL_IB_TIMEOUT=1800 $(command -v topotune) lint --env
STATUS: 2
EXPECT: NCCL23

NAME: the environment of a process
RUN: NCCL_IB_TIMEOUT=1800 sleep 5 & sleep 0.3; topotune lint --pid $!; s=$?; kill $!; exit $s
STATUS: 2
EXPECT: NCCL23

NAME: SARIF
RUN: printf 'NCCL_IB_TIMEOUT=1800\n' > $TMP/a.env; topotune lint --sarif $TMP/a.env
STATUS: 2
EXPECT: "version": "2.1.0"
EXPECT: "ruleId": "NCCL23"

NAME: nothing to lint is wrong usage
RUN: topotune lint
STATUS: 64
STDERR: hint:

NAME: Markdown, JUnit and the Nagios line
RUN: cd $TMP && printf 'NCCL_P2P_DISABLE=1\n' > a.env && { topotune lint --markdown a.env; topotune lint --junit a.env; topotune lint --nagios a.env; }
STATUS: 1
EXPECT: | severity | rule | where | what |
EXPECT: <testsuite name="topotune a.env"
EXPECT: TOPOTUNE WARNING - NCCL02

NAME: the environment brings the files that NCCL reads after it
RUN: cd $TMP && printf 'NCCL_ALGO = Ring\n' > c.conf && env -i HOME=$TMP NCCL_CONF_FILE=$TMP/c.conf PATH=$PATH topotune lint --env
STATUS: 2
EXPECT: NCCL30
EXPECT: c.conf:1

NAME: a NCCL_CONF_FILE that is not there is said
RUN: env -i NCCL_CONF_FILE=/nowhere/c.conf PATH=$PATH topotune lint --env
STDERR: /nowhere/c.conf

NAME: YAML of which nothing can be read is not "ok"
RUN: head -c 200000 /dev/zero | tr '\0' '[' > $TMP/x.yaml; topotune lint $TMP/x.yaml
STATUS: 3
STDERR: x.yaml:1
EXPECT: unknown

NAME: a document whose prose alone names variables is not ok
RUN: printf '# A\n\nSet `export NCCL_ALGO=Foo` first.\n' >$TMP/a.md; topotune lint $TMP/a.md; echo status $?
EXPECT: unknown
EXPECT: status 3
STDERR: a.md:3: prose is not judged: 1 of its lines name variables of NCCL or UCX

NAME: Markdown's indented code is read, and a list's paragraph is none
RUN: printf '# A\n\n- one\n\n    A paragraph with mpirun and torchrun in it.\n\nSet\n\n    $ export NCCL_IB_TIMEOUT=99\n\nand go.\n' >$TMP/a.md; topotune lint $TMP/a.md; echo status $?
EXPECT: (1 error)
EXPECT: NCCL23
EXPECT: a.md:9:
EXPECT: status 2
