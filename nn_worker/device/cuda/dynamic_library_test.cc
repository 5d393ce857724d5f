#include "nn_worker/device/cuda/dynamic_library.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using testing::HasSubstr;

TEST(DynamicLibraryTest, AFunctionOfALibraryCanBeCalled) {
  const auto library = DynamicLibrary::Open("libm.so.6");
  ASSERT_TRUE(library.ok()) << library.status();
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE(library->Find("cos", &cosine).ok());
  EXPECT_EQ(cosine(0), 1);
}

TEST(DynamicLibraryTest, AMissingLibraryIsNamedWithWhereItIsLookedFor) {
  const absl::Status status = DynamicLibrary::Open("libno_such_library.so.7").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot load libno_such_library.so.7: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("LD_LIBRARY_PATH"));
}

TEST(DynamicLibraryTest, AMissingFunctionIsNamed) {
  const auto library = DynamicLibrary::Open("libm.so.6");
  ASSERT_TRUE(library.ok());
  void (*function)() = nullptr;
  const absl::Status status = library->Find("no_such_function", &function);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("libm.so.6 has no no_such_function"));
  EXPECT_EQ(function, nullptr);
}

}  // namespace
}  // namespace satrap
