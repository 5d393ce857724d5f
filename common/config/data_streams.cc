#include "common/config/data_streams.h"

namespace satrap {

bool HasValidData(const DataConfig& data) {
  return data.valid_files_size() > 0 || data.seeded_split().valid_fraction() > 0 ||
         (data.has_synthetic() && data.synthetic().valid_samples() > 0);
}

bool HasTestData(const DataConfig& data) {
  return data.test_files_size() > 0 || data.seeded_split().test_fraction() > 0 ||
         (data.has_synthetic() && data.synthetic().test_samples() > 0);
}

}  // namespace satrap
