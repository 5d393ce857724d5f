// Tests the CUDA device on a card. Without a card only the first test runs; the others are skipped.

#include "nn_worker/device/cuda/cuda_device.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn_worker/device/kernels/fill.h"

namespace satrap {
namespace {

using testing::HasSubstr;

constexpr int64_t kTimeoutMs = 60000;
constexpr int64_t kFloats = 1 << 20;
constexpr int64_t kBytes = kFloats * static_cast<int64_t>(sizeof(float));

bool Never() { return false; }

TEST(NoCardTest, WithoutACardTheMessageNamesDriverAndProgram) {
  const auto device = NewCudaDevice(0);
  if (device.ok()) GTEST_SKIP() << "this machine has a card";
  EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(device.status().message()), HasSubstr("cannot train on a GPU: "));
  EXPECT_THAT(std::string(device.status().message()), HasSubstr("CUDA of the driver: "));
  EXPECT_THAT(std::string(device.status().message()), HasSubstr("of this program: 13."));
}

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = NewCudaDevice(0);
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    device_ = std::move(*device);
    stream_ = device_->NewStream().value();
    event_ = device_->NewEvent().value();
  }

  std::unique_ptr<Memory> Room(int64_t bytes) { return device_->Allocate(bytes).value(); }
  std::unique_ptr<Memory> Pinned(int64_t bytes) { return device_->AllocatePinned(bytes).value(); }

  absl::Status Finish() {
    stream_->Record(event_.get());
    return WaitForEvent(event_.get(), kTimeoutMs, Never);
  }

  // Fills `count` values many times over, so that the stream is busy for milliseconds.
  static void KeepBusy(DeviceStream* stream, Memory* memory) {
    for (int i = 0; i < 2000; ++i) {
      Fill(stream, MatrixOf(static_cast<float*>(memory->data()), 1, kFloats),
           static_cast<float>(i));
    }
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<Event> event_;
};

TEST_F(CudaDeviceTest, CopiesAndKernelsOfAStreamRunInOrder) {
  const auto x = Room(kBytes), y = Room(kBytes), pinned = Pinned(kBytes);
  auto* const values = static_cast<float*>(pinned->data());
  for (int64_t i = 0; i < kFloats; ++i) values[i] = static_cast<float>(i);
  stream_->CopyIn(values, x->data(), kBytes);
  stream_->CopyWithin(x->data(), y->data(), kBytes);
  Fill(stream_.get(), MatrixOf(static_cast<float*>(y->data()), 1, 3), 7.0f);
  stream_->CopyOut(y->data(), values, kBytes);
  ASSERT_TRUE(Finish().ok());
  EXPECT_EQ(values[0], 7);
  EXPECT_EQ(values[2], 7);
  for (int64_t i = 3; i < kFloats; ++i) ASSERT_EQ(values[i], static_cast<float>(i));
}

TEST_F(CudaDeviceTest, ATraceNamesOperationsAndTheirTimes) {
  const auto x = Room(kBytes), y = Room(kBytes);
  ASSERT_TRUE(device_->BeginTrace().ok());
  KeepBusy(stream_.get(), x.get());
  stream_->CopyWithin(x->data(), y->data(), kBytes);
  const auto operations = device_->EndTrace();
  ASSERT_TRUE(operations.ok()) << operations.status();
  ASSERT_EQ(operations->size(), 2001u);
  EXPECT_THAT(operations->front().name, HasSubstr("FillKernel"));
  EXPECT_STREQ(operations->back().name, "copy");
  for (const TracedOperation& operation : *operations) EXPECT_GT(operation.us, 0);
}

TEST_F(CudaDeviceTest, AGraphRepeatsWhatWasCaptured) {
  const auto x = Room(kBytes), y = Room(kBytes), pinned = Pinned(kBytes);
  auto* const values = static_cast<float*>(pinned->data());
  const auto graph =
      device_
          ->Capture(stream_.get(),
                    [&] {
                      stream_->CopyWithin(x->data(), y->data(), kBytes);
                      Fill(stream_.get(), MatrixOf(static_cast<float*>(y->data()), 1, 3), 7.0f);
                    })
          .value();
  for (const float value : {1.0f, 2.0f}) {
    Fill(stream_.get(), MatrixOf(static_cast<float*>(x->data()), 1, kFloats), value);
    graph->Launch(stream_.get());
    stream_->CopyOut(y->data(), values, kBytes);
    ASSERT_TRUE(Finish().ok());
    EXPECT_EQ(values[2], 7);
    EXPECT_EQ(values[3], value);
  }
}

TEST_F(CudaDeviceTest, ARefusedCaptureReturnsItsErrorAndTheCardGoesOn) {
  const auto x = Room(kBytes), pinned = Pinned(kBytes);
  const auto refused = device_->Capture(stream_.get(), [&] {
    KeepErrorOfCard(stream_.get(), absl::InternalError("a product: not in a capture"));
  });
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("a product: not in a capture"));
  Fill(stream_.get(), MatrixOf(static_cast<float*>(x->data()), 1, kFloats), 3.0f);
  stream_->CopyOut(x->data(), pinned->data(), kBytes);
  ASSERT_TRUE(Finish().ok());
  EXPECT_EQ(static_cast<float*>(pinned->data())[0], 3);
}

TEST_F(CudaDeviceTest, AnUrgentStreamIsAStream) {
  const auto x = Room(kBytes), pinned = Pinned(kBytes);
  const auto urgent = device_->NewUrgentStream().value();
  const auto filled = device_->NewEvent().value();
  Fill(urgent.get(), MatrixOf(static_cast<float*>(x->data()), 1, kFloats), 4.0f);
  urgent->Record(filled.get());
  stream_->WaitFor(filled.get());
  stream_->CopyOut(x->data(), pinned->data(), kBytes);
  ASSERT_TRUE(Finish().ok());
  EXPECT_EQ(static_cast<float*>(pinned->data())[0], 4);
}

TEST_F(CudaDeviceTest, AnEventOrdersStreams) {
  const auto x = Room(kBytes), pinned = Pinned(kBytes);
  const auto second = device_->NewStream().value();
  KeepBusy(stream_.get(), x.get());
  Fill(stream_.get(), MatrixOf(static_cast<float*>(x->data()), 1, kFloats), -1.0f);
  stream_->Record(event_.get());
  second->WaitFor(event_.get());
  second->CopyOut(x->data(), pinned->data(), kBytes);
  const auto copied = device_->NewEvent().value();
  second->Record(copied.get());
  ASSERT_TRUE(WaitForEvent(copied.get(), kTimeoutMs, Never).ok());
  EXPECT_EQ(static_cast<float*>(pinned->data())[kFloats - 1], -1);
}

TEST_F(CudaDeviceTest, AWaitEndsAtItsDeadlineAndWhenItIsAborted) {
  EXPECT_TRUE(event_->Poll().value()) << "never recorded";
  const auto x = Room(kBytes);
  KeepBusy(stream_.get(), x.get());
  stream_->Record(event_.get());
  EXPECT_EQ(WaitForEvent(event_.get(), 0, Never).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(WaitForEvent(event_.get(), kTimeoutMs, [] { return true; }).code(),
            absl::StatusCode::kCancelled);
  EXPECT_TRUE(WaitForEvent(event_.get(), kTimeoutMs, Never).ok());
}

TEST_F(CudaDeviceTest, AStreamThatIsDestroyedRunsWhatIsEnqueued) {
  const auto x = Room(kBytes), pinned = Pinned(kBytes);
  auto second = device_->NewStream().value();
  KeepBusy(second.get(), x.get());
  second.reset();
  stream_->CopyOut(x->data(), pinned->data(), kBytes);
  ASSERT_TRUE(Finish().ok());
  EXPECT_EQ(static_cast<float*>(pinned->data())[0], 1999);
}

TEST_F(CudaDeviceTest, TooMuchMemoryIsRefusedAndTheCardGoesOn) {
  const absl::Status refused = device_->Allocate(int64_t{1} << 50).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("has no room for 1125899906842624 bytes"));
  EXPECT_EQ(device_->AllocatePinned(int64_t{1} << 50).status().code(),
            absl::StatusCode::kResourceExhausted);
  const auto x = Room(0);
  EXPECT_EQ(x->bytes(), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(Room(100)->data()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(Pinned(100)->data()) % 64, 0u);
  EXPECT_TRUE(Finish().ok());
}

TEST_F(CudaDeviceTest, TellsWhatTheCardHasAndWhatIsFree) {
  const auto before = device_->Room();
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_THAT(before->device, HasSubstr("card 0 ("));
  const int64_t taken = int64_t{1} << 30;
  const auto x = Room(taken);
  const auto after = device_->Room();
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->total_bytes, before->total_bytes);
  EXPECT_LT(after->free_bytes, before->free_bytes) << "unless another program has ended meanwhile";
  EXPECT_LE(before->free_bytes, before->total_bytes);
}

using CudaDeviceDeathTest = CudaDeviceTest;

// Runs in a separate process, because a process cannot use the card after the failure.
TEST_F(CudaDeviceDeathTest, AFailedKernelEndsTheDevice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fail = [this] {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that no card has
    auto* const nowhere = reinterpret_cast<float*>(uintptr_t{1} << 46);
    Fill(stream_.get(), MatrixOf(nowhere, 1, 4), 1.0f);
    const absl::Status first = Finish(), second = Finish();
    const bool told = first.code() == absl::StatusCode::kInternal && first == second;
    fprintf(stderr, "%s\n", first.ToString().c_str());
    std::_Exit(told ? 3 : 4);
  };
  EXPECT_EXIT(fail(), testing::ExitedWithCode(3), "card 0 .*cudaErrorIllegalAddress");
}

}  // namespace
}  // namespace satrap
