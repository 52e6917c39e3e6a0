#include "emit/page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace topotune::emit {
namespace {

constexpr std::size_t kWidth = 100, kIndent = 4;

std::string wrapped(std::string_view text) {
  std::string out, line;
  for (const auto word : words(text)) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth - kIndent) {
      out += std::string(kIndent, ' ') + line + "\n";
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  return line.empty() ? out : out + std::string(kIndent, ' ') + line + "\n";
}

}  // namespace

std::string page_text(const model::Page& page, bool color) {
  const auto bold = [&](const std::string& text) { return color ? "\x1b[1m" + text + "\x1b[0m" : text; };
  std::string out = fmt::format("{}  {}\n", bold(page.name), page.title);
  for (const auto& section : page.sections)
    out += fmt::format("\n{}\n{}", bold(section.heading), wrapped(section.text));
  if (!page.see.empty())
    out += fmt::format("\n{}\n{}", bold("see also"), wrapped(fmt::format("{}", fmt::join(page.see, " "))));
  return out;
}

std::string page_json(const model::Page& page) {
  nlohmann::ordered_json out;
  out["schema"] = "topotune.explain/1";
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["name"] = page.name;
  out["kind"] = page.kind;
  out["title"] = page.title;
  out["sections"] = nlohmann::ordered_json::array();
  for (const auto& section : page.sections)
    out["sections"].push_back({{"heading", section.heading}, {"text", section.text}});
  out["see"] = page.see;
  return out.dump(2) + "\n";
}

}  // namespace topotune::emit
