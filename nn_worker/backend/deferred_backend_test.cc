#include "nn_worker/backend/deferred_backend.h"

#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/reference_backend.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {
namespace {

Tensor Row(Backend* backend, int64_t cols) {
  return AllocateTensor(backend, DType::kF32, 1, cols).value();
}

TEST(DeferredBackendTest, OperationsRunAtTheNextSync) {
  const auto backend = NewDeferredBackend(NewReferenceBackend(), HostAccess::kNone);
  const Tensor x = Row(backend.get(), 3);
  std::vector<float> in = {1, 2, 3}, out(3, 7);
  CopyIn(backend.get(), in, x);
  in.assign(3, 50);  // may be reused when CopyIn has returned
  backend->Copy(x, x, /*add=*/true);
  CopyOut(backend.get(), x, absl::MakeSpan(out));
  EXPECT_EQ(out, std::vector<float>(3, 7));
  backend->Sync();
  EXPECT_EQ(out, (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(backend->HostView(x.data), nullptr);
}

float* Address(const Tensor& x) { return static_cast<float*>(x.data); }

TEST(DeferredBackendDeathTest, TheHostReachesMemoryOnlyThroughAView) {
  const auto backend = NewDeferredBackend(NewReferenceBackend(), HostAccess::kByViewing);
  const Tensor x = Row(backend.get(), 1);
  backend->Fill(x, 5);
  EXPECT_DEATH(*Address(x) = 1, "");
  EXPECT_DEATH(backend->HostView(x.data), "without a Sync");
  backend->Sync();
  EXPECT_DEATH(*Address(x) = 1, "");
  float* const view = static_cast<float*>(backend->HostView(x.data));
  EXPECT_EQ(*view, 5);
  *view = 8;
  EXPECT_EQ(ReadFloats(backend.get(), x)[0], 8);
  EXPECT_DEATH(*view = 1, "") << "a view ends with the next operation";
}

TEST(DeferredBackendDeathTest, AnOperationTakesOnlyMemoryOfItsBackend) {
  const auto backend = NewDeferredBackend(NewReferenceBackend(), HostAccess::kNone);
  const auto other = NewDeferredBackend(NewReferenceBackend(), HostAccess::kNone);
  const Tensor x = Row(backend.get(), 3), of_other = Row(other.get(), 3);
  std::vector<float> of_host(3);
  EXPECT_DEATH(backend->Fill(TensorF32(of_host.data(), 1, 3), 1), "of another backend");
  EXPECT_DEATH(backend->Copy(x, of_other, /*add=*/false), "of another backend");
  EXPECT_DEATH(backend->RowSum({x, of_other}, x), "of another backend");
  EXPECT_DEATH(backend->Fill(TensorF32(x.data, 1, 4), 1), "of another backend")
      << "a value more than was allocated";
}

}  // namespace
}  // namespace satrap
