#include "common/role/role_flags.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/text_format.h"
#include "common/life/life_sign.h"

namespace satrap {
namespace {

Flag HolderFlag(std::string* holder) {
  return TextFlag("holder", "UID", "the pod that this process runs in (default: none)", holder);
}

Flag BuildFlag(std::string* build) {
  return TextFlag("build", "ID", "the build of the pod's programs (default: not known)", build);
}

// An Ending takes two flags, this one and --cause, because its text may hold any characters.
Flag EndedFlag(const char* help, Ending* ended) {
  Flag flag = TextFlag("ended", "TEXT", help, nullptr);
  flag.take = [ended](const std::string& text) {
    const absl::Status status = ParseText(text, "--ended", ended);
    return status.ok() ? std::string() : absl::StrCat(": ", status.message());
  };
  return MayBeEmpty(std::move(flag));
}

Flag CauseFlag(std::string* cause) {
  return MayBeEmpty(TextFlag("cause", "TEXT", "the text of the Ending in --ended", cause));
}

}  // namespace

std::vector<Flag> RoleFlags::Table() {
  return {
      NumberFlag("role_index", "N", "which replica of its role", &role_index, 0),
      Required(TextFlag("coordinator", "ADDRESS", "where the coordinator serves", &coordinator)),
      TextFlag("listen", "ADDRESS", "where this role serves", &listen),
      TextFlag("advertise", "ADDRESS", "where peers reach it (default: --listen)", &advertise),
      TextFlag("ending", "PATH", "the file to which it writes its Ending", &ending),
      AliveFlag(&alive),
      TextFlag("metrics", "IP:PORT", "where it serves metrics (default: a port of this machine)",
               &metrics),
      HolderFlag(&holder),
      BuildFlag(&build),
      EndedFlag("how the previous process in this pod ended: an Ending on one line", &before),
      CauseFlag(&cause),
  };
}

std::vector<Flag> CoordinatorFlags::Table() {
  return {
      Required(TextFlag("config", "PATH", "the resolved job", &config)),
      Required(TextFlag("listen", "ADDRESS", "where it serves", &listen)),
      NumberFlag("role_index", "0", "ignored; launchers pass it to every process", &role_index, 0),
      SwitchFlag("next_job", "the run is resumed with the job of --config", &next_job),
      TextFlag("from", "CUT",
               "the cut to begin from (default: the newest), with --next_job or --submission",
               &from),
      NumberFlag("submission", "N",
                 "which submission of the run it belongs to; 0 if a launcher starts it",
                 &submission, 0),
      EndedFlag("how the previous generation ended: an Ending on one line", &ended),
      CauseFlag(&cause),
      TextFlag("ending", "PATH", "the file to which it writes its Ending", &ending),
      AliveFlag(&alive),
      TextFlag("metrics", "IP:PORT", "where it serves metrics (default: nowhere)", &metrics),
      HolderFlag(&holder),
      BuildFlag(&build),
  };
}

absl::StatusOr<RoleFlags> ParseRoleFlags(const std::vector<std::string>& args,
                                         const std::vector<Flag>& own) {
  RoleFlags flags;
  std::vector<Flag> table = flags.Table();
  table.insert(table.end(), own.begin(), own.end());
  RETURN_IF_ERROR(ParseOnlyFlags(args, table));
  if (flags.advertise.empty()) flags.advertise = flags.listen;
  if (!flags.cause.empty()) flags.before.set_text(flags.cause);
  return flags;
}

absl::StatusOr<CoordinatorFlags> ParseCoordinatorFlags(const std::vector<std::string>& args) {
  CoordinatorFlags flags;
  RETURN_IF_ERROR(ParseOnlyFlags(args, flags.Table()));
  if (!flags.from.empty() && !flags.next_job && flags.submission == 0) {
    return absl::InvalidArgumentError("--from needs --next_job or --submission");
  }
  if (!flags.cause.empty()) flags.ended.set_text(flags.cause);
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
