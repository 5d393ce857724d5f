// Test support: submissions of a small run, demo, to a scripted kubectl.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_TESTING_SUBMISSION_FIXTURE_H_
#define SATRAP_DEPLOY_SUBMIT_TESTING_SUBMISSION_FIXTURE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "deploy/submit/kubectl/kubectl.h"
#include "deploy/submit/kubectl/testing/fake_kubectl.h"
#include "deploy/submit/manifests.h"
#include "deploy/submit/submission.h"

namespace satrap {

inline constexpr char kNothing[] = R"({"kind":"List","items":[]})";

// The run demo of namespace ml. `more` are further fields of its section `kubernetes`.
RunInCluster RunWith(absl::string_view more = "");

// The ConfigMap of a submission of demo, as kubectl shows it. Its job has `replicas` embedding PSs.
// `annotations` are further ones, as "NAME":"VALUE".
std::string MapOf(int submission, int replicas, const std::string& annotations = "");

class SubmissionTest : public FakeKubectlTest {
 protected:
  void SetUp() override;

  // A submission whose lines go to said_, and whose waits return signal_ at once.
  Submission Submit(RunInCluster run, const std::string& patch = "");
  // An object of the submission of RunWith(), as kubectl shows it. `more` are fields of its
  // metadata. `command` is the command that has made it.
  std::string Shown(const std::string& kind, const std::string& name, const std::string& more = "",
                    const std::string& command = "another") {
    return ShownOf(RunWith(), kind, name, more, command);
  }
  std::string ShownOf(RunInCluster run, const std::string& kind, const std::string& name,
                      const std::string& more = "", const std::string& command = "another");
  static std::string List(const std::vector<std::string>& objects);
  // Kind and name of each object that was created, in order.
  std::vector<std::string> Created();

  std::unique_ptr<Kubectl> kubectl_;
  std::vector<std::string> said_;
  int signal_ = 0;  // that comes while it waits; 0: none
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_TESTING_SUBMISSION_FIXTURE_H_
