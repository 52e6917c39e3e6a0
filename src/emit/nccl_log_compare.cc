#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "emit/nccl_log_text.h"

namespace topotune::emit {
namespace {

using namespace model;

// A table of the keys whose values differ.
class Differences {
 public:
  void add(const std::string& what, const std::string& a, const std::string& b) {
    if (a != b)
      text_ += fmt::format("  {:<36} {:<30} {}\n", printable(what), printable(a.empty() ? "-" : a),
                           printable(b.empty() ? "-" : b));
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
  const std::string& text() const { return text_; }

 private:
  std::string text_;
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

void job(const NcclLog& a, const NcclLog& b, Differences& out) {
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

std::string ratio_text(const char* what, const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b || *a <= 0) return "";
  return fmt::format("measured: {} bus bandwidth {:.2f} GB/s and {:.2f} GB/s, {:.0f} % of the first\n", what,
                     *a, *b, 100 * *b / *a);
}

std::string cost(const NcclLog& a, const NcclLog& b) {
  return ratio_text("best", a.peak_bus_gbytes_per_s, b.peak_bus_gbytes_per_s) +
         ratio_text("average", a.bus_gbytes_per_s, b.bus_gbytes_per_s);
}

}  // namespace

std::string nccl_log_compare(const NcclLog& a, const std::string& name_a, const NcclLog& b,
                             const std::string& name_b) {
  std::string text = fmt::format("  {:<36} {:<30} {}\n", "", printable(name_a), printable(name_b));
  bool any = false;
  const auto section = [&](const char* title, const Differences& d) {
    if (d.text().empty()) return;
    text += fmt::format("{}\n{}", title, d.text());
    any = true;
  };
  Differences jobs, set, kinds, talk, chosen;
  job(a, b, jobs);
  set.add(settings(a), settings(b));
  kinds.add(transports(a), transports(b));
  talk.add(pairs(a), pairs(b));
  chosen.add(choices(a), choices(b));
  section("Job", jobs);
  section("Settings", set);
  section("Transports", kinds);
  section("Pairs", talk);
  section("Choices", chosen);
  if (!any) text += "no difference\n";
  return text + cost(a, b);
}

}  // namespace topotune::emit
