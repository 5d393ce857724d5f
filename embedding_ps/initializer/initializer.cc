#include "embedding_ps/initializer/initializer.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/config/setting_rules.h"
#include "common/numeric/random.h"

namespace satrap {

absl::StatusOr<Initializer> Initializer::Create(const InitializerConfig& config, uint64_t seed,
                                                uint32_t table_id, int segment) {
  RETURN_IF_ERROR(CheckConfig(config, ""));
  const uint64_t stream = RandomBits(seed, table_id, static_cast<uint64_t>(segment));
  switch (config.kind_case()) {
    case InitializerConfig::kConstant:
      return Initializer(Kind::kConstant, config.constant().value(), 0, stream);
    case InitializerConfig::kNormal:
      return Initializer(Kind::kNormal, config.normal().mean(), config.normal().stddev(), stream);
    case InitializerConfig::kUniform:
    case InitializerConfig::KIND_NOT_SET: {
      const double low = config.uniform().low(), high = config.uniform().high();
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
