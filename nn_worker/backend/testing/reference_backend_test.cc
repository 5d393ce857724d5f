#include "nn_worker/backend/testing/reference_backend.h"

#include "gtest/gtest.h"
#include "nn_worker/backend/testing/backend_conformance.h"

namespace satrap {
namespace {

INSTANTIATE_TEST_SUITE_P(Reference, BackendConformance,
                         testing::Values<BackendFactory>([] { return NewReferenceBackend(); }));
INSTANTIATE_TEST_SUITE_P(Reference, LinearConformance,
                         testing::Values<BackendFactory>([] { return NewReferenceBackend(); }));
INSTANTIATE_TEST_SUITE_P(Reference, InteractionConformance,
                         testing::Values<BackendFactory>([] { return NewReferenceBackend(); }));
INSTANTIATE_TEST_SUITE_P(Reference, LossConformance,
                         testing::Values<BackendFactory>([] { return NewReferenceBackend(); }));

}  // namespace
}  // namespace satrap
