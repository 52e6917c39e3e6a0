#pragma once

#include <string>

#include "base/result.h"
#include "nccl/api.h"

namespace topotune::nccl {

// NCCL, found at run time.
class Library {
 public:
  // Loads libnccl.so.2, or what TOPOTUNE_NCCL_LIBRARY names. Errors: not_found; unsupported: too old.
  // NCCL reads most NCCL_* variables once, at its first communicator: set them before.
  static Result<Library> load();

// A name and a list of parameters stand in no parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define TOPOTUNE_MEMBER(member, symbol, parameters) api::Rc(*member) parameters = nullptr;
  struct Functions {
    using Rc = api::Rc;
    using Comm = api::Comm;
    using Stream = api::Stream;
    using UniqueId = api::UniqueId;
    using Config = api::Config;
    TOPOTUNE_NCCL_FUNCTIONS(TOPOTUNE_MEMBER)
    TOPOTUNE_NCCL_OPTIONAL(TOPOTUNE_MEMBER)
    const char* (*error_string)(Rc) = nullptr;
    const char* (*last_error)(Comm) = nullptr;  // may be null
  };
#undef TOPOTUNE_MEMBER
  Functions f;

  int version = 0;                   // 22809 is 2.28.9
  std::string file;                  // that was loaded
  std::string version_text() const;  // "2.28.9"

  Result<api::UniqueId> unique_id() const;
  // "AllReduce on GPU0: unhandled system error: <NCCL's last message>".
  Result<void> check(api::Rc rc, const std::string& what) const;
};

}  // namespace topotune::nccl
