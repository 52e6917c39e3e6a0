#pragma once

#include <optional>
#include <string>
#include <vector>

namespace topotune::model {

enum class Severity { info, warn, error };
const char* name_of(Severity severity);
std::optional<Severity> severity_from(std::string_view name);

struct Evidence {
  std::string source;  // path, "nvml", "FILE:LINE"
  std::string text;    // what it said
};

// One fact that is wrong, with its proof and its cure. Fields as in `topotune.findings/1`.
struct Finding {
  std::string rule;
  Severity severity = Severity::warn;
  std::string subject;  // "GPU0-GPU1", "mlx5_0", "host"
  std::optional<std::string> file;
  std::optional<int> line, column;
  std::string title;
  std::vector<Evidence> evidence;
  std::string expected, observed;
  std::string impact, remedy, reference;
  std::string action;                // stable id of the remedy for `plan`
  std::vector<std::string> because;  // rules of findings that explain this one
};

struct NotChecked {
  std::string rule;
  std::string why;
};

// The result of a diagnosis. The verdict is computed from the findings and nothing else.
struct Diagnosis {
  std::vector<Finding> findings;
  std::vector<std::string> checked;
  std::vector<NotChecked> not_checked;
  bool unexplained = false;  // a program failed, and no rule knows why
};

enum class Verdict { ok, info, warn, error, unknown };
const char* name_of(Verdict verdict);
// The worst finding; `unknown` when nothing was checked and nothing found, or a failure has no warning and no
// error that may be its cause.
Verdict verdict_of(const Diagnosis& diagnosis);

}  // namespace topotune::model
