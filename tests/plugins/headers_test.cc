// The plugins' layouts beside NCCL's own headers, member by member, where they are there (NCCL_SOURCE names a
// source tree of NCCL): this file does not compile where one differs. Nothing of them is needed to build the
// plugins.
#include <gtest/gtest.h>

#ifdef TOPOTUNE_NCCL_PLUGIN_HEADERS

#include <cstddef>
#include <cstdint>
// The order in which NCCL's headers want each other.
#include "nccl.h"
//
#include "nccl_common.h"
//
#if __has_include("plugin/nccl_env.h")  // from 2.28.7 on
#include "plugin/nccl_env.h"
#endif
#include "plugin/nccl_profiler.h"
#include "plugin/nccl_tuner.h"
#include "plugins/env_api.h"
#include "plugins/profiler_api.h"
#include "plugins/tuner_api.h"

namespace topotune::plugins {
namespace {

#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define SAME(ours, a, theirs, b) \
  static_assert(offsetof(ours, a) == offsetof(theirs, b) && sizeof(ours{}.a) == sizeof(theirs{}.b))

// Tables of functions: as many pointers in the same places.
#define TABLE(ours, a, theirs, b) \
  SAME_SIZE(ours, theirs);        \
  SAME(ours, a, theirs, b)
TABLE(TunerV2, get_coll_info, ncclTuner_v2_t, getCollInfo);
TABLE(TunerV3, get_coll_info, ncclTuner_v3_t, getCollInfo);
TABLE(TunerV4, get_coll_info, ncclTuner_v4_t, getCollInfo);
TABLE(TunerV5, get_coll_info, ncclTuner_v5_t, getCollInfo);
SAME(TunerV5, finalize, ncclTuner_v5_t, finalize);
TABLE(NvlDomains, most_ranks, ncclNvlDomainInfo_v5_t, maxRanksPerNvlDomain);
TABLE(TunerConstants, hardware_latencies, ncclTunerConstants_v5_t, hwLatencies);
SAME(TunerConstants, nvls_tree, ncclTunerConstants_v5_t, perChMaxNVLSTreeBws);
#ifdef TUNER_V6_H_
TABLE(TunerV6, get_chunk_size, ncclTuner_v6_t, getChunkSize);
#endif
#ifdef ENV_V1_H_
TABLE(EnvV1, get_env, ncclEnv_v1_t, getEnv);
#endif
#ifdef ENV_V2_H_
TABLE(EnvV2, get_env, ncclEnv_v2_t, getEnv);
#endif
TABLE(ProfilerUnnamed<DescrV1>, record, ncclProfiler_v1_t, recordEventState);
TABLE(ProfilerUnnamed<DescrV2>, record, ncclProfiler_v2_t, recordEventState);
TABLE(ProfilerUnnamed<DescrV3>, record, ncclProfiler_v3_t, recordEventState);
TABLE(ProfilerV4, start, ncclProfiler_v4_t, startEvent);
TABLE(ProfilerNamed<DescrV5>, record, ncclProfiler_v5_t, recordEventState);

// Events: one line a member, with the versions that have it under this name.
#define V(n, a, b) SAME(DescrV##n, a, ncclProfilerEventDescr_v##n##_t, b)
#define EVENT(n) SAME_SIZE(DescrV##n, ncclProfilerEventDescr_v##n##_t)
#ifdef PROFILER_V6_H_
#define V6(a, b) V(6, a, b)
EVENT(6);
TABLE(ProfilerNamed<DescrV6>, record, ncclProfiler_v6_t, recordEventState);
#else
#define V6(a, b) static_assert(true)
#endif
#define V1_TO_V3(a, b) \
  V(1, a, b);          \
  V(2, a, b);          \
  V(3, a, b)
#define FROM_V5(a, b) \
  V(5, a, b);         \
  V6(a, b)
#define FROM_V4(a, b) \
  V(4, a, b);         \
  FROM_V5(a, b)
#define FROM_V3(a, b) \
  V(3, a, b);         \
  FROM_V4(a, b)
#define ALL(a, b) \
  V1_TO_V3(a, b); \
  FROM_V4(a, b)
EVENT(1);
EVENT(2);
EVENT(3);
EVENT(4);
EVENT(5);
ALL(type, type);
ALL(parent, parentObj);
ALL(rank, rank);
V1_TO_V3(coll.comm, coll.commHash);
ALL(coll.number, coll.seqNumber);
ALL(coll.function, coll.func);
ALL(coll.count, coll.count);
ALL(coll.root, coll.root);
ALL(coll.datatype, coll.datatype);
V1_TO_V3(coll.channels, coll.nMaxChannels);
FROM_V4(coll.channels, coll.nChannels);
ALL(coll.warps, coll.nWarps);
ALL(coll.algorithm, coll.algo);
ALL(coll.protocol, coll.proto);
FROM_V5(coll.parent_group, coll.parentGroup);
V1_TO_V3(p2p.comm, p2p.commHash);
ALL(p2p.function, p2p.func);
ALL(p2p.datatype, p2p.datatype);
ALL(p2p.count, p2p.count);
ALL(p2p.peer, p2p.peer);
FROM_V4(p2p.channels, p2p.nChannels);
ALL(proxy_op.pid, proxyOp.pid);
ALL(proxy_op.channel, proxyOp.channelId);
ALL(proxy_op.peer, proxyOp.peer);
ALL(proxy_op.is_send, proxyOp.isSend);
FROM_V3(kernel.channel, kernelCh.channelId);
FROM_V4(kernel.timer, kernelCh.pTimer);
FROM_V5(coll_api.function, collApi.func);
FROM_V5(coll_api.captured, collApi.graphCaptured);
V6(ce.function, ceColl.func);
V6(ce.count, ceColl.count);
V6(ce.root, ceColl.root);
V6(ce.datatype, ceColl.datatype);
static_assert(sizeof(StateArgs::timer) == 8);

TEST(Headers, LayoutsAreNcclsOwn) {
  EXPECT_EQ(static_cast<int>(ncclProfileColl), static_cast<int>(kColl));
  EXPECT_EQ(static_cast<int>(ncclProfileP2p), static_cast<int>(kP2p));
  EXPECT_EQ(static_cast<int>(ncclProfileProxyOp), static_cast<int>(kProxyOp));
  EXPECT_EQ(static_cast<int>(ncclProfileProxyStep), static_cast<int>(kProxyStep));
  EXPECT_EQ(static_cast<int>(ncclProfileCollApi), static_cast<int>(kCollApi));
  EXPECT_EQ(static_cast<int>(ncclProfileP2pApi), static_cast<int>(kP2pApi));
  EXPECT_EQ(static_cast<int>(ncclProfileKernelCh), static_cast<int>(kKernelCh));
  EXPECT_EQ(static_cast<int>(ncclProfilerProxyStepSendWait), kSendWait);
  EXPECT_EQ(static_cast<int>(ncclProfilerKernelChStop), kKernelChStop);
}

}  // namespace
}  // namespace topotune::plugins

#else

TEST(Headers, LayoutsAreNcclsOwn) { GTEST_SKIP() << "NCCL's plugin headers are not here"; }

#endif
