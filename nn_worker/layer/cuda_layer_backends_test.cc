// The backends of layers' tests on a card.

#include "nn_worker/backend/testing/cuda_test_backend.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {

std::vector<LayerBackend> LayerBackends() { return {{"CublasLt", NewCudaTestBackend}}; }

}  // namespace satrap
