#include "deploy/launcher/process/role_program.h"

#include "absl/strings/str_cat.h"
#include "common/role/role_flags.h"

namespace satrap {
namespace {

// The suffix of the name of the NN worker's program that has the kernels for this device.
const char* SuffixOf(NnWorkerConfig::Device device) {
  switch (device) {
    case NnWorkerConfig::CPU:
      return "";
    case NnWorkerConfig::HOST:
      return "_host";
    case NnWorkerConfig::CUDA:
      return "_cuda";
  }
  return "";
}

}  // namespace

std::string ProgramOf(Role role, const JobConfig& job) {
  const absl::string_view name = RoleName(role);
  return absl::StrCat(role == COORDINATOR ? "deploy/" : "", name, "/", name,
                      role == NN_WORKER ? SuffixOf(job.nn_worker().device()) : "");
}

std::string FileNameOf(Role role, int index) { return absl::StrCat(RoleName(role), "_", index); }

}  // namespace satrap
