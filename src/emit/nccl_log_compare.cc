#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "emit/nccl_log_text.h"

namespace topotune::emit {
namespace {

using namespace model;

// The keys whose values differ, into one part of the comparison.
class Differences {
 public:
  Differences(LogComparison& to, const char* part) : to_(to), part_(part) {}

  void add(const std::string& what, const std::string& a, const std::string& b) {
    if (a != b) to_.differences.push_back({part_, what, a, b});
  }
  void add(const std::map<std::string, std::string>& a, const std::map<std::string, std::string>& b) {
    std::set<std::string> keys;
    for (const auto* m : {&a, &b})
      for (const auto& [key, value] : *m) keys.insert(key);
    for (const auto& key : keys) {
      const auto at = [&](const auto& m) {
        const auto f = m.find(key);
        return f == m.end() ? std::string{} : f->second;
      };
      add(key, at(a), at(b));
    }
  }

 private:
  LogComparison& to_;
  std::string part_;
};

std::map<std::string, std::string> settings(const NcclLog& log) {
  std::map<std::string, std::string> found;
  for (const auto& s : log.env) {
    auto& value = found[s.name];
    value += (value.empty() ? "" : " | ") + s.value;
  }
  return found;
}

std::map<std::string, std::string> transports(const NcclLog& log) {
  std::map<std::string, std::string> found;
  for (const auto& [name, count] : log.transports)
    if (count > 0) found[name + " connections"] = std::to_string(count);
  return found;
}

// How a pair talks: "P2P/CUMEM x24".
std::map<std::string, std::string> pairs(const NcclLog& log) {
  std::map<std::string, std::string> found;
  for (const auto& e : log.edges) {
    if (e.communicator) continue;
    auto& text = found[fmt::format("{} -> {}", e.src, e.dst)];
    text += fmt::format("{}{}{} x{}", text.empty() ? "" : ", ", e.transport,
                        e.gdr.value_or(false) ? "/GDRDMA" : "", e.channels);
  }
  return found;
}

std::map<std::string, std::string> choices(const NcclLog& log) {
  std::map<std::string, std::string> found;
  for (const auto& t : log.tuning) {
    const auto key = fmt::format("{} {} bytes", t.op.value_or("?"), t.bytes);
    auto& text = found[key];
    if (!text.empty()) text += " | ";
    text += t.algorithm + "/" + t.protocol;
    if (t.last_channel) text += fmt::format(" x{}", *t.last_channel - t.first_channel.value_or(0) + 1);
  }
  return found;
}

void job(const NcclLog& a, const NcclLog& b, Differences out) {
  const auto text = [](const std::optional<std::string>& v) { return v.value_or(""); };
  const auto number = [](const std::optional<int>& v) { return v ? std::to_string(*v) : std::string{}; };
  out.add("version", text(a.version), text(b.version));
  out.add("CUDA", text(a.cuda), text(b.cuda));
  out.add("network", text(a.net.used), text(b.net.used));
  const LogCommunicator none;
  const auto& ca = a.communicators.empty() ? none : a.communicators[0];
  const auto& cb = b.communicators.empty() ? none : b.communicators[0];
  out.add("ranks", number(ca.nranks), number(cb.nranks));
  out.add("nodes", number(ca.nnodes), number(cb.nnodes));
  out.add("channels", number(ca.channels), number(cb.channels));
  out.add("NVLS channels", number(ca.nvls_channels), number(cb.nvls_channels));
}

// Bandwidths of both runs.
void measured(const NcclLog& a, const NcclLog& b, LogComparison& out) {
  for (const auto& [bytes, bus] : a.bus_by_size)
    if (const auto other = b.bus_by_size.find(bytes); other != b.bus_by_size.end())
      out.measured.push_back({bytes, bus, other->second});
  out.best_a = a.peak_bus_gbytes_per_s;
  out.best_b = b.peak_bus_gbytes_per_s;
  out.average_a = a.bus_gbytes_per_s;
  out.average_b = b.bus_gbytes_per_s;
}

std::string ratio_text(const char* what, const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b || *a <= 0) return "";
  return fmt::format("measured: {} bus bandwidth {:.2f} GB/s and {:.2f} GB/s, {:.0f} % of the first\n", what,
                     *a, *b, 100 * *b / *a);
}

std::string title(const std::string& text) { return printable(text.empty() ? "-" : text); }

}  // namespace

LogComparison compare_nccl_logs(const NcclLog& a, const std::string& name_a, const NcclLog& b,
                                const std::string& name_b) {
  LogComparison out;
  out.name_a = name_a;
  out.name_b = name_b;
  job(a, b, Differences(out, "job"));
  Differences(out, "settings").add(settings(a), settings(b));
  Differences(out, "transports").add(transports(a), transports(b));
  Differences(out, "pairs").add(pairs(a), pairs(b));
  Differences(out, "choices").add(choices(a), choices(b));
  measured(a, b, out);
  return out;
}

std::string nccl_log_compare_text(const LogComparison& c) {
  std::string text = fmt::format("  {:<36} {:<30} {}\n", "", printable(c.name_a), printable(c.name_b));
  std::string part;
  for (const auto& d : c.differences) {
    if (d.part != part) {
      part = d.part;
      text += fmt::format("{}{}\n", static_cast<char>(part[0] - 'a' + 'A'), part.substr(1));
    }
    text += fmt::format("  {:<36} {:<30} {}\n", printable(d.what), title(d.a), title(d.b));
  }
  if (c.differences.empty()) text += "no difference\n";
  if (!c.measured.empty()) text += "Measured bus bandwidth, GB/s\n";
  for (const auto& m : c.measured)
    text += fmt::format("  {:<36} {:<30} {}\n", fmt::format("{} bytes", m.bytes), fmt::format("{:.2f}", m.a),
                        fmt::format("{:.2f}", m.b));
  return text + ratio_text("best", c.best_a, c.best_b) + ratio_text("average", c.average_a, c.average_b);
}

std::string nccl_log_compare_json(const LogComparison& c) {
  using Json = nlohmann::ordered_json;
  const auto value = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(printable(text));
  };
  const auto number = [](const std::optional<double>& v) { return v ? Json(*v) : Json(nullptr); };
  Json out{{"schema", "topotune.nccl-log-diff/1"},
           {"tool", std::string("topotune ") + TOPOTUNE_VERSION},
           {"a", printable(c.name_a)},
           {"b", printable(c.name_b)}};
  out["differences"] = Json::array();
  for (const auto& d : c.differences)
    out["differences"].push_back(
        {{"part", d.part}, {"what", printable(d.what)}, {"a", value(d.a)}, {"b", value(d.b)}});
  Json sizes = Json::array();
  for (const auto& m : c.measured) sizes.push_back({{"bytes", m.bytes}, {"a", m.a}, {"b", m.b}});
  out["bus_gbytes_per_s"] = {{"best", {{"a", number(c.best_a)}, {"b", number(c.best_b)}}},
                             {"average", {{"a", number(c.average_a)}, {"b", number(c.average_b)}}},
                             {"sizes", std::move(sizes)}};
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace topotune::emit
