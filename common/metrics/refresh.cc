#include "common/metrics/refresh.h"

#include <cstdint>
#include <utility>

namespace satrap {
namespace {

constexpr int64_t kPeriodUs = 1'000'000;

}  // namespace

void RefreshEachSecond(Executor* executor, std::function<void()> refresh) {
  refresh();
  // The next call is posted only after this one, so calls never overlap, however slow they are.
  executor->PostAfter(kPeriodUs, [executor, refresh = std::move(refresh)]() mutable {
    RefreshEachSecond(executor, std::move(refresh));
  });
}

}  // namespace satrap
