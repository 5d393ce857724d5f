#include "common/file/file_error.h"

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/shortage.h"

namespace satrap {
namespace {

// Whether the error means that a file server does not answer or does not know the mount any more.
// Such an error does not show that bytes are damaged.
bool IsOfMount(int error) {
  switch (error) {
    case ESTALE:
    case ETIMEDOUT:
    case ENOTCONN:
    case ECONNABORTED:
    case ESHUTDOWN:
    case EHOSTDOWN:
    case EHOSTUNREACH:
      return true;
    default:
      return false;
  }
}

absl::StatusCode CodeOf(int error) {
  if (IsOfMount(error)) return absl::StatusCode::kInternal;
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
      return absl::StatusCode::kResourceExhausted;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EEXIST:
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kDataLoss;
  }
}

}  // namespace

absl::Status FileError(absl::string_view doing, absl::string_view path, int error) {
  CHECK(error != 0) << "cannot " << doing << " " << path << ": there is no error";
  // Does not use strerror, whose buffer another thread may overwrite.
  absl::Status status(CodeOf(error), absl::StrCat("cannot ", doing, " ", path, ": ",
                                                  std::generic_category().message(error)));
  return MarkShortage(std::move(status),
                      IsOfMount(error) ? Shortage::kMount : ShortageOfErrno(error));
}

absl::Status FileError(absl::string_view doing, absl::string_view path) {
  return FileError(doing, path, errno);
}

}  // namespace satrap
