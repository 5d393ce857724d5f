#include "nn_worker/backend/deferred_backend.h"

#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/reference_backend.h"

namespace satrap {
namespace {

Tensor Row(Backend* backend, int64_t cols) {
  return TensorF32(static_cast<float*>(backend->Allocate(cols * sizeof(float)).value()), 1, cols);
}

TEST(DeferredBackendTest, OperationsRunAtTheNextSync) {
  const auto backend = NewDeferredBackend(NewReferenceBackend(), HostAccess::kNone);
  const Tensor x = Row(backend.get(), 3);
  std::vector<float> in = {1, 2, 3}, out(3, 7);
  backend->CopyIn(in, x.f32());
  in.assign(3, 50);  // may be reused when CopyIn has returned
  backend->Copy(x, x, /*add=*/true);
  backend->CopyOut(x.f32(), absl::MakeSpan(out));
  EXPECT_EQ(out, std::vector<float>(3, 7));
  backend->Sync();
  EXPECT_EQ(out, (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(backend->HostView(x.data), nullptr);
}

TEST(DeferredBackendDeathTest, TheHostReachesMemoryOnlyThroughAView) {
  const auto backend = NewDeferredBackend(NewReferenceBackend(), HostAccess::kByViewing);
  const Tensor x = Row(backend.get(), 1);
  backend->Fill(x, 5);
  EXPECT_DEATH(*x.f32() = 1, "");
  EXPECT_DEATH(backend->HostView(x.data), "without a Sync");
  backend->Sync();
  EXPECT_DEATH(*x.f32() = 1, "");
  float* const view = static_cast<float*>(backend->HostView(x.data));
  EXPECT_EQ(*view, 5);
  backend->Fill(x, 6);
  EXPECT_DEATH(*view = 1, "") << "a view ends with the next operation";
}

}  // namespace
}  // namespace satrap
