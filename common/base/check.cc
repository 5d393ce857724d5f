#include "common/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace satrap::internal {

CheckFailure::CheckFailure(const char* condition, const char* file, int line) {
  stream_ << "CHECK failed: " << condition << " at " << file << ":" << line << " ";
}

CheckFailure::~CheckFailure() {
  const std::string text = stream_.str();
  std::fprintf(stderr, "%s\n", text.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace satrap::internal
