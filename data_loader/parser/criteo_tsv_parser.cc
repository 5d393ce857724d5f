#include "data_loader/parser/criteo_tsv_parser.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "data_loader/parser/bad_text.h"
#include "data_loader/parser/number.h"
#include "data_loader/parser/string_id.h"

namespace satrap {
namespace {

constexpr int kNumerics = 13;
constexpr int kIds = 26;
constexpr int kColumns = 1 + kNumerics + kIds;

// The positions of a line's tabs. One pass finds them, and also checks for NUL bytes. Fields are
// then found by these positions, so no byte is searched twice: this is the benchmark's hot path.
struct Tabs {
  bool has_nul = false;
  int count = 0;  // may be more than kColumns; then only the first kColumns positions are kept
  uint32_t positions[kColumns + 64];
};

// Scans the 16 bytes that begin at position `from` of the line. `valid` has a bit for each byte
// that belongs to the line.
inline void ScanBlock(__m128i bytes, uint32_t from, uint32_t valid, Tabs* tabs) {
  const __m128i tab = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'));
  const __m128i nul = _mm_cmpeq_epi8(bytes, _mm_setzero_si128());
  uint32_t mask = static_cast<uint32_t>(_mm_movemask_epi8(tab)) & valid;
  if ((static_cast<uint32_t>(_mm_movemask_epi8(nul)) & valid) != 0) tabs->has_nul = true;
  while (mask != 0) {
    if (tabs->count < kColumns) {
      tabs->positions[tabs->count] = from + static_cast<uint32_t>(__builtin_ctz(mask));
    }
    ++tabs->count;
    mask &= mask - 1;
  }
}

inline void ScanLine(const char* line, uint32_t size, Tabs* tabs) {
  tabs->has_nul = false;
  tabs->count = 0;
  uint32_t at = 0;
  for (; at + 16 <= size; at += 16) {
    ScanBlock(_mm_loadu_si128(reinterpret_cast<const __m128i*>(line + at)), at, 0xffff, tabs);
  }
  if (at < size) {
    // Copy the last bytes, because a load of 16 bytes could cross the end of the reader's buffer.
    char last[16] = {0};
    std::memcpy(last, line + at, size - at);
    ScanBlock(_mm_loadu_si128(reinterpret_cast<const __m128i*>(last)), at,
              (uint32_t{1} << (size - at)) - 1, tabs);
  }
}

class CriteoTsvParser final : public Parser {
 private:
  const char* ParseRow(absl::string_view line, RecordBlock* block) override {
    const char* text = line.data();
    const uint32_t size = static_cast<uint32_t>(line.size());
    Tabs tabs;
    ScanLine(text, size, &tabs);
    if (tabs.has_nul || tabs.count != kColumns - 1) return BadLine(line, tabs);
    if (tabs.positions[0] != 1 || (text[0] != '0' && text[0] != '1')) {
      return BadLabel(line.substr(0, tabs.positions[0]));
    }
    block->set_label(text[0] == '1' ? 1.0f : 0.0f);
    float* numerics = block->row_numerics();
    for (int i = 0; i < kNumerics; ++i) {
      const uint32_t from = tabs.positions[i] + 1;
      const uint32_t field_size = tabs.positions[i + 1] - from;
      if (field_size == 0) {
        numerics[i] = kMissingNumeric;
      } else if (!ParseNumber(absl::string_view(text + from, field_size), false, &numerics[i])) {
        return BadNumeric(i, line.substr(from, field_size));
      }
    }
    // There are only kColumns - 1 tabs, so this element is free. The last field ends with the line.
    tabs.positions[kColumns - 1] = size;
    uint64_t* ids = block->row_ids();
    for (int i = 0; i < kIds; ++i) {
      const uint32_t from = tabs.positions[kNumerics + i] + 1;
      const uint32_t field_size = tabs.positions[kNumerics + i + 1] - from;
      ids[i] = StringId(text + from, field_size);
      if (field_size == 0) block->SetMissing(static_cast<size_t>(i));
    }
    return nullptr;
  }

  // --- Reasons. Not inlined, so that good lines run through less code ---
  //
  // The name of a column; columns are counted from 0.
  static std::string NameOf(int column) {
    if (column == 0) return "label";
    if (column <= kNumerics) return absl::StrCat("I", column);
    return column < kColumns ? absl::StrCat("C", column - kNumerics) : absl::StrCat(column + 1);
  }
  ABSL_ATTRIBUTE_NOINLINE const char* BadLine(absl::string_view line, const Tabs& tabs) {
    if (!tabs.has_nul) {
      return Bad(absl::StrCat(ShownText(line), " has ", tabs.count + 1,
                              " columns between tabs instead of ", kColumns,
                              " (label, I1 .. I13, C1 .. C26)"));
    }
    const size_t at = line.find('\0');
    const absl::string_view before = line.substr(0, at);
    const auto column = std::count(before.begin(), before.end(), '\t');
    return Bad(absl::StrCat("a NUL byte at byte ", at, " of the line, in column ",
                            NameOf(static_cast<int>(column)), ": ",
                            ShownText(line.substr(at < 20 ? 0 : at - 20)), "; text has none"));
  }
  ABSL_ATTRIBUTE_NOINLINE const char* BadLabel(absl::string_view field) {
    return Bad(absl::StrCat(ColumnHolds("label", field), ", but a label is expected: '0' or '1'"));
  }
  // `numeric` is the column's number among the numerics, counted from 0.
  ABSL_ATTRIBUTE_NOINLINE const char* BadNumeric(int numeric, absl::string_view field) {
    return Bad(absl::StrCat(ColumnHolds(NameOf(1 + numeric), field),
                            ", but a number without exponent is expected, such as 12 or -0.5; the "
                            "empty string means missing"));
  }
};

}  // namespace

std::unique_ptr<Parser> NewCriteoTsvParser() { return std::make_unique<CriteoTsvParser>(); }

}  // namespace satrap
