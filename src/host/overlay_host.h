#pragma once

#include <functional>
#include <set>
#include <utility>

#include "host/capture.h"
#include "host/host.h"

namespace topotune::host {

// Changes to a machine, as data: what-if and fault injection (docs/formats/capture.md, "Overlays").
// Names may hold '*' (no '/') and "**"; entries that fit the same question are applied in the overlay's
// order.
struct Overlay {
  // Sets the answer, or derives it from the machine's own.
  struct Change {
    Question question;  // its name is a pattern
    std::function<Answer(const Answer&)> apply;
  };
  std::vector<Change> changes;
  std::vector<std::string> dropped;  // paths (patterns): gone with everything below them
};

// Errors carry the line of the overlay.
Result<Overlay> parse_overlay(std::string_view text);

class OverlayHost final : public Host {
 public:
  OverlayHost(const Host& inner, Overlay overlay) : inner_(inner), overlay_(std::move(overlay)) {}

  Result<std::string> read(std::string_view path) const override;
  Result<std::vector<std::string>> list(std::string_view path) const override;
  Result<std::string> link(std::string_view path) const override;
  Result<std::string> run(std::span<const std::string> argv) const override;
  Result<std::string> probe(std::string_view name) const override;

 private:
  bool gone(std::string_view path) const;
  Answer answer(Call call, std::string_view name, const std::function<Answer()>& inner) const;
  Answer file_answer(Call call, std::string_view path, const std::function<Answer()>& inner) const;

  const Host& inner_;
  Overlay overlay_;
};

}  // namespace topotune::host
