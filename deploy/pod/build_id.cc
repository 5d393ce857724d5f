#include "deploy/pod/build_id.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/file/file_system.h"
#include "common/numeric/hash.h"
#include "deploy/launcher/process/role_program.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

absl::StatusOr<uint64_t> HashOf(const std::string& path, uint64_t hash) {
  ASSIGN_OR_RETURN(const auto file, DiskFileSystem()->Open(path));
  std::vector<char> piece(kPieceBytes);
  while (true) {
    ASSIGN_OR_RETURN(const size_t bytes, file->Read(absl::MakeSpan(piece)));
    if (bytes == 0) return hash;
    hash = Xxh64(absl::string_view(piece.data(), bytes), hash);
  }
}

}  // namespace

std::string BuildOf(const std::string& programs_dir) {
  uint64_t hash = 0;
  for (const Role role : {COORDINATOR, DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER}) {
    const std::string program = ProgramOf(role, JobConfig());
    const auto next = HashOf(absl::StrCat(programs_dir, "/", program), Xxh64(program, hash));
    if (!next.ok()) return "";
    hash = *next;
  }
  // Only an image for cards has this program.
  JobConfig on_card;
  on_card.mutable_nn_worker()->set_device(NnWorkerConfig::CUDA);
  const std::string program = ProgramOf(NN_WORKER, on_card);
  const auto next = HashOf(absl::StrCat(programs_dir, "/", program), Xxh64(program, hash));
  if (next.ok()) {
    hash = *next;
  } else if (!absl::IsNotFound(next.status())) {
    return "";
  }
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad16));
}

}  // namespace satrap
