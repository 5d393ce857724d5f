#include "data_loader/parser/record_parser.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "data_loader/parser/string_id.h"
#include "proto/record.pb.h"

namespace satrap {
namespace {

class RecordParser final : public Parser {
 public:
  explicit RecordParser(const RecordSchema& schema) : schema_(schema) {}

 private:
  const char* ParseRow(absl::string_view bytes, RecordBlock* block) override {
    // protobuf counts bytes with an int.
    if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return "too long";
    // The message is kept from row to row, so that its lists keep their memory.
    if (!record_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return "not a Record message";
    }
    if (const char* reason = TakeIds(block); reason != nullptr) return reason;
    if (const char* reason = TakeLists(block); reason != nullptr) return reason;
    return TakeNumbers(block);
  }

  const char* TakeIds(RecordBlock* block) {
    const size_t columns = schema_.ids.size();
    uint64_t* const ids = block->row_ids();
    if (record_.strings_size() > 0) {
      if (record_.ids_size() > 0) return "both ids and strings";
      if (static_cast<size_t>(record_.strings_size()) != columns)
        return "another number of strings";
      for (size_t i = 0; i < columns; ++i) {
        const std::string& text = record_.strings(static_cast<int>(i));
        if (text.empty()) {
          block->SetMissing(i);
        } else {
          ids[i] = StringId(text);
        }
      }
    } else {
      if (static_cast<size_t>(record_.ids_size()) != columns) return "another number of ids";
      if (columns > 0) std::memcpy(ids, record_.ids().data(), columns * sizeof(uint64_t));
    }
    for (const uint32_t column : record_.missing_ids()) {
      if (column >= columns) return "missing_ids names no column";
      block->SetMissing(column);
    }
    return nullptr;
  }

  const char* TakeLists(RecordBlock* block) {
    const size_t columns = schema_.id_lists.size();
    if (static_cast<size_t>(record_.lists_size()) != columns) return "another number of lists";
    for (size_t column = 0; column < columns; ++column) {
      const RecordIdList& list = record_.lists(static_cast<int>(column));
      if (list.ids_size() > 0 && list.strings_size() > 0) return "both ids and strings in a list";
      const int count = list.ids_size() + list.strings_size();
      if (list.values_size() != (schema_.weighted[column] ? count : 0)) {
        return "another number of values than of ids in a list";
      }
      for (int i = 0; i < count; ++i) {
        const float value = schema_.weighted[column] ? list.values(i) : 1;
        if (!std::isfinite(value)) return "a value that is not finite";
        block->AppendToList(column, list.ids_size() > 0 ? list.ids(i) : StringId(list.strings(i)),
                            value);
      }
    }
    return nullptr;
  }

  const char* TakeNumbers(RecordBlock* block) {
    const size_t columns = schema_.numerics.size();
    if (static_cast<size_t>(record_.numerics_size()) != columns)
      return "another number of numerics";
    float* const numerics = block->row_numerics();
    for (size_t i = 0; i < columns; ++i) {
      const float value = record_.numerics(static_cast<int>(i));
      if (std::isinf(value)) return "a numeric that is infinite";
      // Every NaN becomes the one that means missing.
      numerics[i] = std::isnan(value) ? kMissingNumeric : value;
    }
    if (const char* reason = TakeLabels(block); reason != nullptr) return reason;
    if (schema_.has_weight) {
      const float weight = record_.weight();
      if (!std::isfinite(weight) || weight < 0) return "a weight that is negative or not finite";
      block->set_weight(weight);
    }
    if (schema_.has_group) block->set_group(record_.group());
    if (schema_.has_time && record_.has_time()) block->set_time(record_.time());
    return nullptr;
  }

  const char* TakeLabels(RecordBlock* block) {
    if (static_cast<size_t>(record_.labels_size()) != schema_.labels.size()) {
      return "another number of labels";
    }
    for (int i = 0; i < record_.labels_size(); ++i) {
      const float label = record_.labels(i);
      const size_t column = static_cast<size_t>(i);
      const bool any = column < schema_.numeric_labels.size() && schema_.numeric_labels[column];
      if (std::isinf(label) || (!any && label != 0 && label != 1 && !std::isnan(label))) {
        return "an unknown label";
      }
      // Every NaN becomes the one that means missing.
      block->row_labels()[column] = std::isnan(label) ? kMissingLabel : label;
    }
    return block->KnowsALabel() ? nullptr : "no label is known";
  }

  const RecordSchema schema_;
  Record record_;
};

}  // namespace

std::unique_ptr<Parser> NewRecordParser(const RecordSchema& schema) {
  return std::make_unique<RecordParser>(schema);
}

}  // namespace satrap
