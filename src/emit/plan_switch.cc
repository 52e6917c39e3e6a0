// The switch's half of the lossless class of a plan: SONiC (config_db.json), Cumulus NVUE, Onyx.
// Thresholds follow from the rate of the port and the cable: headroom is what still arrives after a pause
// frame was decided on (IEEE 802.1Qbb): both cables' flight, one largest frame on each side, and the peer's
// reaction time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "emit/plan_files.h"

namespace topotune::emit {

namespace {

struct Class {
  int dscp = 26, priority = 3;
  double gbits = 0;  // of the fastest rail, where the plan tells
  double cable_m = 0;
  long headroom = 0, xon = 0, ecn_min = 0, ecn_max = 0;  // bytes
};

constexpr double kMetresPerNs = 0.2;  // light in fibre or copper
constexpr double kLargestFrame = 9216;

// The peer may take this long to obey, in pause quanta of 512 bits (IEEE 802.3, 31B.3.7).
double reaction_bytes(double gbits) {
  const double quanta = gbits <= 10 ? 60 : gbits <= 40 ? 118 : gbits <= 100 ? 394 : 905;
  return quanta * 512 / 8;
}

// Bytes still coming after the decision: two flights, two frames, and the reaction of the peer.
long headroom_of(double gbits, double cable_m) {
  const double bytes_per_ns = gbits / 8;
  const double flight = 2 * cable_m / kMetresPerNs * bytes_per_ns;
  return static_cast<long>(std::ceil((flight + reaction_bytes(gbits) + 2 * kLargestFrame) / 1024)) * 1024;
}

std::optional<Class> class_of(const model::Plan& plan) {
  const auto dscp = parse_int<int>(said(plan, "dscp").value_or(""));
  const auto gbits = parse_double(said(plan, "port_gbits").value_or(""));
  if (!dscp) return std::nullopt;
  Class out;
  out.dscp = *dscp;
  out.priority = *dscp >> 3;
  out.gbits = gbits.value_or(0);
  out.cable_m = parse_double(said(plan, "cable_m").value_or("")).value_or(0);
  if (out.gbits <= 0 || out.cable_m <= 0) return out;
  out.headroom = headroom_of(out.gbits, out.cable_m);
  out.xon = 2 * static_cast<long>(kLargestFrame);
  // DCQCN: marking begins where a queue of about one round trip stands, and is certain at four times that.
  const double round_trip_ns = 2 * out.cable_m / kMetresPerNs + 8000;
  out.ecn_min = std::lround(round_trip_ns * out.gbits / 8 / 1024) * 1024;
  out.ecn_max = 4 * out.ecn_min;
  return out;
}

std::string basis(const Class& c) {
  if (c.headroom == 0) return "thresholds need --set port_gbits=N and --set cable_m=N";
  return fmt::format(
      "from {:g} Gb/s and {:g} m: headroom {} bytes (two flights of {:g} ns, two frames of 9216 bytes, "
      "reaction), ECN {} to {} bytes (one round trip with 8 us in NIC and switch, to four)",
      c.gbits, c.cable_m, c.headroom, c.cable_m / kMetresPerNs, c.ecn_min, c.ecn_max);
}

std::optional<std::string> sonic(const model::Plan& plan) {
  const auto c = class_of(plan);
  if (!c) return std::nullopt;
  std::string map;
  for (int dscp = 0; dscp < 64; ++dscp)
    map += fmt::format("{}\"{}\": \"{}\"", dscp == 0 ? "" : ", ", dscp, dscp == c->dscp ? c->priority : 0);
  std::string out = "{\n";
  out += fmt::format("  \"DSCP_TO_TC_MAP\": {{\"topotune\": {{{}}}}},\n", map);
  out += fmt::format("  \"TC_TO_QUEUE_MAP\": {{\"topotune\": {{\"0\": \"0\", \"{}\": \"{}\"}}}},\n",
                     c->priority, c->priority);
  out += fmt::format("  \"TC_TO_PRIORITY_GROUP_MAP\": {{\"topotune\": {{\"0\": \"0\", \"{}\": \"{}\"}}}},\n",
                     c->priority, c->priority);
  if (c->headroom > 0) {
    out += fmt::format(
        "  \"BUFFER_PROFILE\": {{\"topotune_lossless\": {{\"pool\": \"ingress_lossless_pool\", \"size\": "
        "\"{}\", \"xon\": \"{}\", \"xoff\": \"{}\", \"dynamic_th\": \"0\"}}}},\n",
        c->xon + c->headroom, c->xon, c->headroom);
    out += fmt::format(
        "  \"WRED_PROFILE\": {{\"topotune_ecn\": {{\"ecn\": \"ecn_all\", \"wred_green_enable\": \"true\", "
        "\"green_min_threshold\": \"{}\", \"green_max_threshold\": \"{}\", \"green_drop_probability\": "
        "\"5\"}}}},\n",
        c->ecn_min, c->ecn_max);
    out += fmt::format(
        "  \"QUEUE\": {{\"PORT|{}\": {{\"scheduler\": \"scheduler.0\", \"wred_profile\": "
        "\"topotune_ecn\"}}}},\n  \"BUFFER_PG\": {{\"PORT|{}\": {{\"profile\": \"topotune_lossless\"}}}},\n",
        c->priority, c->priority);
  }
  out += fmt::format(
      "  \"PORT_QOS_MAP\": {{\"PORT\": {{\"dscp_to_tc_map\": \"topotune\", \"tc_to_queue_map\": "
      "\"topotune\", \"tc_to_pg_map\": \"topotune\", \"pfc_enable\": \"{}\"}}}}\n}}\n",
      c->priority);
  return form_head(plan,
                   "SONiC: config load FILE after these comment lines are gone and PORT stands for each port "
                   "(Ethernet0, ...)",
                   "//") +
         "// " + basis(*c) + "\n" + out;
}

std::optional<std::string> nvue(const model::Plan& plan) {
  const auto c = class_of(plan);
  if (!c) return std::nullopt;
  std::string out = fmt::format(
      "nv set qos mapping topotune trust l3\nnv set qos mapping topotune dscp {} switch-priority {}\nnv set "
      "qos pfc topotune switch-priority {}\nnv set qos pfc topotune tx enable\nnv set qos pfc topotune rx "
      "enable\n",
      c->dscp, c->priority, c->priority);
  if (c->headroom > 0)
    out += fmt::format(
               "nv set qos pfc topotune port-buffer {}\nnv set qos pfc topotune xon-threshold {}\nnv set qos "
               "pfc topotune xoff-threshold {}\nnv set qos pfc topotune cable-length {}\n",
               c->headroom + c->xon, c->xon / 2, c->xon, std::lround(c->cable_m)) +
           fmt::format(
               "nv set qos congestion-control topotune traffic-class {} min-threshold-bytes {}\nnv set qos "
               "congestion-control topotune traffic-class {} max-threshold-bytes {}\nnv set qos "
               "congestion-control topotune traffic-class {} probability 100\nnv set qos congestion-control "
               "topotune traffic-class {} ecn enable\n",
               c->priority, c->ecn_min, c->priority, c->ecn_max, c->priority, c->priority);
  out +=
      "nv set interface swp1-N qos mapping profile topotune\nnv set interface swp1-N qos pfc profile "
      "topotune\n";
  if (c->headroom > 0) out += "nv set interface swp1-N qos congestion-control profile topotune\n";
  return form_head(plan,
                   "Cumulus Linux, NVUE; swp1-N are the host ports; nv config diff before nv config apply; "
                   "compare names with `nv set qos` of the release") +
         "# " + basis(*c) + "\n" + out;
}

std::optional<std::string> onyx(const model::Plan& plan) {
  const auto c = class_of(plan);
  if (!c) return std::nullopt;
  std::string out = fmt::format(
      "dcb priority-flow-control enable force\ndcb priority-flow-control priority {} enable\ninterface "
      "ethernet 1/1-1/N dcb priority-flow-control mode on force\ninterface ethernet 1/1-1/N qos trust "
      "L3\ninterface ethernet 1/1-1/N qos map dscp {} to switch-priority {}\n",
      c->priority, c->dscp, c->priority);
  if (c->headroom > 0)
    out += fmt::format(
        "interface ethernet 1/1-1/N traffic-class {} congestion-control ecn minimum-absolute {} "
        "maximum-absolute {}\n",
        c->priority, c->ecn_min / 1024, c->ecn_max / 1024);
  out += fmt::format("interface ethernet 1/1-1/N traffic-class {} dcb ets wrr 50\n", c->priority);
  return form_head(plan, "Onyx, configure mode; 1/1-1/N are the host ports; thresholds are KB", "##") +
         "## " + basis(*c) + "\n" + out;
}

constexpr PlanForm kForms[] = {{"sonic", "SONiC: config_db.json of the lossless class", sonic},
                               {"nvue", "Cumulus Linux: NVUE commands", nvue},
                               {"onyx", "Onyx commands", onyx}};

}  // namespace

std::span<const PlanForm> plan_switch_forms() { return kForms; }

}  // namespace topotune::emit
