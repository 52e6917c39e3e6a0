#!/bin/sh
# Arrows point one way: each folder of src/ includes only what its line allows (DESIGN.md has the picture).
set -eu
cd "$(dirname "$0")/../src"
allowed() {
  case $1 in
    base) echo base ;;
    data) echo data base ;;
    model) echo model base ;;
    parse) echo parse model base ;;
    host) echo host base ;;
    discover) echo discover host parse model base ;;
    checks) echo checks parse host model base data ;;
    lint) echo lint checks parse model base data ;;
    plan) echo plan checks model base data ;;
    act) echo act host model base ;;
    launch) echo launch peers discover parse plan host model base ;;
    emit) echo emit model base data ;;
    measure) echo measure checks model base data ;;
    peers) echo peers host base ;;
    coll) echo coll peers measure model base ;;
    cuda) echo cuda coll measure host model base data ;;
    mpi) echo mpi coll peers measure host model base ;;
    modules) echo modules mpi net gdr coll base ;;
    net) echo net coll peers measure host model base ;;
    gdr) echo gdr cuda coll measure host model base ;;
    nccl) echo nccl cuda coll peers measure parse host model base ;;
    tune) echo tune coll measure model base ;;
    mixed) echo mixed coll peers measure host parse model base ;;
    plugins) echo plugins tune ;;
    cli) ls ;;
    *) echo "$1" ;;
  esac
}
bad=0
for folder in *; do
  [ -d "$folder" ] || continue
  for other in $(grep -rhoE '^#include "[a-z]+/' "$folder" | sed 's/.*"//; s,/,,' | sort -u); do
    case " $(allowed "$folder" | tr '\n' ' ') " in
      *" $other "*) ;;
      *) bad=1; grep -rnE "^#include \"$other/" "$folder" | sed "s/$/    ($folder may not include $other)/" ;;
    esac
  done
done
# Rule 1: text and models never see a machine.
if grep -rnE 'fopen|ifstream|std::system|popen|host::Host' parse model --include='*.cc' --include='*.h'; then bad=1; fi
exit $bad
