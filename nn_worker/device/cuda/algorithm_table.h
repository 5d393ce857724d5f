// Which algorithm of cuBLASLt a plan takes. The library's heuristic offers several, best first by
// its own reckoning, and the first is up to twice as slow as another one. A run must not time them,
// because all ranks and all runs have to take the same one. So `algorithm_table` (a program of
// nn_worker/backend/benchmark) times them once, and its output is kept in measured_algorithms.cc.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_NN_WORKER_DEVICE_CUDA_ALGORITHM_TABLE_H_
#define SATRAP_NN_WORKER_DEVICE_CUDA_ALGORITHM_TABLE_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "nn_worker/device/product_spec.h"

namespace satrap {

// What tells an algorithm from others of the same version of the library: its values of
// CUBLASLT_ALGO_CONFIG_ ID, TILE_ID, SPLITK_NUM, REDUCTION_SCHEME, CTA_SWIZZLING, CUSTOM_OPTION,
// STAGES_ID, INNER_SHAPE_ID and CLUSTER_SHAPE_ID.
using AlgorithmConfig = std::array<int32_t, 9>;

// Where algorithms were measured, or will run.
struct AlgorithmPlace {
  int64_t library = 0;          // cublasLtGetVersion
  int32_t capability = 0;       // 90 for compute capability 9.0
  int32_t multiprocessors = 0;  // of the card
};

// The products of a layer, as at the top of product_spec.h.
enum class LayerProduct { kForward, kInputGradient, kWeightGradient };

// The fastest algorithm for a product of a layer whose weights are (in, out), with matrices that
// begin at multiples of 16 bytes. A forward product was measured with a bias and a ReLU and with
// results of the type of its factors, a weight gradient in its pieces (WeightGradientPiece).
struct MeasuredAlgorithm {
  AlgorithmPlace place;
  ProductPrecision precision;
  LayerProduct product;
  int64_t samples;  // for which the product was planned
  int64_t in, out;
  AlgorithmConfig algorithm;
};

// Nothing is known of other cards and other versions.
absl::Span<const MeasuredAlgorithm> MeasuredAlgorithms();

// The entry for the product of `spec`, whatever its epilogue, its type of result and its pieces:
// the library does not offer the algorithm where it does not support these. If the product was
// measured for other numbers of samples only, it is the entry of the nearest of them by ratio, or
// of the smaller one if two are as near. Null if there is none, or a matrix of the spec is not
// aligned to 16 bytes.
const MeasuredAlgorithm* FindAlgorithm(absl::Span<const MeasuredAlgorithm> table,
                                       const AlgorithmPlace& place, const ProductSpec& spec);

// The index of the algorithm of `measured` among those that the library offers; 0 if it is not
// among them or `measured` is null.
int PreferredAlgorithm(absl::Span<const AlgorithmConfig> offered,
                       const MeasuredAlgorithm* measured);

// measured_algorithms.cc: the lines before the entries, an entry, and the lines after them. All
// entries are of `place`.
std::string SourceBegin(const AlgorithmPlace& place, const std::string& card);
std::string SourceOf(const MeasuredAlgorithm& entry);
std::string SourceEnd();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_CUDA_ALGORITHM_TABLE_H_
