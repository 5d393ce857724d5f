// Where the parts of a row are: the values of all segments in declaration order, then their
// optimizer states in the same order, all float32 (docs/formats.md, "Row").
//
// A value type; constant after construction.

#ifndef SATRAP_EMBEDDING_PS_TABLE_ROW_LAYOUT_H_
#define SATRAP_EMBEDDING_PS_TABLE_ROW_LAYOUT_H_

#include <cstddef>
#include <vector>

namespace satrap {

class RowLayout {
 public:
  struct Segment {
    int dim = 0;
    int state_size = 0;
    int value_offset = 0;  // both offsets in floats from the start of the row
    int state_offset = 0;
  };

  RowLayout() = default;
  // Takes the dims and state sizes of `segments` and computes the offsets.
  explicit RowLayout(std::vector<Segment> segments);

  const std::vector<Segment>& segments() const { return segments_; }
  int num_values() const { return num_values_; }
  // The number of values and state floats together.
  int num_floats() const { return num_floats_; }
  // The distance between two rows in memory. It is a multiple of a cache line if that costs at most
  // an eighth more, otherwise a multiple of 8.
  size_t stride_bytes() const { return stride_bytes_; }

 private:
  std::vector<Segment> segments_;
  int num_values_ = 0;
  int num_floats_ = 0;
  size_t stride_bytes_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_ROW_LAYOUT_H_
