// Counts what a training step enqueues in addition to its graph. Between two operations a card
// idles for one to two microseconds, and for longer before and after a copy from the host. In steps
// of small batches this matters.

#include <memory>

#include "common/base/check.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/backend/benchmark/model_step.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/device/testing/counting_device.h"
#include "nn_worker/products/library_products.h"
#include "nn_worker/products/testing/kernel_planner.h"
#include "nn_worker/zoo/zoo.h"
#include "proto/job.pb.h"

namespace satrap {
namespace {

TEST(StepLaunchTest, ASettledStepEnqueuesAGraphAndFewOperationsBesideIt) {
  for (const char* model : {"deepfm", "dlrm"}) {
    DeviceCounts counts;
    const std::unique_ptr<Backend> backend =
        NewDeviceBackend(std::make_unique<CountingDevice>(&counts),
                         NewLibraryProducts(NewKernelPlanner()))
            .value();
    ModelStepOptions options;
    options.model = ZooModel(model).value();
    options.data = {4, 5, 16};
    options.samples = 40;
    options.precision = NnWorkerConfig::BF16;
    options.backend = backend.get();
    const auto step = ModelStep::Create(options);
    CHECK_OK(step.status());
    // The second step is captured.
    for (int i = 0; i < 3; ++i) CHECK_OK((*step)->Run());
    counts = {};
    CHECK_OK((*step)->Run());
    EXPECT_EQ(counts.graphs, 1) << model;
    // One launch each for the gather, the numbers of the pass, the sums of the step, the decision
    // and the optimizer, and two for the scatter.
    EXPECT_LE(counts.launches, 7) << model;
    EXPECT_EQ(counts.copies_in + counts.other_copies, 1) << "the labels alone, of " << model;
    EXPECT_LE(counts.events, 1) << "the end of the copy, of " << model;
    EXPECT_LT((*step)->ReadLoss(), 10) << model;
  }
}

}  // namespace
}  // namespace satrap
