NAME: version
RUN: topotune version
EXPECT: topotune 0.

NAME: help names the verbs and gives examples
RUN: topotune --help
EXPECT: Try: topotune check

NAME: an unknown verb is wrong usage, and is named
RUN: topotune frobnicate
STATUS: 64
STDERR: frobnicate
STDERR: hint:

NAME: an unknown option is wrong usage
RUN: topotune version --frobnicate
STATUS: 64
STDERR: --frobnicate

NAME: a result that cannot be written is an error
RUN: topotune version -o /nonexistent/file
STATUS: 3
STDERR: cannot write /nonexistent/file

NAME: a full disk is an error
RUN: topotune version > /dev/full
STATUS: 3
STDERR: cannot write
