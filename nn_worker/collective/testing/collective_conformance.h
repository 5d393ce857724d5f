// Tests of what every Collective must do. Each implementation runs them with its ranks as threads
// of one process:
//
//   INSTANTIATE_TEST_SUITE_P(Local, CollectiveConformance, testing::Values(&NewLocalCollectives));

#ifndef SATRAP_NN_WORKER_COLLECTIVE_TESTING_COLLECTIVE_CONFORMANCE_H_
#define SATRAP_NN_WORKER_COLLECTIVE_TESTING_COLLECTIVE_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/collective/collective.h"

namespace satrap {

// Connects `size` ranks; element r of the result belongs to rank r.
using CollectiveFactory = std::function<std::vector<std::unique_ptr<Collective>>(int size)>;

class CollectiveConformance : public testing::TestWithParam<CollectiveFactory> {
 protected:
  // Runs body(collective) for each of `size` ranks, each in its own thread.
  void Spawn(int size, const std::function<void(Collective*)>& body);
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_TESTING_COLLECTIVE_CONFORMANCE_H_
