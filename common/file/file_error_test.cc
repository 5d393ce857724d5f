#include "common/file/file_error.h"

#include <fcntl.h>

#include <cerrno>

#include "common/base/shortage.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(FileError, NamesWhatWasDoneThePathAndTheCause) {
  EXPECT_EQ(FileError("write", "a/b", ENOSPC).message(),
            "cannot write a/b: No space left on device");
}

TEST(FileError, TakesTheErrnoOfTheOperationThatFailed) {
  ASSERT_EQ(open("/no/such/file", O_RDONLY), -1);
  const absl::Status status = FileError("open", "/no/such/file");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "cannot open /no/such/file: No such file or directory");
}

TEST(FileError, HasACodeByTheCause) {
  const auto code = [](int error) { return FileError("read", "f", error).code(); };
  for (const int error : {ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM, EAGAIN}) {
    EXPECT_EQ(code(error), absl::StatusCode::kResourceExhausted) << error;
  }
  for (const int error : {EACCES, EPERM, EROFS}) {
    EXPECT_EQ(code(error), absl::StatusCode::kPermissionDenied) << error;
  }
  for (const int error : {ENOENT, ENOTDIR}) {
    EXPECT_EQ(code(error), absl::StatusCode::kNotFound) << error;
  }
  for (const int error : {EEXIST, EISDIR, ENAMETOOLONG, ELOOP}) {
    EXPECT_EQ(code(error), absl::StatusCode::kFailedPrecondition) << error;
  }
  EXPECT_EQ(code(EIO), absl::StatusCode::kDataLoss);
}

TEST(FileError, AMountWhoseServerIsAwayIsNoDamageOfData) {
  for (const int error :
       {ESTALE, ETIMEDOUT, ENOTCONN, ECONNABORTED, ESHUTDOWN, EHOSTDOWN, EHOSTUNREACH}) {
    const absl::Status status = FileError("read", "f", error);
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_EQ(ShortageOf(status), Shortage::kMount) << status;
  }
}

TEST(FileError, IsNeverTheErrorOfALostCall) {
  for (int error = 1; error < 134; ++error) {
    const absl::Status status = FileError("read", "f", error);
    EXPECT_FALSE(status.ok() || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status))
        << status;
  }
}

}  // namespace
}  // namespace satrap
