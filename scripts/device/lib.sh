# Read by the scripts beside it; it travels with them.

# A line of the log. A script may say more with it.
say() { echo "$*" >>"$log"; }

# clock COMMAND...: runs it for at most $limit seconds, with its status and its wall time in $log; its status.
clock() {
  local start end status
  say "\$ $*"
  start=$(date +%s.%N)
  timeout -k 5 "$limit" "$@" >>"$log" 2>&1
  status=$?
  end=$(date +%s.%N)
  say "-- status $status, $(python3 -c "print(round($end - $start, 3))") s"
  return $status
}

# TOPOTUNE_NCCL_LIBRARY, where it is not set: NCCL of a Python environment, of the loader's path, or anywhere.
find_nccl() {
  [ -z "${TOPOTUNE_NCCL_LIBRARY:-}" ] || return 0
  local found
  found=$(python3 -c 'import nvidia.nccl, os; print(os.path.join(list(nvidia.nccl.__path__)[0], "lib", "libnccl.so.2"))' 2>/dev/null)
  [ -e "$found" ] || found=$(ldconfig -p | sed -n 's/.*libnccl\.so\.2 .*=> //p' | head -n 1)
  [ -e "$found" ] || found=$(find / -xdev -name 'libnccl.so.2' 2>/dev/null | head -n 1)
  export TOPOTUNE_NCCL_LIBRARY=$found
}

# For scripts beside which, or in whose BIN, the program and its plugins lie: the output folder with an empty log, NCCL.
set_up() { # set_up FOLDER
  out=$1 bin=${BIN:-$here}
  tt=$bin/topotune log=$out/log.txt
  mkdir -p "$out"
  : >"$log"
  export NCCL_NVLS_ENABLE=0 TOPOTUNE_MODULES=$bin
  find_nccl
}

# The same library for programs that are linked with it.
nccl_on_path() {
  find_nccl
  export LD_LIBRARY_PATH=${TOPOTUNE_NCCL_LIBRARY%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}
