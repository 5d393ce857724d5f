#include "nn_worker/backend/cpu/cpu_job_backend.h"

#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/cpu/cpu_half_backend.h"

namespace satrap {

std::unique_ptr<Backend> NewCpuJobBackend(const NnWorkerConfig& config, ForkJoinPool* pool) {
  const bool has_half_values =
      config.precision() == NnWorkerConfig::BF16 || config.precision() == NnWorkerConfig::F16;
  if (!has_half_values) return NewCpuBackend(pool);
  return NewCpuHalfBackend(pool);
}

}  // namespace satrap
