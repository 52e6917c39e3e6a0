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
#include "plugin/nccl_env.h"
#include "plugin/nccl_profiler.h"
#include "plugin/nccl_tuner.h"
#include "plugins/env_api.h"
#include "plugins/profiler_api.h"
#include "plugins/tuner_api.h"

namespace topotune::plugins {
namespace {

#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define SAME_PLACE(ours, a, theirs, b) \
  static_assert(offsetof(ours, a) == offsetof(theirs, b) && sizeof(ours::a) == sizeof(theirs::b))
#define SAME_EVENT(ours, theirs, a, b) \
  static_assert(offsetof(ours, a) == offsetof(theirs, b) && sizeof(ours{}.a) == sizeof(theirs{}.b))

// Both plugins' tables of functions: as many pointers in the same places.
SAME_SIZE(TunerV2, ncclTuner_v2_t);
SAME_SIZE(TunerV3, ncclTuner_v3_t);
SAME_SIZE(TunerV4, ncclTuner_v4_t);
SAME_SIZE(TunerV5, ncclTuner_v5_t);
SAME_PLACE(TunerV2, get_coll_info, ncclTuner_v2_t, getCollInfo);
SAME_PLACE(TunerV3, get_coll_info, ncclTuner_v3_t, getCollInfo);
SAME_PLACE(TunerV4, get_coll_info, ncclTuner_v4_t, getCollInfo);
SAME_PLACE(TunerV5, get_coll_info, ncclTuner_v5_t, getCollInfo);
SAME_PLACE(TunerV5, finalize, ncclTuner_v5_t, finalize);
SAME_SIZE(NvlDomains, ncclNvlDomainInfo_v5_t);
SAME_PLACE(NvlDomains, most_ranks, ncclNvlDomainInfo_v5_t, maxRanksPerNvlDomain);
SAME_SIZE(TunerConstants, ncclTunerConstants_v5_t);
SAME_PLACE(TunerConstants, hardware_latencies, ncclTunerConstants_v5_t, hwLatencies);
SAME_PLACE(TunerConstants, nvls_tree, ncclTunerConstants_v5_t, perChMaxNVLSTreeBws);
#ifdef TUNER_V6_H_
SAME_SIZE(TunerV6, ncclTuner_v6_t);
SAME_PLACE(TunerV6, get_chunk_size, ncclTuner_v6_t, getChunkSize);
#endif
SAME_SIZE(EnvV1, ncclEnv_v1_t);
SAME_PLACE(EnvV1, get_env, ncclEnv_v1_t, getEnv);
#ifdef ENV_V2_H_
SAME_SIZE(EnvV2, ncclEnv_v2_t);
SAME_PLACE(EnvV2, get_env, ncclEnv_v2_t, getEnv);
#endif

SAME_SIZE(ProfilerUnnamed<DescrV1>, ncclProfiler_v1_t);
SAME_SIZE(ProfilerV4, ncclProfiler_v4_t);
SAME_SIZE(ProfilerNamed<DescrV5>, ncclProfiler_v5_t);
SAME_PLACE(ProfilerV4, start, ncclProfiler_v4_t, startEvent);
SAME_PLACE(ProfilerNamed<DescrV5>, record, ncclProfiler_v5_t, recordEventState);

// Events. `parent` and what a proxy operation says are alike in all versions.
#define SAME_FRAME(ours, theirs)                                 \
  SAME_SIZE(ours, theirs);                                       \
  SAME_EVENT(ours, theirs, type, type);                          \
  SAME_EVENT(ours, theirs, parent, parentObj);                   \
  SAME_EVENT(ours, theirs, rank, rank);                          \
  SAME_EVENT(ours, theirs, coll.number, coll.seqNumber);         \
  SAME_EVENT(ours, theirs, coll.function, coll.func);            \
  SAME_EVENT(ours, theirs, coll.count, coll.count);              \
  SAME_EVENT(ours, theirs, coll.root, coll.root);                \
  SAME_EVENT(ours, theirs, coll.datatype, coll.datatype);        \
  SAME_EVENT(ours, theirs, coll.warps, coll.nWarps);             \
  SAME_EVENT(ours, theirs, coll.algorithm, coll.algo);           \
  SAME_EVENT(ours, theirs, coll.protocol, coll.proto);           \
  SAME_EVENT(ours, theirs, p2p.function, p2p.func);              \
  SAME_EVENT(ours, theirs, p2p.datatype, p2p.datatype);          \
  SAME_EVENT(ours, theirs, p2p.count, p2p.count);                \
  SAME_EVENT(ours, theirs, p2p.peer, p2p.peer);                  \
  SAME_EVENT(ours, theirs, proxy_op.pid, proxyOp.pid);           \
  SAME_EVENT(ours, theirs, proxy_op.channel, proxyOp.channelId); \
  SAME_EVENT(ours, theirs, proxy_op.peer, proxyOp.peer);         \
  SAME_EVENT(ours, theirs, proxy_op.is_send, proxyOp.isSend)

SAME_FRAME(DescrV1, ncclProfilerEventDescr_v1_t);
SAME_EVENT(DescrV1, ncclProfilerEventDescr_v1_t, coll.comm, coll.commHash);
SAME_EVENT(DescrV1, ncclProfilerEventDescr_v1_t, coll.channels, coll.nMaxChannels);
SAME_EVENT(DescrV1, ncclProfilerEventDescr_v1_t, p2p.comm, p2p.commHash);
SAME_FRAME(DescrV2, ncclProfilerEventDescr_v2_t);
SAME_EVENT(DescrV2, ncclProfilerEventDescr_v2_t, coll.comm, coll.commHash);
SAME_EVENT(DescrV2, ncclProfilerEventDescr_v2_t, coll.channels, coll.nMaxChannels);
SAME_FRAME(DescrV3, ncclProfilerEventDescr_v3_t);
SAME_EVENT(DescrV3, ncclProfilerEventDescr_v3_t, coll.comm, coll.commHash);
SAME_EVENT(DescrV3, ncclProfilerEventDescr_v3_t, coll.channels, coll.nMaxChannels);
SAME_EVENT(DescrV3, ncclProfilerEventDescr_v3_t, kernel.channel, kernelCh.channelId);
SAME_FRAME(DescrV4, ncclProfilerEventDescr_v4_t);
SAME_EVENT(DescrV4, ncclProfilerEventDescr_v4_t, coll.channels, coll.nChannels);
SAME_EVENT(DescrV4, ncclProfilerEventDescr_v4_t, p2p.channels, p2p.nChannels);
SAME_EVENT(DescrV4, ncclProfilerEventDescr_v4_t, kernel.timer, kernelCh.pTimer);
SAME_FRAME(DescrV5, ncclProfilerEventDescr_v5_t);
SAME_EVENT(DescrV5, ncclProfilerEventDescr_v5_t, coll.parent_group, coll.parentGroup);
SAME_EVENT(DescrV5, ncclProfilerEventDescr_v5_t, coll.channels, coll.nChannels);
SAME_EVENT(DescrV5, ncclProfilerEventDescr_v5_t, p2p.channels, p2p.nChannels);
SAME_EVENT(DescrV5, ncclProfilerEventDescr_v5_t, kernel.timer, kernelCh.pTimer);
SAME_EVENT(DescrV5, ncclProfilerEventDescr_v5_t, coll_api.captured, collApi.graphCaptured);
#ifdef PROFILER_V6_H_
SAME_FRAME(DescrV6, ncclProfilerEventDescr_v6_t);
SAME_EVENT(DescrV6, ncclProfilerEventDescr_v6_t, ce.function, ceColl.func);
SAME_EVENT(DescrV6, ncclProfilerEventDescr_v6_t, ce.count, ceColl.count);
SAME_EVENT(DescrV6, ncclProfilerEventDescr_v6_t, ce.root, ceColl.root);
SAME_EVENT(DescrV6, ncclProfilerEventDescr_v6_t, ce.datatype, ceColl.datatype);
#endif
static_assert(sizeof(StateArgs::timer) == 8);

TEST(Headers, LayoutsAreNcclsOwn) {
  EXPECT_EQ(static_cast<int>(ncclProfileColl), static_cast<int>(kColl));
  EXPECT_EQ(static_cast<int>(ncclProfileP2p), static_cast<int>(kP2p));
  EXPECT_EQ(static_cast<int>(ncclProfileProxyOp), static_cast<int>(kProxyOp));
  EXPECT_EQ(static_cast<int>(ncclProfileProxyStep), static_cast<int>(kProxyStep));
  EXPECT_EQ(static_cast<int>(ncclProfileKernelCh), static_cast<int>(kKernelCh));
  EXPECT_EQ(static_cast<int>(ncclProfilerProxyStepSendWait), kSendWait);
  EXPECT_EQ(static_cast<int>(ncclProfilerKernelChStop), kKernelChStop);
}

}  // namespace
}  // namespace topotune::plugins

#else

TEST(Headers, LayoutsAreNcclsOwn) { GTEST_SKIP() << "NCCL's plugin headers are not here"; }

#endif
