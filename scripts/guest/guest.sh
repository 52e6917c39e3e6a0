# Runs inside the guest: four soft-RoCE devices over the four NICs, then topotune, live. Results go to /out.
O=/out
export NO_COLOR=1 HOME=/root
/usr/bin/ip link set lo up
for d in /sys/class/net/eth*; do  # NICs are told apart by their MAC
  read -r mac <"$d/address"
  n=${mac##*:1}
  /usr/bin/ip link set "${d##*/}" name "nic$n"
  /usr/bin/ip addr add "10.77.0.1$n/24" dev "nic$n"
  /usr/bin/ip link set "nic$n" up
done
for k in 0 1 2 3; do rdma link add "mlx5_$k" type rxe netdev "nic$k" || exit 10; done
run() { # run NAME ARGS...: topotune ARGS, its output and status kept; a verdict (0..3) is no failure
  name=$1
  shift
  topotune "$@" >"$O/$name.out" 2>"$O/$name.err"
  echo $? >"$O/$name.status"
}
run show show --json
run show_text show
run check check --json
run capture capture -o $O/guest.capture
run capture_text capture --text -o $O/guest.capture.txt
run replay show $O/guest.capture --json
run check_replay check $O/guest.capture --json
setpci -s 20:00.0 ECAP_ACS+0x6.w=0x1d || exit 11
run check_acs check --json
setpci -s 20:00.0 ECAP_ACS+0x6.w=0x00 || exit 12
run show_hidden show --json
ibv_devinfo >$O/ibv_devinfo.txt 2>&1
exit 0
