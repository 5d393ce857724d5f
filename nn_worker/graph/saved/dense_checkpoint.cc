#include "nn_worker/graph/saved/dense_checkpoint.h"

#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/numeric/hash.h"

namespace satrap {
namespace {

constexpr absl::string_view kMagic = "SATDENSE";
constexpr uint32_t kVersion = 1;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

template <typename T>
void Put(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Reads numbers from the front of a span. After a failure all further reads fail.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T Take() {
    T value{};
    const absl::string_view bytes = TakeBytes(sizeof(T));
    if (ok_) std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  absl::string_view TakeBytes(uint64_t count) {
    if (count > rest_.size()) {
      ok_ = false;
      return {};
    }
    const absl::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  bool ok() const { return ok_; }
  size_t left() const { return rest_.size(); }

 private:
  absl::string_view rest_;
  bool ok_ = true;
};

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("dense checkpoint: ", what));
}

}  // namespace

std::string EncodeArrays(const std::vector<NamedArray>& arrays) {
  std::string out(kMagic);
  Put<uint32_t>(kVersion, &out);
  Put<uint32_t>(static_cast<uint32_t>(arrays.size()), &out);
  for (const NamedArray& array : arrays) {
    CHECK(array.name.size() <= std::numeric_limits<uint16_t>::max()) << array.name;
    CHECK(static_cast<int64_t>(array.values.size()) == array.rows * array.cols) << array.name;
    Put<uint16_t>(static_cast<uint16_t>(array.name.size()), &out);
    out += array.name;
    Put<uint64_t>(array.rows, &out);
    Put<uint64_t>(array.cols, &out);
    out.append(reinterpret_cast<const char*>(array.values.data()),
               array.values.size() * sizeof(float));
  }
  Put<uint64_t>(Xxh64(out), &out);
  return out;
}

absl::StatusOr<std::vector<NamedArray>> DecodeArrays(absl::string_view bytes) {
  if (bytes.size() < kMagic.size() + 16 || bytes.substr(0, kMagic.size()) != kMagic) {
    return Damaged("the file is truncated, or is not a dense checkpoint");
  }
  const absl::string_view body = bytes.substr(0, bytes.size() - sizeof(uint64_t));
  Reader trailer(bytes.substr(body.size()));
  if (trailer.Take<uint64_t>() != Xxh64(body)) return Damaged("checksum does not match");
  Reader reader(body.substr(kMagic.size()));
  const uint32_t version = reader.Take<uint32_t>();
  if (version != kVersion) {
    return absl::FailedPreconditionError(absl::StrCat("dense checkpoint: it has version ", version,
                                                      ", but this program reads version ",
                                                      kVersion));
  }
  std::vector<NamedArray> arrays;
  for (uint32_t left = reader.Take<uint32_t>(); left > 0 && reader.ok(); --left) {
    NamedArray array;
    array.name = std::string(reader.TakeBytes(reader.Take<uint16_t>()));
    const uint64_t rows = reader.Take<uint64_t>();
    const uint64_t cols = reader.Take<uint64_t>();
    if (cols != 0 && rows > reader.left() / sizeof(float) / cols) {
      return Damaged("an array is larger than the file");
    }
    array.rows = static_cast<int64_t>(rows);
    array.cols = static_cast<int64_t>(cols);
    const absl::string_view values = reader.TakeBytes(rows * cols * sizeof(float));
    if (!reader.ok()) break;
    array.values.resize(rows * cols);
    if (!values.empty()) std::memcpy(array.values.data(), values.data(), values.size());
    arrays.push_back(std::move(array));
  }
  if (!reader.ok() || reader.left() != 0) {
    return Damaged("the sizes of the arrays do not match the size of the file");
  }
  return arrays;
}

std::string OptimizerKindOf(const std::vector<NamedArray>& arrays) {
  for (const NamedArray& array : arrays) {
    const size_t mark = array.name.find('#');
    if (mark == std::string::npos) continue;
    const std::string state = array.name.substr(mark + 1);
    const size_t dot = state.find('.');
    if (dot != std::string::npos) return state.substr(0, dot);
  }
  return "";
}

}  // namespace satrap
