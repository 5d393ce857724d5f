#include "nn_worker/collective/local_collective.h"

#include "gtest/gtest.h"
#include "nn_worker/collective/testing/collective_conformance.h"

namespace satrap {
namespace {

INSTANTIATE_TEST_SUITE_P(Local, CollectiveConformance,
                         testing::Values<CollectiveFactory>(&NewLocalCollectives));

}  // namespace
}  // namespace satrap
