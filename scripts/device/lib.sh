# Read by the scripts beside it; it travels with them.

# clock COMMAND...: runs it for at most $limit seconds, with its status and its wall time in $log.
clock() {
  local start end status
  echo "\$ $*" >>"$log"
  start=$(date +%s.%N)
  timeout -k 5 "$limit" "$@" >>"$log" 2>&1
  status=$?
  end=$(date +%s.%N)
  echo "-- status $status, $(python3 -c "print(round($end - $start, 3))") s" >>"$log"
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

# The same library for programs that are linked with it.
nccl_on_path() {
  find_nccl
  export LD_LIBRARY_PATH=${TOPOTUNE_NCCL_LIBRARY%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}
