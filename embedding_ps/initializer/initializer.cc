#include "embedding_ps/initializer/initializer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/random.h"

namespace satrap {
namespace {

absl::Status CheckFinite(absl::string_view field, float value) {
  if (std::isfinite(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": must be finite, got ", value));
}

}  // namespace

absl::StatusOr<Initializer> Initializer::Create(const InitializerConfig& config, uint64_t seed,
                                                uint32_t table_id, int segment) {
  const uint64_t stream = RandomBits(seed, table_id, static_cast<uint64_t>(segment));
  absl::Status status;
  switch (config.kind_case()) {
    case InitializerConfig::kConstant: {
      status.Update(CheckFinite("constant.value", config.constant().value()));
      if (!status.ok()) return status;
      return Initializer(Kind::kConstant, config.constant().value(), 0, stream);
    }
    case InitializerConfig::kNormal: {
      const double mean = config.normal().mean(), stddev = config.normal().stddev();
      status.Update(CheckFinite("normal.mean", config.normal().mean()));
      status.Update(CheckFinite("normal.stddev", config.normal().stddev()));
      if (!status.ok()) return status;
      if (stddev < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("normal.stddev: must be >= 0, got ", stddev));
      }
      return Initializer(Kind::kNormal, mean, stddev, stream);
    }
    case InitializerConfig::kUniform:
    case InitializerConfig::KIND_NOT_SET: {
      const double low = config.uniform().low(), high = config.uniform().high();
      status.Update(CheckFinite("uniform.low", config.uniform().low()));
      status.Update(CheckFinite("uniform.high", config.uniform().high()));
      if (!status.ok()) return status;
      if (low > high) {
        return absl::InvalidArgumentError(
            absl::StrCat("uniform.low: must be <= uniform.high ", high, ", got ", low));
      }
      return Initializer(Kind::kUniform, low, high - low, stream);
    }
  }
  return absl::InvalidArgumentError("kind: unknown");
}

void Initializer::Fill(uint64_t key, absl::Span<float> values) const {
  switch (kind_) {
    case Kind::kConstant:
      std::fill(values.begin(), values.end(), static_cast<float>(a_));
      return;
    case Kind::kUniform:
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(a_ + b_ * UniformDouble(RandomBits(stream_, key, i)));
      }
      return;
    case Kind::kNormal:
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(a_ + b_ * NormalDouble(stream_, key, i));
      }
      return;
  }
}

}  // namespace satrap
