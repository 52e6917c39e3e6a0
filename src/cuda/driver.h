#pragma once

#include <string>

#include "base/result.h"
#include "cuda/api.h"

namespace topotune::cuda {

// The driver's functions, found once; all members are set. Calls are made on the members; `check` turns what
// they return into an error that names the call's purpose and CUDA's own words.
class Driver {
 public:
  // Loads libcuda.so.1 and initialises it. not_found: no such library; unsupported: too old, or no GPU that
  // it drives.
  static Result<Driver> load();

// A name and a list of parameters stand in no parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define TOPOTUNE_MEMBER(member, symbol, parameters) api::Rc(*member) parameters = nullptr;
  struct Functions {
    using Rc = api::Rc;
    using Device = api::Device;
    using Context = api::Context;
    using Stream = api::Stream;
    using Event = api::Event;
    using Module = api::Module;
    using Function = api::Function;
    using DevicePtr = api::DevicePtr;
    TOPOTUNE_CUDA_FUNCTIONS(TOPOTUNE_MEMBER)
    // From here on: may be null.
    using Graph = api::Graph;
    using GraphExec = api::GraphExec;
    TOPOTUNE_CUDA_OPTIONAL(TOPOTUNE_MEMBER)
    Rc (*stream_wait_value)(Stream, DevicePtr, std::uint32_t, unsigned) = nullptr;
  };
#undef TOPOTUNE_MEMBER
  Functions f;

  int version = 0;  // 13000 is 13.0

  Result<void> check(api::Rc rc, const std::string& what) const;
  std::string words_for(api::Rc rc) const;  // "out of memory (CUDA_ERROR_OUT_OF_MEMORY)"
  std::string version_text() const;         // "13.0"
};

}  // namespace topotune::cuda
