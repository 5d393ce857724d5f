// The initial values of a segment. They depend only on (seed, table id, key, segment, element), so
// a row begins the same on any number of embedding PSs, no matter when its key is first seen. The
// functions are part of the format (docs/formats.md, "Initial values"); initializer_test.cc holds
// golden values.
//
// Thread-safe: const, owns no memory of rows.

#ifndef SATRAP_EMBEDDING_PS_INITIALIZER_INITIALIZER_H_
#define SATRAP_EMBEDDING_PS_INITIALIZER_INITIALIZER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/table.pb.h"

namespace satrap {

class Initializer {
 public:
  // `segment` is the position of the segment in its table. If no kind is set, values are
  // uniform(-0.01, 0.01). INVALID_ARGUMENT, naming the field, if a constant is not finite, low >
  // high or stddev < 0.
  static absl::StatusOr<Initializer> Create(const InitializerConfig& config, uint64_t seed,
                                            uint32_t table_id, int segment);

  // Fills `values` with the initial values of the segment in the row of `key`.
  void Fill(uint64_t key, absl::Span<float> values) const;

 private:
  enum class Kind { kConstant, kUniform, kNormal };
  Initializer(Kind kind, double a, double b, uint64_t stream)
      : kind_(kind), a_(a), b_(b), stream_(stream) {}

  Kind kind_;
  double a_;         // value; low; mean
  double b_;         // unused; high - low; standard deviation
  uint64_t stream_;  // of (seed, table, segment)
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_INITIALIZER_INITIALIZER_H_
