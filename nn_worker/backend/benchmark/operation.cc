#include "nn_worker/backend/benchmark/operation.h"

namespace satrap {

std::vector<BenchmarkOperation> BenchmarkOperations() {
  std::vector<BenchmarkOperation> all;
  for (const absl::Span<const BenchmarkOperation> some :
       {LinearLayerOperations(), ElementwiseOperations(), BatchNormOperations(),
        SequenceOperations(), SumOperations(), PairOperations(), GroupOperations(),
        LossOperationsToMeasure(), RowExchangeOperations(), StepOperationsToMeasure()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace satrap
