#include "coll/share.h"

#include <cstring>

namespace topotune::coll {

namespace {

std::string packed(const Result<std::vector<double>>& numbers) {
  if (!numbers) return "e" + numbers.error().text;
  std::string out(1 + numbers->size() * sizeof(double), 'n');
  if (!numbers->empty()) std::memcpy(out.data() + 1, numbers->data(), numbers->size() * sizeof(double));
  return out;
}

Result<std::vector<double>> unpacked(const std::string& text) {
  if (text.empty() || (text[0] != 'n' && text[0] != 'e') ||
      (text[0] == 'n' && (text.size() - 1) % sizeof(double) != 0))
    return fail(Errc::malformed, "sent something that is no answer");
  if (text[0] == 'e') return fail(Errc::io, "{}", text.substr(1));
  std::vector<double> out((text.size() - 1) / sizeof(double));
  if (!out.empty()) std::memcpy(out.data(), text.data() + 1, out.size() * sizeof(double));
  return out;
}

}  // namespace

Result<std::vector<std::vector<double>>> share(peers::Peers& peers, const Result<std::vector<double>>& mine,
                                               const std::string& what, double limit_seconds) {
  if (!mine && peers.size() > 1) {
    peers.fail_all(mine.error());
    return tl::unexpected(mine.error());
  }
  const auto texts = peers.exchange(packed(mine), what, limit_seconds);
  if (!texts) return tl::unexpected(texts.error());
  std::vector<std::vector<double>> out;
  for (int r = 0; r < peers.size(); ++r) {
    auto numbers = unpacked((*texts)[static_cast<std::size_t>(r)]);
    if (!numbers && peers.size() == 1) return tl::unexpected(mine ? numbers.error() : mine.error());
    if (!numbers) return fail(Errc::io, "{}: {}", peers.at(r).to_string(), numbers.error().text);
    out.push_back(std::move(*numbers));
  }
  return out;
}

}  // namespace topotune::coll
