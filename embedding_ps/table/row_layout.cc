#include "embedding_ps/table/row_layout.h"

#include <cstdint>
#include <utility>

#include "embedding_ps/table/row_lines.h"

namespace satrap {
namespace {

size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

size_t Stride(size_t row_bytes) {
  const size_t whole_lines = RoundUp(row_bytes, kCacheLineBytes);
  return (whole_lines - row_bytes) * 8 <= row_bytes ? whole_lines
                                                    : RoundUp(row_bytes, sizeof(uint64_t));
}

}  // namespace

RowLayout::RowLayout(std::vector<Segment> segments) : segments_(std::move(segments)) {
  for (Segment& segment : segments_) {
    segment.value_offset = num_values_;
    num_values_ += segment.dim;
  }
  num_floats_ = num_values_;
  for (Segment& segment : segments_) {
    segment.state_offset = num_floats_;
    num_floats_ += segment.state_size;
  }
  stride_bytes_ = Stride(static_cast<size_t>(num_floats_) * sizeof(float));
}

}  // namespace satrap
