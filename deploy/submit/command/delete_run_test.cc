#include "deploy/submit/command/delete_run.h"

#include <cstdint>
#include <memory>
#include <string>

#include "deploy/submit/command/run_place.h"
#include "deploy/submit/kubectl/kubectl.h"
#include "deploy/submit/kubectl/testing/fake_kubectl.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr char kObjects[] = "*get jobs.batch,services,configmaps,statefulsets.apps*";
constexpr char kHasEnded[] = R"({"items":[{"kind":"Job","metadata":{"name":"demo"},
    "status":{"conditions":[{"type":"Complete","status":"True"}]}}]})";

class DeleteRunTest : public FakeKubectlTest {
 protected:
  void SetUp() override {
    FakeKubectlTest::SetUp();
    BlockSignalsOfStream();
    UseKubectl(program());
    EXPECT_EQ(NoteNamespace(dir_ + "/runs", "demo", "ml"), absl::OkStatus());
  }
  void UseKubectl(const std::string& program) {
    kubectl_ = std::make_unique<Kubectl>("ml", program);
  }
  absl::Status Delete(bool now) {
    return DeleteNotedRun("demo", now, dir_ + "/runs", kubectl_.get(), [](int64_t) { return 0; });
  }
  std::string Noted() { return *NamespaceOf("demo", "", dir_ + "/runs"); }

  std::unique_ptr<Kubectl> kubectl_;
};

TEST_F(DeleteRunTest, ARunThatIsRemovedIsNoLongerNoted) {
  On(kObjects, kHasEnded);
  On("*delete*", {"", 1, "the server is away\n", true});
  EXPECT_FALSE(Delete(/*now=*/true).ok());
  EXPECT_EQ(Noted(), "ml") << "it is still there";
  On("*delete*", "");
  EXPECT_EQ(Delete(/*now=*/true), absl::OkStatus());
  EXPECT_EQ(Noted(), "");
}

TEST_F(DeleteRunTest, ARunThatIsGoneAlreadyIsNoLongerNoted) {
  On("*get*", R"({"items":[]})");
  EXPECT_TRUE(absl::IsNotFound(Delete(/*now=*/false)));
  EXPECT_EQ(Noted(), "");
}

TEST_F(DeleteRunTest, WithoutAKubectlNothingIsKnownOfTheRun) {
  UseKubectl(dir_ + "/no_kubectl");
  EXPECT_TRUE(absl::IsNotFound(Delete(/*now=*/true)));
  EXPECT_EQ(Noted(), "ml");
}

}  // namespace
}  // namespace satrap
