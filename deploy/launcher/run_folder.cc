#include "deploy/launcher/run_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr char kSockets[] = "sockets";

absl::Status Failed(absl::string_view what, const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat("cannot ", what, " ", path, ": ", why));
}
absl::Status FailedErrno(absl::string_view what, const std::string& path) {
  return Failed(what, path, std::generic_category().message(errno));
}

std::string Timestamp() {
  const time_t now = time(nullptr);
  tm local;
  localtime_r(&now, &local);
  char text[32];
  strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &local);
  return text;
}

// Errors name `shown_path`. Pipes and devices cannot `sync`.
absl::Status WriteTo(const std::string& path, const std::string& shown_path,
                     absl::string_view content, bool sync) {
  FILE* file = fopen(path.c_str(), "we");
  if (file == nullptr) return FailedErrno("write", shown_path);
  const bool written = fwrite(content.data(), 1, content.size(), file) == content.size() &&
                       fflush(file) == 0 && (!sync || fsync(fileno(file)) == 0);
  const absl::Status status = written ? absl::OkStatus() : FailedErrno("write", shown_path);
  fclose(file);
  return status;
}

// Points `link` at `target`, replacing what it pointed at before in one step.
absl::Status ReplaceLink(const std::string& target, const std::string& link) {
  const std::string fresh = absl::StrCat(link, ".", getpid());
  std::error_code error;
  fs::remove(fresh, error);
  fs::create_symlink(target, fresh, error);
  if (error) return Failed("make link", fresh, error.message());
  fs::rename(fresh, link, error);
  if (error) return Failed("make link", link, error.message());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::Fill(const std::string& path) {
  std::error_code error;
  fs::create_directories(path + "/logs", error);
  if (error) return Failed("make folder", path + "/logs", error.message());
  std::string socket_dir = absl::StrCat(P_tmpdir, "/satrap-XXXXXX");
  if (mkdtemp(socket_dir.data()) == nullptr) return FailedErrno("make folder", socket_dir);
  // From here on the destructor removes it.
  std::unique_ptr<RunFolder> folder(new RunFolder(path, socket_dir));
  RETURN_IF_ERROR(ReplaceLink(socket_dir, absl::StrCat(path, "/", kSockets)));
  return folder;
}

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::CreateUnder(const std::string& runs_dir,
                                                                  const std::string& name,
                                                                  bool is_latest) {
  std::error_code error;
  fs::create_directories(runs_dir, error);
  if (error) return Failed("make folder", runs_dir, error.message());
  const std::string first = absl::StrCat(name, "-", Timestamp());
  std::string run = first;
  // Runs that begin in the same second get -2, -3, ...
  for (int attempt = 2; !fs::create_directory(runs_dir + "/" + run, error); ++attempt) {
    if (error) return Failed("make folder", runs_dir + "/" + run, error.message());
    run = absl::StrCat(first, "-", attempt);
  }
  if (is_latest) RETURN_IF_ERROR(ReplaceLink(run, runs_dir + "/latest"));
  return Fill(fs::absolute(runs_dir + "/" + run).lexically_normal().string());
}

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::CreateAt(const std::string& path) {
  std::error_code error;
  const std::string absolute = fs::absolute(path).lexically_normal().string();
  fs::create_directories(absolute, error);
  if (error) return Failed("make folder", absolute, error.message());
  // Whoever makes the job's file has the folder.
  const std::string job_path = absolute + "/job.textproto";
  const int job_file = open(job_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (job_file < 0 && errno == EEXIST) {
    return absl::FailedPreconditionError(absl::StrCat(absolute, " holds a run already"));
  }
  if (job_file < 0) return FailedErrno("make file", job_path);
  close(job_file);
  auto folder = Fill(absolute);
  if (!folder.ok()) unlink(job_path.c_str());
  return folder;
}

RunFolder::~RunFolder() {
  std::error_code error;
  fs::remove_all(socket_dir_, error);
  fs::remove(absl::StrCat(path_, "/", kSockets), error);
}

std::string RunFolder::JobPath() const { return path_ + "/job.textproto"; }

std::string RunFolder::LogPath(absl::string_view process) const {
  return absl::StrCat(path_, "/logs/", process, ".log");
}

std::string RunFolder::SocketAddress(absl::string_view process) const {
  return absl::StrCat("unix:", socket_dir_, "/", process);
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content) {
  struct stat info;
  if (lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return WriteTo(path, path, content, /*sync=*/false);
  }
  const std::string fresh = absl::StrCat(path, ".new");
  const absl::Status status = WriteTo(fresh, path, content, /*sync=*/true);
  if (!status.ok()) {
    unlink(fresh.c_str());
    return status;
  }
  if (rename(fresh.c_str(), path.c_str()) != 0) return FailedErrno("write", path);
  return absl::OkStatus();
}

absl::StatusOr<std::string> FindRun(const std::string& run, const std::string& runs_dir) {
  std::error_code error;
  for (const std::string& candidate : {run, absl::StrCat(runs_dir, "/", run)}) {
    if (!run.empty() && fs::exists(candidate + "/job.textproto", error)) return candidate;
  }
  if (!run.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no run '", run, "', neither here nor under ", runs_dir));
  }
  const std::string latest = runs_dir + "/latest";
  if (!fs::exists(latest + "/job.textproto", error)) {
    return absl::NotFoundError(absl::StrCat("there is no run under ", runs_dir));
  }
  return fs::canonical(latest, error).string();
}

}  // namespace satrap
