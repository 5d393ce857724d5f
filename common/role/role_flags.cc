#include "common/role/role_flags.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace satrap {
namespace {

// Splits args into (name, value), names without their leading dashes.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> SplitFlags(
    const std::vector<std::string>& args) {
  std::vector<std::pair<std::string, std::string>> flags;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!absl::StartsWith(args[i], "--")) {
      return absl::InvalidArgumentError(absl::StrCat("'", args[i], "' is not a flag"));
    }
    const std::string name = args[i].substr(2);
    const size_t equals = name.find('=');
    if (equals != std::string::npos) {
      flags.emplace_back(name.substr(0, equals), name.substr(equals + 1));
    } else if (i + 1 < args.size()) {
      flags.emplace_back(name, args[++i]);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
    }
  }
  return flags;
}

}  // namespace

absl::StatusOr<RoleFlags> ParseRoleFlags(Role role, const std::vector<std::string>& args) {
  auto split = SplitFlags(args);
  if (!split.ok()) return split.status();
  RoleFlags flags;
  std::string role_index;
  const std::pair<absl::string_view, std::string*> known[] = {
      {"config", &flags.config},           {"role_index", &role_index},
      {"coordinator", &flags.coordinator}, {"listen", &flags.listen},
      {"advertise", &flags.advertise},
  };
  for (const auto& [name, value] : *split) {
    std::string* target = nullptr;
    for (const auto& [known_name, known_target] : known) {
      if (name == known_name) target = known_target;
    }
    if (target == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag --", name,
                       "; a role takes --config, --role_index, --coordinator, --listen, "
                       "--advertise"));
    }
    if (!target->empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " is given twice"));
    }
    *target = value;
  }
  if (flags.config.empty()) return absl::InvalidArgumentError("--config is missing");
  if (flags.coordinator.empty() && role != COORDINATOR) {
    return absl::InvalidArgumentError("--coordinator is missing");
  }
  if (!role_index.empty() &&
      (!absl::SimpleAtoi(role_index, &flags.role_index) || flags.role_index < 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--role_index: '", role_index, "' is not a number >= 0"));
  }
  if (flags.advertise.empty()) flags.advertise = flags.listen;
  return flags;
}

absl::string_view RoleName(Role role) {
  switch (role) {
    case COORDINATOR:
      return "coordinator";
    case DATA_LOADER:
      return "data_loader";
    case EMBEDDING_WORKER:
      return "embedding_worker";
    case EMBEDDING_PS:
      return "embedding_ps";
    case NN_WORKER:
      return "nn_worker";
  }
  CHECK(false) << "role " << static_cast<int>(role);
  return "";
}

std::string MemberName(Role role, int index) {
  if (role == COORDINATOR) return "coordinator";
  return absl::StrCat(RoleName(role), " ", index);
}

int ReplicasOf(Role role, const JobConfig& job) {
  switch (role) {
    case COORDINATOR:
      return 1;
    case DATA_LOADER:
      return job.data_loader().replicas();
    case EMBEDDING_WORKER:
      return job.embedding_worker().replicas();
    case EMBEDDING_PS:
      return job.embedding_ps().replicas();
    case NN_WORKER:
      return job.nn_worker().replicas();
  }
  CHECK(false) << "role " << static_cast<int>(role);
  return 0;
}

int ThreadsOf(Role role, const JobConfig& job) {
  switch (role) {
    case COORDINATOR:
      return 1;
    case DATA_LOADER:
      return job.data_loader().threads();
    case EMBEDDING_WORKER:
      return job.embedding_worker().threads();
    case EMBEDDING_PS:
      return job.embedding_ps().threads();
    case NN_WORKER:
      return job.nn_worker().threads();
  }
  CHECK(false) << "role " << static_cast<int>(role);
  return 0;
}

}  // namespace satrap
