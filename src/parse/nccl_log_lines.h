#pragma once

#include <string_view>

#include "parse/nccl_log_state.h"

// One function a kind of line. `text` is the message without leading blanks; true: understood.
namespace topotune::parse::log {

// nccl_log_init.cc: identity, versions, settings
bool version_line(State& state, std::string_view text);
bool communicator_line(State& state, std::string_view text);
bool init_timings(State& state, std::string_view text);
bool driver_version(State& state, std::string_view text);
bool channel_counts(State& state, std::string_view text);
bool affinity_mask(State& state, std::string_view text);
bool affinity_list(State& state, std::string_view text);
bool config_setting(State& state, std::string_view text);
bool environment_setting(State& state, std::string_view text);
bool plugin_setting(State& state, std::string_view text);

// nccl_log_net.cc: networks, plugins, GPUDirect
bool bootstrap_line(State& state, std::string_view text);
bool network_line(State& state, std::string_view text);  // "NET/…"
bool using_network(State& state, std::string_view text);
bool plugin_line(State& state, std::string_view text);
bool gdr_decision(State& state, std::string_view text);
bool nvls_line(State& state, std::string_view text);
bool connection_retry(State& state, std::string_view text);  // "connect returned X, retrying (3/34)"
bool remark(State& state, std::string_view text);            // statements that are kept word for word

// nccl_log_tuner.cc: what topotune's plugins say
bool topotune_line(State& state, std::string_view text);
model::LogTuner tuner_of(const State& state, const std::vector<int>& communicator_of_instance);

// nccl_log_channel.cc: connections, rings, trees
bool channel_line(State& state, std::string_view text);
bool ring_line(State& state, std::string_view text);
bool tree_line(State& state, std::string_view text);
bool trees_line(State& state, std::string_view text);
bool collnet_line(State& state, std::string_view text);

// nccl_log_graph.cc: NCCL's view of the machine
bool graph_line(State& state, std::string_view text);
bool graph_indented(State& state, std::string_view message);  // with its leading blanks
bool pattern_line(State& state, std::string_view text);

}  // namespace topotune::parse::log
