// Tests of what every DeviceReduction must do. Each implementation runs them with its ranks as
// threads of one process, each with its own device:
//
//   INSTANTIATE_TEST_SUITE_P(Local, DeviceReductionConformance, testing::Values(...));

#ifndef SATRAP_NN_WORKER_COLLECTIVE_TESTING_DEVICE_REDUCTION_CONFORMANCE_H_
#define SATRAP_NN_WORKER_COLLECTIVE_TESTING_DEVICE_REDUCTION_CONFORMANCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "nn_worker/collective/device_reduction.h"
#include "nn_worker/device/device.h"

namespace satrap {

struct ReductionRanks {
  // The maximum number of ranks for which this machine has devices. If it is 0, the tests are
  // skipped.
  std::function<int()> max_size;
  // Whether a rank gets an error when another rank is destroyed. If not, a sum waits until Abort is
  // called.
  bool notices_lost_peers = false;
  bool same_bits_on_every_run = false;
  std::function<std::unique_ptr<Device>(int rank)> device;
  // Connects `size` ranks; element r belongs to rank r.
  std::function<std::vector<std::unique_ptr<DeviceReduction>>(int size)> connect;
};

class DeviceReductionConformance : public testing::TestWithParam<ReductionRanks> {
 public:
  // A rank with its device, for the thread that uses it.
  class Rank {
   public:
    Rank(int number, std::unique_ptr<Device> device, std::unique_ptr<DeviceReduction> reduction);
    int number() const { return number_; }
    DeviceReduction* reduction() { return reduction_.get(); }
    void Leave() { reduction_.reset(); }
    // Enqueues the sum of a copy of `values`, in place.
    absl::Status Start(const std::vector<float>& values);
    // Waits for the sum that Start has enqueued, and polls for errors while it waits, as users
    // must.
    absl::StatusOr<std::vector<float>> Finish();
    absl::StatusOr<std::vector<float>> Sum(const std::vector<float>& values);

   private:
    const int number_;
    const std::unique_ptr<Device> device_;
    std::unique_ptr<DeviceReduction> reduction_;
    int64_t count_ = 0;
    std::unique_ptr<Memory> values_, pinned_;
    std::unique_ptr<Event> done_;
    std::unique_ptr<DeviceStream> stream_;  // ends before its memory
  };

 protected:
  void SetUp() override;
  // Runs body(rank) for each of `size` ranks, each in its own thread.
  void Spawn(int size, const std::function<void(Rank*)>& body);
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_TESTING_DEVICE_REDUCTION_CONFORMANCE_H_
