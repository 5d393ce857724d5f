#include "deploy/submit/testing/submission_fixture.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/config/job_config.h"
#include "common/config/testing/validation_check.h"
#include "common/json/json.h"
#include "proto/kubectl.pb.h"

namespace satrap {

RunInCluster RunWith(absl::string_view more) {
  RunInCluster run;
  run.job = SmallJob();
  CHECK_OK(ParseText(absl::StrCat("volumes { claim: 'runs' mount_path: '/runs' } ", more),
                     "kubernetes", run.job.mutable_kubernetes()));
  ResolveJob(&run.job);
  CHECK_OK(ValidateJob(run.job));
  run.name = "demo";
  run.space = "ml";
  run.image = "satrap:1";
  return run;
}

std::string MapOf(int submission, int replicas, const std::string& annotations) {
  RunInCluster run = RunWith();
  run.job.mutable_embedding_ps()->set_replicas(replicas);
  run.job.mutable_kubernetes()->set_image("satrap:7");
  // Let JsonOf write the data as an object whose fields have the keys as names.
  KubectlObject data;
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {kJobKey, ResolvedJobText(run.job)}, {kPatchKey, "spec: {}\n"}}) {
    KubectlText* const entry = data.add_data();
    entry->set_name(key);
    entry->set_value(value);
  }
  std::string fields = JsonOf(data);
  fields = fields.substr(fields.find("\"data\""));
  fields.pop_back();
  return absl::StrCat(R"({"kind":"ConfigMap","metadata":{"name":"demo-job-)", submission,
                      R"(","annotations":{"satrap/submission":")", submission,
                      R"(","satrap/run-dir":"/runs/demo-first")", annotations.empty() ? "" : ",",
                      annotations, "}},", fields, "}");
}

void SubmissionTest::SetUp() {
  FakeKubectlTest::SetUp();
  kubectl_ = std::make_unique<Kubectl>("ml", program());
}

Submission SubmissionTest::Submit(RunInCluster run, const std::string& patch) {
  run.template_patch = patch;
  return Submission(
      std::move(run), kubectl_.get(), [this](const std::string& line) { said_.push_back(line); },
      [this](int64_t) { return signal_; });
}

std::string SubmissionTest::ShownOf(RunInCluster run, const std::string& kind,
                                    const std::string& name, const std::string& more,
                                    const std::string& command) {
  const std::string identity = Submit(run).run().identity;
  run.owner_uid = "u-1";
  const bool is_owned = kind != "Job" && kind != "ConfigMap";
  return absl::StrCat(
      R"({"kind":")", kind, R"(","metadata":{"name":")", name,
      R"(","uid":"u-1","labels":{"app.kubernetes.io/name":"satrap",)",
      R"("app.kubernetes.io/instance":"demo"},"annotations":{"satrap/submission":")",
      run.submission, R"(","satrap/run-dir":")", RunDirOf(run), R"(","satrap/identity":")",
      identity, R"(","satrap/command":")", command, "\"}",
      is_owned ? R"(,"ownerReferences":[{"uid":"u-1"}])" : "", more, "}}");
}

std::string SubmissionTest::List(const std::vector<std::string>& objects) {
  return absl::StrCat(R"({"kind":"List","items":[)", absl::StrJoin(objects, ","), "]}");
}

std::vector<std::string> SubmissionTest::Created() {
  std::vector<std::string> created;
  const std::vector<std::string> calls = Calls();
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!absl::StrContains(calls[i], " create ")) continue;
    const std::string text = Input(i);
    const auto after = [&](const std::string& key) {
      const size_t at = text.find(key) + key.size();
      return text.substr(at, text.find('\n', at) - at);
    };
    created.push_back(absl::StrCat(after("kind: "), " ", after("metadata:\n  name: ")));
  }
  return created;
}

}  // namespace satrap
