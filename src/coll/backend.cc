#include "coll/backend.h"

namespace topotune::coll {

const char* name_of(Mode mode) {
  switch (mode) {
    case Mode::back_to_back:
      return "back-to-back";
    case Mode::events:
      return "events";
    case Mode::blocking:
      return "blocking";
    case Mode::graph:
      return "graph";
  }
  return "";
}

}  // namespace topotune::coll
