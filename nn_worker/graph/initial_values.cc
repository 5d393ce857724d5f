#include "nn_worker/graph/initial_values.h"

#include "common/numeric/hash.h"
#include "common/numeric/random.h"

namespace satrap {
namespace {

double Draw(const ParameterSpec& spec, uint64_t seed, uint64_t name_hash, uint64_t element) {
  switch (spec.initial) {
    case ParameterSpec::Initial::kConstant:
      return spec.scale;
    case ParameterSpec::Initial::kNormal:
      return spec.scale * NormalDouble(seed, name_hash, element);
    case ParameterSpec::Initial::kUniform:
      return spec.scale * (2 * UniformDouble(RandomBits(seed, name_hash, element)) - 1);
  }
  return 0;
}

}  // namespace

std::vector<float> InitialValues(uint64_t seed, absl::string_view name, const ParameterSpec& spec) {
  std::vector<float> values(spec.rows * spec.cols);
  const uint64_t name_hash = Xxh64(name);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(Draw(spec, seed, name_hash, i));
  }
  return values;
}

uint64_t LayerSeed(uint64_t seed, absl::string_view layer_name) {
  return RandomBits(seed, Xxh64(layer_name), 1);
}

}  // namespace satrap
