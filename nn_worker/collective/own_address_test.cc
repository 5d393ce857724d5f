#include "nn_worker/collective/own_address.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(OwnAddressTest, TakesAddressesOfBothKindsAndNames) {
  EXPECT_EQ(OwnAddressOf("127.0.0.1").value(), "127.0.0.1");
  EXPECT_EQ(OwnAddressOf("0.0.0.0").value(), "0.0.0.0");
  EXPECT_TRUE(OwnAddressOf("localhost").ok());
}

TEST(OwnAddressTest, TakesAnAddressOfIpv6WithAndWithoutBrackets) {
  const auto plain = OwnAddressOf("::1");
  if (!plain.ok()) {
    EXPECT_EQ(plain.status().code(), absl::StatusCode::kFailedPrecondition) << plain.status();
    GTEST_SKIP() << "this machine has no IPv6: " << plain.status();
  }
  EXPECT_EQ(*plain, "::1");
  EXPECT_EQ(OwnAddressOf("[::1]").value(), "::1");
}

void ExpectError(absl::string_view host, absl::StatusCode code, absl::string_view what) {
  const absl::Status status = OwnAddressOf(host).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("'", host, "'"))) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), what)) << status;
}

TEST(OwnAddressTest, NamesAHostThatDoesNotResolve) {
  ExpectError("no-such-host.invalid", absl::StatusCode::kUnavailable, "does not resolve");
  ExpectError("10.0.0.1:5000", absl::StatusCode::kUnavailable, "without a port");
}

TEST(OwnAddressTest, NamesWhatIsNoHost) {
  for (const absl::string_view host :
       {absl::string_view(""), absl::string_view("[]"), absl::string_view("[::1]:80"),
        absl::string_view("unix:/run/s"), absl::string_view("a b"),
        absl::string_view("127.0.0.1\0x", 11)}) {
    ExpectError(host, absl::StatusCode::kInvalidArgument, "is not a host");
  }
}

// 192.0.2.0/24 is reserved for documentation, so this machine cannot have the address.
TEST(OwnAddressTest, NamesAHostThatIsAnotherMachine) {
  ExpectError("192.0.2.1", absl::StatusCode::kFailedPrecondition, "is not this machine");
}

}  // namespace
}  // namespace satrap
