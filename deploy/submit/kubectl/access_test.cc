#include "deploy/submit/kubectl/access.h"

#include <string>

#include "deploy/submit/kubectl/testing/fake_kubectl.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class AccessTest : public FakeKubectlTest {
 protected:
  absl::Status Advise(const absl::Status& failed, const std::string& space = "ml") {
    Kubectl kubectl(space, program());
    return WithAdvice(failed, &kubectl);
  }

  const absl::Status failed_ = absl::FailedPreconditionError("kubectl get has failed: why");
};

TEST_F(AccessTest, AClusterThatDoesNotAnswerIsNamedAsSuch) {
  On("*version*", {"", 1, "The connection to the server was refused\n", false});
  const absl::Status status = Advise(failed_);
  EXPECT_EQ(status.code(), failed_.code());
  EXPECT_THAT(std::string(status.message()), StartsWith("kubectl get has failed: why: the cluster "
                                                        "of your context does not answer"));
  EXPECT_EQ(Calls().size(), 1u);
}

TEST_F(AccessTest, AUserWithoutRightsHearsWhichRoleIsNeededWhere) {
  On("*version*", "{}");
  On("*auth can-i create statefulsets.apps --quiet*", {"", 1, "", false});
  EXPECT_THAT(std::string(Advise(failed_).message()),
              HasSubstr(": you need the cluster role `edit` in namespace ml, "));
  EXPECT_THAT(std::string(Advise(failed_, "").message()),
              HasSubstr("in the namespace of your context"));
}

TEST_F(AccessTest, WhatHasAnotherCauseStaysAsItIs) {
  On("*version*", "{}");
  On("*auth can-i*", "");
  EXPECT_EQ(Advise(failed_), failed_);
  const size_t calls = Calls().size();
  for (const absl::Status& other :
       {absl::NotFoundError("no kubectl"), absl::CancelledError("stopped by a signal")}) {
    EXPECT_EQ(Advise(other), other);
  }
  EXPECT_EQ(Calls().size(), calls) << "nothing is asked";
}

}  // namespace
}  // namespace satrap
