#include "nn_worker/backend/testing/deferred_backend.h"

#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/reference_backend.h"

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

absl::Span<uint8_t> Pinned(Backend* backend, int64_t bytes) {
  return {static_cast<uint8_t*>(backend->AllocatePinned(bytes).value()),
          static_cast<size_t>(bytes)};
}

TEST(DeferredBackendTest, AnEventHappensAtTheSecondPoll) {
  const auto backend = NewDeferredBackend(NewReferenceBackend(), HostAccess::kNone);
  const Tensor x = Row(backend.get(), 1);
  std::vector<float> out(1, 7), later(1, 7);
  backend->Fill(x, 5);
  CopyOut(backend.get(), x, absl::MakeSpan(out));
  const auto event = backend->NewEvent().value();
  backend->Record(Lane::kOperations, event.get());
  CopyOut(backend.get(), x, absl::MakeSpan(later));
  EXPECT_FALSE(*backend->Poll(event.get()));
  EXPECT_EQ(out[0], 7);
  EXPECT_TRUE(*backend->Poll(event.get()));
  EXPECT_EQ(out[0], 5);
  EXPECT_EQ(later[0], 7) << "runs no further than the event";
}

// What is wrong on a device if a WaitFor is missing is wrong here.
TEST(DeferredBackendTest, LanesThatDoNotWaitForOneAnotherSeeOldValues) {
  const auto backend = NewDeferredBackend(NewReferenceBackend(), HostAccess::kNone);
  const Tensor x = Row(backend.get(), 1), y = Row(backend.get(), 1);
  const absl::Span<uint8_t> in = Pinned(backend.get(), 4), out = Pinned(backend.get(), 4);
  in[3] = 0x40;  // 2.0f
  backend->StartCopyIn(in, x);
  backend->Copy(x, y, /*add=*/false);
  backend->Fill(x, 9);
  backend->StartCopyOut(y, out);
  backend->Sync();
  EXPECT_EQ(ReadFloats(backend.get(), y)[0], 0) << "before the copy in";
  EXPECT_EQ(ReadFloats(backend.get(), x)[0], 2) << "the copy in comes last";
  EXPECT_EQ(out[3], 0) << "before the operation";
}

TEST(DeferredBackendTest, ACopyOfItsOwnLaneReadsTheHostsMemoryWhenItRuns) {
  const auto backend = NewDeferredBackend(NewReferenceBackend(), HostAccess::kNone);
  const Tensor x = Row(backend.get(), 1);
  const absl::Span<uint8_t> in = Pinned(backend.get(), 4);
  backend->StartCopyIn(in, x);
  in[3] = 0x40;  // too early
  backend->Sync();
  EXPECT_EQ(ReadFloats(backend.get(), x)[0], 2);
}

TEST(DeferredBackendTest, AWaitEndsAtItsDeadlineOrWhenItIsAborted) {
  const auto backend = NewDeferredBackend(NewReferenceBackend(), HostAccess::kNone);
  const Tensor x = Row(backend.get(), 1);
  const auto event = backend->NewEvent().value();
  const auto record = [&] {
    backend->Fill(x, 1);
    backend->Record(Lane::kOperations, event.get());
  };
  const auto not_aborted = [] { return false; };
  record();
  EXPECT_TRUE(absl::IsDeadlineExceeded(AwaitEvent(backend.get(), event.get(), 0, not_aborted)));
  EXPECT_TRUE(AwaitEvent(backend.get(), event.get(), 0, not_aborted).ok())
      << "may be waited for again";
  record();
  EXPECT_TRUE(
      absl::IsCancelled(AwaitEvent(backend.get(), event.get(), 60000, [] { return true; })));
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

TEST(DeferredBackendDeathTest, AViewStaysUntilItsOwnAllocationIsUsed) {
  const auto backend = NewDeferredBackend(NewReferenceBackend(), HostAccess::kByViewing);
  const Tensor x = Row(backend.get(), 1), other = Row(backend.get(), 1);
  backend->Sync();
  float* const view = static_cast<float*>(backend->HostView(x.data));
  backend->Fill(other, 1);
  *view = 3;
  backend->Fill(x, 1);
  EXPECT_DEATH(*view = 4, "");
}

TEST(DeferredBackendDeathTest, ACopyOfItsOwnLaneTakesPinnedMemoryOnly) {
  const auto backend = NewDeferredBackend(NewReferenceBackend(), HostAccess::kNone);
  const Tensor x = Row(backend.get(), 1);
  std::vector<uint8_t> pageable(4);
  EXPECT_DEATH(backend->StartCopyIn(pageable, x), "not pinned");
  EXPECT_DEATH(backend->StartCopyOut(x, absl::MakeSpan(pageable)), "not pinned");
  const absl::Span<uint8_t> pinned = Pinned(backend.get(), 4);
  EXPECT_FALSE(backend->IsPinned(pinned.data(), 5));
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
