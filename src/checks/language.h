#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "checks/rule.h"
#include "model/finding.h"
#include "model/language.h"
#include "model/page.h"

namespace topotune::checks {

// A row of data/rules.zh.tsv.
struct RuleTranslation {
  std::string_view id, title, impact, remedy;
};
std::span<const RuleTranslation> translations();
const RuleTranslation* find_translation(std::string_view id);

// A row of data/messages.zh.tsv: a text that is built in code. "{}" stands for what the text is about; the
// translation may say "{1}" where the order changes.
struct MessageTranslation {
  std::string_view from, to;
};
std::span<const MessageTranslation> message_translations();

// The Chinese form of a text built in code; what stands for a "{}" is translated too where it is a message itself.
// Nothing: no row fits.
std::optional<std::string> translated_message(std::string_view text);

// Two English words in a row, without a comma between. Commands, paths and NAME=value are none and stay as they are in every language.
bool is_prose(std::string_view text);

// Titles, impacts and remedies in `language`. A text without a translation of its own gets the rule's (title, impact)
// or stays (remedy: it may hold the only command that helps).
void translate(model::Diagnosis& diagnosis, model::Language language);

// A page of `explain`: headings, and of a rule title, impact and remedy. What comes from primary sources (conditions,
// meanings of variables) stays as it is.
void translate(model::Page& page, model::Language language);

}  // namespace topotune::checks
