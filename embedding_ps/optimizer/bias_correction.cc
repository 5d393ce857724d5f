#include "embedding_ps/optimizer/bias_correction.h"

#include <map>
#include <vector>

#include "common/thread/mutex.h"

namespace satrap {
namespace {

constexpr size_t kTabled = 32768;

struct Tables {
  Mutex mutex;
  std::map<float, std::vector<float>> by_beta GUARDED_BY(mutex);
};

}  // namespace

absl::Span<const float> BiasCorrection::TableOf(float beta) {
  static Tables* const tables = new Tables;
  MutexLock lock(&tables->mutex);
  std::vector<float>& table = tables->by_beta[beta];
  while (table.size() < kTabled && (table.empty() || table.back() != 1)) {
    table.push_back(Compute(beta, static_cast<float>(table.size())));
  }
  return table;
}

}  // namespace satrap
