// libtopotune-ucx.so: the part that is linked with UCX (libucp).
#include <cstdio>
#include <cstdlib>
#include <new>
#include <set>
#include <sstream>

#include "modules/ucx_run.h"

namespace {

using topotune::ucx::Failure;
using topotune::ucx::Side;

struct State {
  std::vector<std::unique_ptr<Side>> sides;  // one a stream; the first one does all but streams alone
  std::vector<unsigned char> blob;
};
State* state = nullptr;

template <class F>
int guarded(char* error, std::size_t size, const F& f) {
  try {
    f();
    return 0;
  } catch (const Failure& failure) {
    std::snprintf(error, size, "%s", failure.text.c_str());
  } catch (const std::bad_alloc&) {
    std::snprintf(error, size, "not enough memory");
  } catch (const std::exception& e) {  // no more threads
    std::snprintf(error, size, "%s", e.what());
  }
  return 1;
}

int open(const TopotuneNetSetup* setup, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    state = new State;
    for (int i = 0; i < setup->streams; ++i) {
      state->sides.push_back(std::make_unique<Side>());
      state->sides.back()->open(*setup);
      state->sides.back()->address(state->blob);
    }
  });
}

void library(char* text, std::size_t size) { std::snprintf(text, size, "%s", ucp_get_version_string()); }

// What a printing function of UCX prints.
template <class F>
std::string printed(const F& print) {
  char* all = nullptr;
  std::size_t length = 0;
  std::FILE* const file = ::open_memstream(&all, &length);
  if (file == nullptr) return {};
  print(file);
  std::fclose(file);
  std::string text(all, length);
  std::free(all);
  return text;
}

// Lines such as "#    resource 0   :  md 0  dev 0  flags -- self/memory0"; the last word names it.
std::string resources_in(const std::string& text) {
  std::istringstream lines(text);
  std::set<std::string> seen;
  std::string line, out;
  while (std::getline(lines, line)) {
    const auto slash = line.find('/');
    if (line.find("resource ") == std::string::npos || slash == std::string::npos) continue;
    const auto name = line.substr(line.rfind(' ') + 1);
    if (seen.insert(name).second) out += (out.empty() ? "" : " ") + name;
  }
  return out;
}

void resources(char* text, std::size_t size) {
  *text = '\0';
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA;
  ucp_config_t* config = nullptr;
  ucp_context_h context = nullptr;
  if (ucp_config_read(nullptr, nullptr, &config) != UCS_OK) return;
  ucp_config_modify(config, "TLS", "all");
  ucp_config_modify(config, "NET_DEVICES", "all");
  const auto status = ucp_init(&params, config, &context);
  ucp_config_release(config);
  if (status != UCS_OK) return;
  const auto all = printed([&](std::FILE* file) { ucp_context_print_info(context, file); });
  std::snprintf(text, size, "%s", resources_in(all).c_str());
  ucp_cleanup(context);
}

int address(const void** data, std::size_t* size, char*, std::size_t) {
  *data = state->blob.data();
  *size = state->blob.size();
  return 0;
}

int connect(int peer, const void* data, std::size_t size, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    const auto* at = static_cast<const unsigned char*>(data);
    const auto* const end = at + size;
    for (const auto& side : state->sides) side->connect(peer, at, end);
    if (at != end) throw Failure{"the peer has another number of streams"};
  });
}

void describe(int peer, char* text, std::size_t size) {
  *text = '\0';
  const auto* const c = state->sides.front()->find(peer);
  if (c == nullptr) return;
  std::snprintf(text, size, "%s", printed([&](std::FILE* file) { ucp_ep_print_info(c->ep, file); }).c_str());
}

void limit(double seconds) {
  for (const auto& side : state->sides) side->limit(seconds);
}

int ping(int peer, int me, int op, std::size_t bytes, int rounds, double seconds, int initiator,
         double limit_seconds, double* mean, double* samples, int* made, char* error,
         std::size_t error_size) {
  return guarded(error, error_size, [&] {
    limit(limit_seconds);
    *made = topotune::ucx::ping(*state->sides.front(), {peer, me, initiator != 0},
                                {op, bytes, rounds, seconds}, *mean, samples);
  });
}

int stream(int peer, int me, int op, std::size_t bytes, double seconds, int window, int direction,
           int initiator, double limit_seconds, TopotuneNetStream* result, char* error,
           std::size_t error_size) {
  return guarded(error, error_size, [&] {
    limit(limit_seconds);
    *result = topotune::ucx::stream(state->sides, {peer, me, initiator != 0},
                                    {op, bytes, seconds, window, direction == 1});
  });
}

int verify(int peer, int me, int op, std::size_t bytes, std::uint32_t seed, int initiator,
           double limit_seconds, std::uint64_t* wrong, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    limit(limit_seconds);
    *wrong = topotune::ucx::verify(*state->sides.front(), {peer, me, initiator != 0}, op, bytes, seed);
  });
}

void progress() {
  for (const auto& side : state->sides) side->progress();
}

void close() {
  delete state;
  state = nullptr;
}

constexpr TopotuneNet kModule{kNetModuleVersion, open, library, resources, address,  connect,
                              describe,          ping, stream,  verify,    progress, close};

}  // namespace

extern "C" __attribute__((visibility("default"))) const TopotuneNet* topotune_net() { return &kModule; }
