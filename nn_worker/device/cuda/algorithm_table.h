// Chooses the algorithm of cuBLASLt that a plan uses. The library's heuristic offers several, the
// best first by its own estimate, but the first can take twice as long as another one. A run must
// not time the algorithms, because all ranks and all runs have to use the same one. So a program
// (nn_worker/backend/benchmark, algorithm_table) times them once, and its output is kept in
// measured_algorithms.cc.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_DEVICE_CUDA_ALGORITHM_TABLE_H_
#define SATRAP_NN_WORKER_DEVICE_CUDA_ALGORITHM_TABLE_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "nn_worker/device/product_spec.h"

namespace satrap {

// What distinguishes an algorithm from others of the same version of the library: its values of
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
// begin at multiples of 16 bytes. A forward product was measured with a bias and a ReLU, and with
// results of the type of its factors. A weight gradient was measured in its pieces
// (WeightGradientPiece).
struct MeasuredAlgorithm {
  AlgorithmPlace place;
  ProductPrecision precision;
  LayerProduct product;
  int64_t samples;  // for which the product was planned
  int64_t in, out;
  AlgorithmConfig algorithm;
};

// All measured algorithms. Other cards and other versions of the library have no entries.
absl::Span<const MeasuredAlgorithm> MeasuredAlgorithms();

// The entry for the product of `spec`, whatever its epilogue, its type of result and its pieces: if
// the algorithm does not support these, the library does not offer it. If the product was measured
// only for other numbers of samples, the entry with the nearest number by ratio is returned, and of
// two that are equally near, the one with fewer samples. Null if there is no entry, or if a matrix
// of the spec is not aligned to 16 bytes.
const MeasuredAlgorithm* FindAlgorithm(absl::Span<const MeasuredAlgorithm> table,
                                       const AlgorithmPlace& place, const ProductSpec& spec);

// The index of the algorithm of `measured` among those that the library offers; 0 if it is not
// among them or `measured` is null.
int PreferredAlgorithm(absl::Span<const AlgorithmConfig> offered,
                       const MeasuredAlgorithm* measured);

// The parts of measured_algorithms.cc: the lines before the entries, an entry, and the lines after
// them. All entries are of `place`.
std::string SourceBegin(const AlgorithmPlace& place, const std::string& card);
std::string SourceOf(const MeasuredAlgorithm& entry);
std::string SourceEnd();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_CUDA_ALGORITHM_TABLE_H_
