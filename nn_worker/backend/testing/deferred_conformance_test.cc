#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/testing/backend_conformance.h"
#include "nn_worker/backend/testing/deferred_backend.h"
#include "nn_worker/backend/testing/reference_backend.h"

namespace satrap {
namespace {

// Shows that the suite itself keeps to the contract, so that a device can be tested with it.
INSTANTIATE_TEST_SUITE_P(
    Deferred, BackendConformance,
    testing::Values<BackendFactory>(
        [] { return NewDeferredBackend(NewReferenceBackend(), HostAccess::kNone); },
        [] { return NewDeferredBackend(NewCpuBackend(2), HostAccess::kNone); }));
INSTANTIATE_TEST_SUITE_P(
    Deferred, LinearConformance,
    testing::Values<BackendFactory>(
        [] { return NewDeferredBackend(NewReferenceBackend(), HostAccess::kNone); },
        [] { return NewDeferredBackend(NewCpuBackend(2), HostAccess::kNone); }));
INSTANTIATE_TEST_SUITE_P(
    Deferred, InteractionConformance,
    testing::Values<BackendFactory>(
        [] { return NewDeferredBackend(NewReferenceBackend(), HostAccess::kNone); },
        [] { return NewDeferredBackend(NewCpuBackend(2), HostAccess::kNone); }));
INSTANTIATE_TEST_SUITE_P(
    Deferred, LossConformance,
    testing::Values<BackendFactory>(
        [] { return NewDeferredBackend(NewReferenceBackend(), HostAccess::kNone); },
        [] { return NewDeferredBackend(NewCpuBackend(2), HostAccess::kNone); }));

}  // namespace
}  // namespace satrap
