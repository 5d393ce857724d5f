// The backends on a card, for tests of layers.

#include "nn_worker/backend/testing/cuda_test_backend.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {

std::vector<LayerBackend> LayerBackends() { return {{"CublasLt", NewCudaTestBackend}}; }

}  // namespace satrap
