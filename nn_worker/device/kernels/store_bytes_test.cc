#include "nn_worker/device/kernels/store_bytes.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

TEST_P(KernelTest, BytesOfTheHostAreStoredAsTheyWereAtTheCall) {
  for (const int64_t bytes : {int64_t{1}, int64_t{12}, int64_t{33}, kMostStoredBytes}) {
    constexpr int64_t kBegin = 3;
    std::vector<uint8_t> host(bytes);
    for (int64_t i = 0; i < bytes; ++i) host[i] = static_cast<uint8_t>(i + 1);
    const int64_t count = kBegin + kMostStoredBytes + 5;
    uint8_t* const to = device_.Put(std::vector<uint8_t>(count, 200));
    StoreBytes(device_.stream(), host.data(), bytes, to + kBegin);
    std::fill(host.begin(), host.end(), uint8_t{0});
    const auto got = device_.Get(to, count);
    for (int64_t i = 0; i < count; ++i) {
      const bool stored = i >= kBegin && i < kBegin + bytes;
      ASSERT_EQ(got[i], stored ? i - kBegin + 1 : 200) << bytes << " bytes, at " << i;
    }
  }
}

}  // namespace
}  // namespace satrap
