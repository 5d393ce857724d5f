#include "data_loader/batch/provenance.h"

namespace satrap {

ProvenanceRange ProvenanceOf(const BlockRange& range) {
  const Block& block = *range.block;
  ProvenanceRange provenance;
  provenance.set_split(block.split);
  provenance.set_block(block.index);
  bool begins_block = range.from == 0;
  if (block.is_of_topic()) {
    begins_block = range.begin == Position();
    provenance.set_block_end(*block.end_offset);
    provenance.set_from(range.begin.slot);
    provenance.set_to(range.end.slot);
    if (range.begin.line > 0) provenance.set_from_line(range.begin.line);
    if (range.end.line > 0) provenance.set_to_line(range.end.line);
    provenance.set_records(range.size());
    if (block.last_offset.has_value()) {
      provenance.set_last_offset(*block.last_offset);
      provenance.set_last_hash(block.last_hash);
    }
  } else {
    provenance.set_from(range.from);
    provenance.set_to(range.to);
    provenance.set_block_rows(block.size());
  }
  if (!begins_block) return provenance;
  if (block.bad_records > 0) provenance.set_bad_records(block.bad_records);
  if (block.empty_lines > 0) provenance.set_empty_lines(block.empty_lines);
  return provenance;
}

ProvenanceRange EndOfSplit(uint32_t split, const SplitEnd& end) {
  ProvenanceRange range;
  range.set_split(split);
  range.set_block(end.end_block);
  range.set_from(0);
  range.set_to(0);
  if (end.bad_records > 0) range.set_bad_records(end.bad_records);
  if (end.empty_lines > 0) range.set_empty_lines(end.empty_lines);
  range.set_ends_split(true);
  range.set_split_rows(end.rows);
  return range;
}

ProvenanceRange EndOfPartition(uint32_t split, uint64_t start, uint64_t end) {
  ProvenanceRange range;
  range.set_split(split);
  range.set_block(start);
  range.set_block_end(end);
  range.set_from(0);
  range.set_to(0);
  range.set_ends_split(true);
  return range;
}

ProvenanceRange EmptyOffsets(uint32_t split, uint64_t first, uint64_t end) {
  ProvenanceRange range;
  range.set_split(split);
  range.set_block(first);
  range.set_block_end(end);
  range.set_from(0);
  range.set_to(static_cast<uint32_t>(end - first));
  range.set_records(0);
  return range;
}

}  // namespace satrap
