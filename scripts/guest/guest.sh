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

# RDMA writes and reads through soft-RoCE: each device with itself, and mlx5_0 with mlx5_1, whose packets must leave by
# the one NIC and come in by the other: each has a routing table of its own, and local addresses come last. All four
# hang on one wire: only the NIC that has an address may answer for it.
net=/proc/sys/net/ipv4/conf
for k in 0 1 2 3; do
  echo 1 >$net/nic$k/accept_local
  echo 0 >$net/nic$k/rp_filter
  echo 1 >$net/nic$k/arp_ignore
  echo 2 >$net/nic$k/arp_announce
done
for k in 0 1; do
  /usr/bin/ip route add 10.77.0.0/24 dev nic$k src 10.77.0.1$k table 10$k
  /usr/bin/ip rule add pref 90$k from 10.77.0.1$k to 10.77.0.1$k lookup local
  /usr/bin/ip rule add pref 100$k oif nic$k to 10.77.0.0/24 lookup 10$k
  /usr/bin/ip rule add pref 110$k iif lo from 10.77.0.1$k to 10.77.0.1$((1 - k)) lookup 10$k
done
/usr/bin/ip rule add pref 2000 lookup local
/usr/bin/ip rule del pref 0
run gdr bench gdr --memory host mlx5_0 mlx5_1 --bytes 64K --time 0.05 --limit 40 --json
/usr/bin/ip rule add pref 0 lookup local
/usr/bin/ip rule del pref 2000
for k in 0 1; do for pref in 90$k 100$k 110$k; do /usr/bin/ip rule del pref $pref; done; done
run gdr_self bench gdr --memory host mlx5_2 --bytes 4K --time 0.05 --limit 40
run gdr_none bench gdr --memory host nosuch_0

# plan, apply, verify, undo: with what discovery finds, then ACS, MTU and an interrupt by a plan of our own. Everything is as
# before afterwards.
irq=$(ls /sys/bus/pci/devices/0000:23:00.0/msi_irqs 2>/dev/null | head -n 1)
state() {
  head -n 1 /proc/sys/kernel/numa_balancing /sys/class/net/nic0/mtu "/proc/irq/$irq/smp_affinity_list" 2>&1
  for d in 20:00.0 23:00.0 63:00.0; do setpci -s $d CAP_EXP+8.w; setpci -s $d ECAP_ACS+0x6.w 2>/dev/null; done
  ls -R /etc 2>/dev/null
}
setpci -s 20:00.0 ECAP_ACS+0x6.w=0x1d || exit 13
state >$O/state_before.txt
run plan plan --json
run apply apply --yes --json
cp $O/plan.out $O/plan.json
run verify verify $O/plan.json --json
a() { # a ID KIND TARGET VALUE: one action of a plan
  printf '{"id":"%s","kind":"%s","target":"%s","value":"%s","reason":"test","rule":null,"precondition":null,"read_back":null,"undo":null,"scope":"boot","risk":"low","basis":"convention","automatic":true}' "$@"
}
{
  printf '{"schema":"topotune.plan/1","source":{"kind":"live","name":"live"},"bindings":[],"actions":['
  a acs config pci:0000:20:00.0/ACSCtl 0x0001
  printf ,
  a mtu sysfs /sys/class/net/nic0/mtu 1400
  [ -z "$irq" ] || { printf ,; a irq affinity "/proc/irq/$irq/smp_affinity_list" 1; }
  printf ']}'
} >$O/own.json
run apply_own apply $O/own.json --yes --json
state >$O/state_applied.txt
run undo undo --json
state >$O/state_after.txt
topotune run --topology live --per-gpu -q -- grep Cpus_allowed_list /proc/self/status >$O/run.out 2>$O/run.err
echo $? >$O/run.status
exit 0
