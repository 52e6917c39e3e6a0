#include "measure/claim.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "checks/known_gpus.h"
#include "model/topology.h"

namespace topotune::measure {

namespace {

using model::Claim;
using model::ClaimVerdict;

// "100G", "8x400Gb/s", "PCIe5.0" in words of one kind: numbers, and runs of letters (with '/' and '%').
struct Token {
  bool number = false;
  double value = 0;
  std::string text;  // as written
};

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> out;
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t start = i;
    if (is_digit(text[i])) {
      while (i < text.size() &&
             (is_digit(text[i]) || (text[i] == '.' && i + 1 < text.size() && is_digit(text[i + 1]))))
        ++i;
      out.push_back({true, parse_double(text.substr(start, i - start)).value_or(0),
                     std::string(text.substr(start, i - start))});
    } else if (std::isalpha(static_cast<unsigned char>(text[i])) != 0) {
      while (i < text.size() && (std::isalpha(static_cast<unsigned char>(text[i])) != 0 || text[i] == '/'))
        ++i;
      out.push_back({false, 0, std::string(text.substr(start, i - start))});
    } else if (text.substr(i).starts_with("\xc2\xb5s") || text.substr(i).starts_with("\xce\xbcs")) {
      out.push_back({false, 0, "us"});
      i += 3;
    } else {
      ++i;
    }
  }
  return out;
}

std::optional<double> prefix_of(char c) {
  switch (c) {
    case 'k':
    case 'K':
      return 1e-6;
    case 'M':
    case 'm':
      return 1e-3;
    case 'G':
    case 'g':
      return 1;
    case 'T':
    case 't':
      return 1e3;
    default:
      return std::nullopt;
  }
}

// GB/s that one of the unit is: "GB/s" 1, "Gb/s" 0.125, "GiB/s" 1.074; nothing for other words.
std::optional<double> rate_unit(const std::string& word) {
  if (word.size() < 3) return std::nullopt;
  const auto prefix = prefix_of(word[0]);
  if (!prefix) return std::nullopt;
  std::string_view rest = std::string_view(word).substr(1);
  double scale = *prefix;
  if (rest[0] == 'i') {
    scale *= std::pow(1.024, std::log10(scale * 1e9) / 3);
    rest.remove_prefix(1);
  }
  const bool ending = rest.size() > 1 &&
                      (rest.substr(1) == "/s" || rest.substr(1) == "ps" || iequals(rest.substr(1), "/sec"));
  if (rest.starts_with("B") && ending) return scale;
  if (rest.starts_with("b") && ending) return scale / 8;
  if (iequals(rest, "bit/s") || iequals(rest, "bits/s")) return scale / 8;
  return iequals(rest, "byte/s") || iequals(rest, "bytes/s") ? std::optional(scale) : std::nullopt;
}

std::optional<double> time_unit(const std::string& word) {
  if (word == "ns") return 1e-9;
  if (word == "us" || iequals(word, "usec")) return 1e-6;
  return word == "ms" ? std::optional(1e-3) : std::nullopt;
}

std::optional<double> size_unit(const std::string& word) {
  constexpr std::array<std::pair<const char*, double>, 7> units{{{"B", 1},
                                                                 {"KB", 1e3},
                                                                 {"MB", 1e6},
                                                                 {"GB", 1e9},
                                                                 {"KiB", 1024},
                                                                 {"MiB", 1048576},
                                                                 {"GiB", 1073741824}}};
  for (const auto& [name, value] : units) {
    if (iequals(word, name)) return value;
  }
  return std::nullopt;
}

struct Named {
  const char* word;
  double gbits;
};
constexpr std::array<Named, 9> kInfiniband{{{"QDR", 40},
                                            {"FDR", 56},
                                            {"EDR", 100},
                                            {"HDR", 200},
                                            {"NDR", 400},
                                            {"XDR", 800},
                                            {"SDR", 10},
                                            {"DDR", 20},
                                            {"HDR100", 100}}};

struct Reading {
  std::vector<Token> tokens;
  std::optional<double> figure;  // GB/s
  std::size_t figure_at = 0;
  std::optional<double> seconds, bytes;
  bool has(std::string_view word) const {
    return std::ranges::any_of(tokens, [&](const auto& t) { return !t.number && iequals(t.text, word); });
  }
  bool has_part(std::string_view part) const {
    return std::ranges::any_of(tokens, [&](const auto& t) { return !t.number && icontains(t.text, part); });
  }
  // The number just before word `i`, or nothing.
  std::optional<double> number_before(std::size_t i) const {
    return i > 0 && tokens[i - 1].number ? std::optional(tokens[i - 1].value) : std::nullopt;
  }
};

Reading read(std::string_view text) {
  Reading r;
  r.tokens = tokens_of(text.substr(0, 500));
  for (std::size_t i = 1; i < r.tokens.size(); ++i) {
    const auto value = r.number_before(i);
    if (!value || r.tokens[i].number) continue;
    if (const auto unit = rate_unit(r.tokens[i].text); unit && !r.figure)
      r.figure = *value * *unit, r.figure_at = i;
    else if (const auto time = time_unit(r.tokens[i].text); time && !r.seconds)
      r.seconds = *value * *time;
    else if (const auto size = size_unit(r.tokens[i].text); size && !r.bytes)
      r.bytes = *value * *size;
  }
  return r;
}

struct Medium {
  std::string name, why;
  double gbytes_per_s = 0;  // the most payload one way
  bool nvlink = false;
};

// "8 x 400G": the count in front of the number at `i`.
double count_before(const Reading& r, std::size_t i) {
  if (i >= 2 && iequals(r.tokens[i - 1].text, "x") && r.tokens[i - 2].number)
    return std::max(1.0, r.tokens[i - 2].value);
  for (std::size_t k = 1; k < r.tokens.size(); ++k) {
    const auto& word = r.tokens[k].text;
    if ((iequals(word, "NICs") || iequals(word, "rails") || iequals(word, "ports")) && r.tokens[k - 1].number)
      return std::max(1.0, r.tokens[k - 1].value);
  }
  return 1;
}

std::optional<Medium> network_of(const Reading& r) {
  std::optional<double> gbits;
  double count = 1;
  std::string kind = r.has_part("roce")                                            ? "RoCE"
                     : r.has("IB") || r.has_part("infiniband")                     ? "InfiniBand"
                     : r.has_part("ethernet") || r.has_part("gbe") || r.has("TCP") ? "Ethernet"
                                                                                   : "";
  for (std::size_t i = 0; i < r.tokens.size() && !gbits; ++i) {
    const auto& word = r.tokens[i].text;
    for (const auto& named : kInfiniband) {
      if (iequals(word, named.word)) {
        gbits = named.gbits, kind = kind.empty() ? "InfiniBand" : kind;
        if (i + 1 < r.tokens.size() && (r.tokens[i + 1].text == "100" || r.tokens[i + 1].text == "200"))
          gbits = r.tokens[i + 1].value;
        count = i >= 2 ? count_before(r, i) : 1;
      }
    }
    const bool short_form = word == "G" || word == "g" || iequals(word, "GbE");
    const auto unit = rate_unit(word);
    const auto value = r.number_before(i);
    if (!value || gbits || (r.figure && i == r.figure_at)) continue;
    if (short_form)
      gbits = *value;
    else if (unit)
      gbits = *value * *unit * 8;
    if (gbits) count = count_before(r, i - 1);
  }
  if (!gbits || *gbits <= 0) return std::nullopt;
  // Payload of a 4096-byte MTU: RoCE v2 adds 82 bytes to a packet on the wire, InfiniBand 30; TCP with
  // 9000-byte frames 90.
  const double share = kind == "RoCE"         ? 4096.0 / 4178
                       : kind == "InfiniBand" ? 4096.0 / 4126
                       : kind == "Ethernet"   ? 8948.0 / 9038
                                              : 1;
  Medium m;
  m.name = fmt::format("{}{:g} Gb/s{}{}", count > 1 ? fmt::format("{:g} x ", count) : "", *gbits,
                       kind.empty() ? "" : " ", kind);
  m.gbytes_per_s = count * *gbits / 8 * share;
  m.why = fmt::format(
      "{}{:g} Gb/s / 8 = {:g} GB/s{}", count > 1 ? fmt::format("{:g} x ", count) : "", *gbits,
      count * *gbits / 8,
      share < 1 ? fmt::format(", of which {:.1f} % are payload: {:.2f} GB/s", share * 100, m.gbytes_per_s)
                : "");
  return m;
}

std::optional<Medium> pcie_of(const Reading& r) {
  if (!r.has_part("pcie")) return std::nullopt;
  std::optional<int> generation;
  int width = 16;
  for (std::size_t i = 0; i + 1 < r.tokens.size(); ++i) {
    const auto& word = r.tokens[i].text;
    const auto& next = r.tokens[i + 1];
    if (!next.number || r.tokens[i].number) continue;
    if (iequals(word, "x") && next.value >= 1 && next.value <= 32)
      width = static_cast<int>(next.value);
    else if ((icontains(word, "pcie") || icontains(word, "gen")) && next.value >= 1 && next.value < 7)
      generation = static_cast<int>(next.value);
  }
  if (!generation) return std::nullopt;
  constexpr std::array<double, 6> rates{2.5, 5, 8, 16, 32, 64};
  const double gts = rates[static_cast<std::size_t>(*generation - 1)];
  const auto rate = model::bandwidth_of(model::PcieLink{gts, width});
  if (!rate) return std::nullopt;
  return Medium{fmt::format("PCIe Gen{} x{}", *generation, width),
                fmt::format("{:g} GT/s x {} lanes after line coding = {:.1f} GB/s, before packet heads", gts,
                            width, rate->value),
                rate->value, false};
}

// The GPU that the text names, by the first word of a model's name ("H100"), the longest that fits.
std::optional<Medium> nvlink_of(std::string_view text, const Reading& r) {
  std::string best;
  int links = 0;
  double rate = 0;
  for (const auto& gpu : checks::known_gpus()) {
    if (gpu.nvlinks.value_or(0) == 0 || gpu.link_gbytes_per_s <= 0) continue;
    for (const auto name : gpu.names) {
      auto key = std::string(name.substr(0, name.find_first_of(" -")));
      if (key == "Tesla" || key == "GeForce" || key == "RTX" || key == "Quadro")
        key = std::string(name.substr(name.find(' ') + 1, 4));
      if (key.size() <= best.size() || key.size() < 3 || !icontains(text, key)) continue;
      best = key;
      links = *gpu.nvlinks;
      rate = gpu.link_gbytes_per_s;
    }
  }
  for (std::size_t k = 1; k < r.tokens.size(); ++k) {
    const auto& word = r.tokens[k].text;
    if ((iequals(word, "links") || iequals(word, "NVLinks")) && r.tokens[k - 1].number)
      links = static_cast<int>(r.tokens[k - 1].value);
  }
  if (best.empty() || links <= 0 || links > 1000 ||
      !(r.has_part("nvlink") || r.has_part("nvl") || !r.has_part("pcie")))
    return std::nullopt;
  return Medium{
      fmt::format("{} NVLinks of {}", links, best),
      fmt::format("{} links x {:g} GB/s = {:.1f} GB/s one way, protocol included", links, rate, links * rate),
      links * rate, true};
}

ClaimVerdict verdict_of(const Claim& c, const Medium& medium, const Reading& r) {
  const double share = c.share();
  if (c.latency) return share > 1 ? ClaimVerdict::impossible : ClaimVerdict::possible;
  const bool collective = r.has("busbw") || r.has_part("reduce") || r.has("NVLS");
  if (share > 1.0005) {
    if (medium.nvlink && collective && share <= 1.4) return ClaimVerdict::equivalent;
    if (share <= 2.0005) return ClaimVerdict::sum;
    return share >= 6 && share <= 8.4 ? ClaimVerdict::units : ClaimVerdict::impossible;
  }
  return share < 0.5 ? ClaimVerdict::low : ClaimVerdict::possible;
}

std::string sentence(const Claim& c) {
  if (c.latency)
    return c.verdict == ClaimVerdict::impossible
               ? fmt::format("{:.2f} us is less than the {:.2f} us that the bytes need on the wire",
                             c.claimed * 1e6, c.limit * 1e6)
               : fmt::format(
                     "the bytes alone need {:.2f} us on the wire; {:.2f} us leaves {:.2f} us for everything "
                     "else",
                     c.limit * 1e6, c.claimed * 1e6, (c.claimed - c.limit) * 1e6);
  switch (c.verdict) {
    case ClaimVerdict::possible:
      return fmt::format("{:.4g} GB/s is {:.0f} % of what {} carries one way", c.claimed, c.share() * 100,
                         c.medium);
    case ClaimVerdict::low:
      return fmt::format(
          "{:.4g} GB/s is only {:.0f} % of what {} carries one way{}", c.claimed, c.share() * 100, c.medium,
          c.share() > 0.1 && c.share() <= 0.1255 ? "; near an eighth: perhaps the figure is in gigabits"
                                                 : "");
    case ClaimVerdict::sum:
      return fmt::format(
          "{:.4g} GB/s is {:.2f} times what {} carries one way: it can only be the sum of both directions",
          c.claimed, c.share(), c.medium);
    case ClaimVerdict::equivalent:
      return fmt::format(
          "{:.4g} GB/s is over the link rate of {}: bus bandwidth is what a ring would have needed, and with "
          "reduction in the switch (NVLS) less crosses each link",
          c.claimed, c.medium);
    case ClaimVerdict::units:
      return fmt::format(
          "{:.4g} GB/s cannot cross {}: it is {:.1f} times the limit, near 8, so bits were taken for bytes; "
          "{:.4g} Gb/s would be {:.4g} GB/s, {:.0f} % of the limit",
          c.claimed, c.medium, c.share(), c.claimed, c.claimed / 8, c.share() / 8 * 100);
    default:
      return fmt::format("{:.4g} GB/s cannot cross {}: it is {:.1f} times what the link carries one way",
                         c.claimed, c.medium, c.share());
  }
}

}  // namespace

Result<Claim> judge_claim(std::string_view text) {
  const Reading r = read(text);
  const bool latency = !r.figure && r.seconds && r.bytes;
  // A latency claim may give its link as the only rate: "1 MiB in 20 us at 100 Gb/s".
  Reading link = r;
  if (r.figure && r.seconds && r.bytes) link.figure.reset();
  const bool timed = latency || (r.seconds && r.bytes);
  if (!timed && !r.figure)
    return fail(Errc::unrecognised, "'{}' has no speed such as 92 GB/s", printable(text.substr(0, 80)));
  auto medium = network_of(link);
  if (!medium) medium = pcie_of(r);
  if (!medium) medium = nvlink_of(text, r);
  if (!medium)
    return fail(Errc::unrecognised, "'{}' names no link such as 100G RoCE, PCIe 5.0 x16 or H100 NVLink",
                printable(text.substr(0, 80)));
  Claim c;
  c.latency = timed;
  c.medium = medium->name;
  c.why = medium->why;
  if (timed) {
    c.claimed = *r.seconds;
    c.limit = *r.bytes / (medium->gbytes_per_s * 1e9);
  } else {
    c.claimed = *r.figure;
    c.limit = medium->gbytes_per_s;
  }
  if (c.claimed <= 0)
    return fail(Errc::unrecognised, "'{}' is a speed of nothing", printable(text.substr(0, 80)));
  c.verdict = verdict_of(c, *medium, r);
  c.text = sentence(c);
  return c;
}

}  // namespace topotune::measure
