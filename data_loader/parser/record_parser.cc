#include "data_loader/parser/record_parser.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "data_loader/parser/bad_text.h"
#include "data_loader/parser/string_id.h"
#include "proto/record.pb.h"

namespace satrap {
namespace {

class RecordParser final : public Parser {
 public:
  explicit RecordParser(const RecordSchema& schema) : schema_(schema) {}

 private:
  const char* ParseRow(absl::string_view bytes, RecordBlock* block) override {
    // protobuf takes the number of bytes as an int.
    if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
      return Bad(
          absl::StrCat("a message of ", bytes.size(), " bytes; a Record has less than 2 GiB"));
    }
    // Reuse one message object for all rows, so that its lists keep their memory.
    if (!record_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return Bad(absl::StrCat("the bytes ", ShownText(bytes),
                              " are not a satrap.Record message (proto/record.proto)"));
    }
    if (const char* reason = TakeIds(block); reason != nullptr) return reason;
    if (const char* reason = TakeLists(block); reason != nullptr) return reason;
    return TakeNumbers(block);
  }

  const char* TakeIds(RecordBlock* block) {
    const size_t columns = schema_.ids.size();
    uint64_t* const ids = block->row_ids();
    if (record_.strings_size() > 0) {
      if (record_.ids_size() > 0) {
        return Bad(
            absl::StrCat(record_.ids_size(), " ids and ", record_.strings_size(),
                         " strings; a record must have only one kind, one for each ID column"));
      }
      if (static_cast<size_t>(record_.strings_size()) != columns) {
        return Bad(OtherNumber(record_.strings_size(), "strings", "ID", schema_.ids));
      }
      for (size_t i = 0; i < columns; ++i) {
        const std::string& text = record_.strings(static_cast<int>(i));
        if (text.empty()) {
          block->SetMissing(i);
        } else {
          ids[i] = StringId(text);
        }
      }
    } else {
      if (static_cast<size_t>(record_.ids_size()) != columns) {
        return Bad(OtherNumber(record_.ids_size(), "ids", "ID", schema_.ids));
      }
      if (columns > 0) std::memcpy(ids, record_.ids().data(), columns * sizeof(uint64_t));
    }
    for (const uint32_t column : record_.missing_ids()) {
      if (column >= columns) {
        return Bad(absl::StrCat("missing_ids has ", column, ", but the job has ", columns,
                                " columns of kind ID, counted from 0"));
      }
      block->SetMissing(column);
    }
    return nullptr;
  }

  const char* TakeLists(RecordBlock* block) {
    const size_t columns = schema_.id_lists.size();
    if (static_cast<size_t>(record_.lists_size()) != columns) {
      return Bad(OtherNumber(record_.lists_size(), "lists", "MULTI_ID", schema_.id_lists));
    }
    for (size_t column = 0; column < columns; ++column) {
      const RecordIdList& list = record_.lists(static_cast<int>(column));
      const std::string& name = schema_.id_lists[column];
      if (list.ids_size() > 0 && list.strings_size() > 0) {
        return Bad(absl::StrCat("list ", ShownText(name), " has ", list.ids_size(), " ids and ",
                                list.strings_size(), " strings; a list must have only one kind"));
      }
      const int count = list.ids_size() + list.strings_size();
      if (list.values_size() != (schema_.weighted[column] ? count : 0)) {
        return Bad(absl::StrCat(
            "list ", ShownText(name), " has ", list.values_size(), " values for ", count, " ids; ",
            schema_.weighted[column] ? "each id must have one"
                                     : "without value_separator, ids have no values"));
      }
      for (int i = 0; i < count; ++i) {
        const float value = schema_.weighted[column] ? list.values(i) : 1;
        if (!std::isfinite(value)) {
          return Bad(absl::StrCat("list ", ShownText(name), " has the value ", value,
                                  "; it must be finite"));
        }
        block->AppendToList(column, list.ids_size() > 0 ? list.ids(i) : StringId(list.strings(i)),
                            value);
      }
    }
    return nullptr;
  }

  const char* TakeNumbers(RecordBlock* block) {
    const size_t columns = schema_.numerics.size();
    if (static_cast<size_t>(record_.numerics_size()) != columns) {
      return Bad(OtherNumber(record_.numerics_size(), "numerics", "NUMERIC", schema_.numerics));
    }
    float* const numerics = block->row_numerics();
    for (size_t i = 0; i < columns; ++i) {
      const float value = record_.numerics(static_cast<int>(i));
      if (std::isinf(value)) {
        return Bad(absl::StrCat("column ", ShownText(schema_.numerics[i]), " has the value ", value,
                                "; it must be finite, or NaN if it is missing"));
      }
      // Replace any NaN by the one that stands for a missing number.
      numerics[i] = std::isnan(value) ? kMissingNumeric : value;
    }
    if (const char* reason = TakeLabels(block); reason != nullptr) return reason;
    if (schema_.has_weight) {
      const float weight = record_.weight();
      if (!std::isfinite(weight) || weight < 0) {
        return Bad(absl::StrCat("the weight is ", weight, "; it must be finite and >= 0"));
      }
      block->set_weight(weight);
    }
    if (schema_.has_group) block->set_group(record_.group());
    if (schema_.has_time && record_.has_time()) block->set_time(record_.time());
    return nullptr;
  }

  const char* TakeLabels(RecordBlock* block) {
    if (static_cast<size_t>(record_.labels_size()) != schema_.labels.size()) {
      return Bad(OtherNumber(record_.labels_size(), "labels", "LABEL", schema_.labels));
    }
    for (int i = 0; i < record_.labels_size(); ++i) {
      const float label = record_.labels(i);
      const size_t column = static_cast<size_t>(i);
      const bool any = column < schema_.numeric_labels.size() && schema_.numeric_labels[column];
      if (std::isinf(label) || (!any && label != 0 && label != 1 && !std::isnan(label))) {
        return Bad(absl::StrCat("label ", ShownText(schema_.labels[column]), " is ", label, "; ",
                                any ? "it must be finite, or NaN where it is missing"
                                    : "it must be 0 or 1 (numeric_label allows other numbers), or "
                                      "NaN where it is missing"));
      }
      // Replace any NaN by the one that stands for a missing label.
      block->row_labels()[column] = std::isnan(label) ? kMissingLabel : label;
    }
    if (block->KnowsALabel()) return nullptr;
    return Bad(absl::StrCat("no label is known: ", ShownTexts(schema_.labels),
                            schema_.labels.size() == 1 ? " is missing" : " are all missing"));
  }

  static std::string OtherNumber(int there, absl::string_view what, absl::string_view kind,
                                 const std::vector<std::string>& columns) {
    return absl::StrCat(there, " ", what, ", but the job has ", columns.size(), " columns of kind ",
                        kind, columns.empty() ? "" : ": ", ShownTexts(columns));
  }

  const RecordSchema schema_;
  Record record_;
};

}  // namespace

std::unique_ptr<Parser> NewRecordParser(const RecordSchema& schema) {
  return std::make_unique<RecordParser>(schema);
}

}  // namespace satrap
