#include "emit/claim.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace topotune::emit {

std::string claim_text(const model::Claim& c) {
  std::string out = fmt::format("{}: {}\n  limit: {}\n", name_of(c.verdict), c.text, c.why);
  if (model::is_wrong(c.verdict)) out += "  rule: BENCH03 (topotune explain BENCH03)\n";
  return out;
}

std::string claim_json(const model::Claim& c) {
  nlohmann::ordered_json out;
  out["schema"] = "topotune.claim/1";
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["verdict"] = name_of(c.verdict);
  out["unit"] = c.latency ? "seconds" : "gbytes_per_s";
  out["claimed"] = c.claimed;
  out["limit"] = c.limit;
  out["share"] = c.share();
  out["link"] = c.medium;
  out["why"] = c.why;
  out["text"] = c.text;
  out["rule"] =
      model::is_wrong(c.verdict) ? nlohmann::ordered_json("BENCH03") : nlohmann::ordered_json(nullptr);
  return out.dump(2) + "\n";
}

}  // namespace topotune::emit
