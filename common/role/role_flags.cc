#include "common/role/role_flags.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/text_format.h"

namespace satrap {
namespace {

// A flag that a program knows: its name without dashes, and where its value is stored.
using KnownFlags = std::vector<std::pair<absl::string_view, std::string*>>;

// The names of the flags, for a message.
std::string NamesOf(const KnownFlags& known) {
  return absl::StrJoin(known, ", ", [](std::string* text, const auto& flag) {
    absl::StrAppend(text, "--", flag.first);
  });
}

// Accepts `--name=value` and `--name value`.
absl::Status TakeFlags(const std::vector<std::string>& args, const KnownFlags& known) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (!absl::StartsWith(args[i], "--")) {
      return absl::InvalidArgumentError(absl::StrCat("'", args[i], "' is not a flag"));
    }
    const size_t equals = std::min(args[i].find('='), args[i].size());
    const std::string name = args[i].substr(2, equals - 2);
    const auto flag = std::find_if(known.begin(), known.end(),
                                   [&name](const auto& each) { return each.first == name; });
    if (flag == known.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag --", name, "; this program takes ", NamesOf(known)));
    }
    if (equals == args[i].size() && i + 1 == args.size()) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
    }
    if (!flag->second->empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " is given twice"));
    }
    *flag->second = equals < args[i].size() ? args[i].substr(equals + 1) : args[++i];
  }
  return absl::OkStatus();
}

absl::Status Missing(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat("--", name, " is missing"));
}

}  // namespace

absl::StatusOr<RoleFlags> ParseRoleFlags(const std::vector<std::string>& args) {
  RoleFlags flags;
  std::string role_index;
  RETURN_IF_ERROR(TakeFlags(args, {{"role_index", &role_index},
                                   {"coordinator", &flags.coordinator},
                                   {"listen", &flags.listen},
                                   {"advertise", &flags.advertise},
                                   {"ending", &flags.ending}}));
  if (flags.coordinator.empty()) return Missing("coordinator");
  if (!role_index.empty() &&
      (!absl::SimpleAtoi(role_index, &flags.role_index) || flags.role_index < 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--role_index: '", role_index, "' is not a number >= 0"));
  }
  if (flags.advertise.empty()) flags.advertise = flags.listen;
  return flags;
}

absl::StatusOr<CoordinatorFlags> ParseCoordinatorFlags(const std::vector<std::string>& args) {
  CoordinatorFlags flags;
  std::vector<std::string> with_values = args;
  std::string role_index;  // not used: launchers give every process its index
  std::string ended;
  std::string cause;
  flags.next_job = std::erase(with_values, "--next_job") > 0;
  RETURN_IF_ERROR(TakeFlags(with_values, {{"config", &flags.config},
                                          {"role_index", &role_index},
                                          {"listen", &flags.listen},
                                          {"from", &flags.from},
                                          {"ended", &ended},
                                          {"cause", &cause},
                                          {"ending", &flags.ending}}));
  if (flags.config.empty()) return Missing("config");
  if (flags.listen.empty()) return Missing("listen");
  if (!flags.from.empty() && !flags.next_job) {
    return absl::InvalidArgumentError("--from needs --next_job");
  }
  RETURN_IF_ERROR(ParseText(ended, "--ended", &flags.ended));
  if (!cause.empty()) flags.ended.set_text(cause);
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
