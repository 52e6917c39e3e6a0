#include <gtest/gtest.h>

#include <vector>

#include "cuda/kernel_image.h"
#include "cuda/nvml.h"
#include "cuda/pattern.h"
#include "cuda/suite.h"
#include "cuda/transfer.h"

#if __has_include(<cuda.h>)
#include <cuda.h>
#define TOPOTUNE_HAS_CUDA_H
#endif

namespace topotune::cuda {
namespace {

TEST(Pattern, IsReadBack) {
  std::vector<std::byte> data(4096);
  fill_pattern_on_host(data.data(), data.size(), 7);
  EXPECT_EQ(first_wrong_on_host(data.data(), data.size(), 7), std::nullopt);
}

TEST(Pattern, OneWrongBitIsFound) {
  std::vector<std::byte> data(4096);
  fill_pattern_on_host(data.data(), data.size(), 7);
  data[1000] ^= std::byte{1};
  EXPECT_EQ(first_wrong_on_host(data.data(), data.size(), 7), 992u);  // its piece of 16 bytes
}

TEST(Pattern, AnotherSeedOrPlaceDiffers) {
  std::vector<std::byte> data(4096);
  fill_pattern_on_host(data.data(), data.size(), 7);
  EXPECT_EQ(first_wrong_on_host(data.data(), data.size(), 8), 0u);
  EXPECT_EQ(first_wrong_on_host(data.data() + 16, data.size() - 16, 7), 0u);
  EXPECT_NE(pattern_piece(1, 7), pattern_piece((1ull << 32) + 1, 7));
}

TEST(KernelImage, IsAFatBinaryWhereThereIsACompiler) {
  if (kernel_image().empty()) GTEST_SKIP() << "built without a CUDA compiler";
  ASSERT_GT(kernel_image().size(), 16u);
  EXPECT_EQ(kernel_image().substr(0, 4), "\x50\xed\x55\xba");  // the fat binary's magic, 0xba55ed50
  EXPECT_LT(kernel_image().size(), 400'000u);
  EXPECT_FALSE(kernel_toolkit().empty());
}

TEST(CopiesFor, MakeASampleLongEnough) {
  EXPECT_EQ(copies_for(512u << 20, 400, 0.002), 2);
  EXPECT_EQ(copies_for(8, 400, 0.002), 400);
  EXPECT_EQ(copies_for(1u << 30, 50, 0.002), 1);
}

TEST(ThrottleText, NamesTheBits) {
  EXPECT_EQ(throttle_text(0), "");
  EXPECT_EQ(throttle_text(0x1), "");  // idle
  EXPECT_EQ(throttle_text(0x44), "power cap, hardware thermal slowdown");
}

TEST(Driver, IsSaidToBeMissing) {
  const auto driver = Driver::load();
  if (driver) GTEST_SKIP() << "there is a driver here";
  EXPECT_FALSE(driver.error().text.empty());
}

TEST(Suites, PartsHaveNames) { EXPECT_EQ(p2p_parts().front(), "matrix"); }

#ifdef TOPOTUNE_HAS_CUDA_H
TEST(Api, NumbersAreThoseOfTheHeader) {
  EXPECT_EQ(api::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(api::kNoDevice, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(api::kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(api::kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(api::kPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_EQ(api::kNotReady, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(api::kMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(api::kComputeMode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
  EXPECT_EQ(api::kAsyncEngines, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  EXPECT_EQ(api::kMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(api::kMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(api::kSharedPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  EXPECT_EQ(api::kMaxDynamicShared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_EQ(api::kStreamNonBlocking, unsigned{CU_STREAM_NON_BLOCKING});
  EXPECT_EQ(api::kWaitGreaterOrEqual, unsigned{CU_STREAM_WAIT_VALUE_GEQ});
  EXPECT_EQ(api::kHostPortable, unsigned{CU_MEMHOSTALLOC_PORTABLE});
  EXPECT_EQ(api::kHostPortable, unsigned{CU_MEMHOSTREGISTER_PORTABLE});
  EXPECT_EQ(api::kHostMapped, unsigned{CU_MEMHOSTALLOC_DEVICEMAP});
}
#endif

}  // namespace
}  // namespace topotune::cuda
