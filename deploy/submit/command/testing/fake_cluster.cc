#include "deploy/submit/command/testing/fake_cluster.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/check.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

// The folder `objects` holds a file KIND_NAME for each object, and the folder `status` the object's
// status in a file of the same name. The file `pods` has a line for each pod.
constexpr char kCluster[] = R"sh(#!/bin/bash
dir="$(dirname "$0")"
input="$1"
shift
words=()
label=""  # that the pods that are asked for have
for arg; do
  case "$arg" in
    --selector=*component=*) label="\"app.kubernetes.io/component\":\"${arg##*=}\"" ;;
    --*) ;;
    *) words+=("$arg") ;;
  esac
done
# The object in a file of YAML as JSON, without the brace at its end: the first value of each key.
json_of() {
  awk '
    {
      key = $1
      if (sub(/:$/, "", key) == 0 || key in first) next
      value = $0
      sub(/^[^:]*: */, "", value)
      gsub(/^"|"$/, "", value)
      first[key] = value
    }
    function texts(prefix, names,   n, i, name, text) {
      n = split(names, name, " ")
      for (i = 1; i <= n; ++i)
        if (prefix name[i] in first) text = text "\"" prefix name[i] "\":\"" first[prefix name[i]] "\","
      return text "\"x\":\"\""
    }
    END {
      printf "{\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\",\"uid\":\"uid-of-%s_%s\",", first["kind"],
        first["name"], first["kind"], first["name"]
      printf "\"namespace\":\"ml\",\"labels\":{%s},", texts("app.kubernetes.io/", "name instance component")
      printf "\"annotations\":{%s}", texts("satrap/", "submission identity command run-dir")
      if ("uid" in first) printf ",\"ownerReferences\":[{\"uid\":\"%s\"}]", first["uid"]
      printf "},\"spec\":{%s}", "replicas" in first ? "\"replicas\":" first["replicas"] : ""
    }' "$1"
}
show() {  # FILE
  local status="$dir/status/${1##*/}"
  printf '%s' "$(<"$1")"
  [[ ! -e "$status" ]] || printf ',"status":%s' "$(<"$status")"
  printf '}'
}
kind_of() {
  case "$1" in
    jobs.batch) echo Job ;;
    services) echo Service ;;
    configmaps) echo ConfigMap ;;
    statefulsets.apps) echo StatefulSet ;;
  esac
}
list() {  # FILE...: those that are there, and the pods
  local file pods comma=""
  printf '{"kind":"List","items":['
  for file; do
    [[ -e "$file" ]] || continue
    printf '%s' "$comma"
    show "$file"
    comma=,
  done
  if [[ "$with_pods" == true && -e "$dir/objects/Job_demo-members" && -e "$dir/pods" ]]; then
    pods="$(grep -F -- "$label" "$dir/pods" | paste -s -d ,)"
    [[ -z "$pods" ]] || printf '%s%s' "$comma" "$pods"
  fi
  printf ']}'
}
with_pods=false
case "${words[0]}" in
  version) echo '{}' ;;
  auth) ;;
  logs) exit 1 ;;
  create)
    json="$(json_of "$input")"
    object="${json#*uid-of-}"
    object="${object%%\"*}"
    if [[ -e "$dir/refused/$object" ]]; then
      cat "$dir/refused/$object" >&2
      exit 1
    fi
    printf '%s' "$json" >"$dir/objects/$object"
    show "$dir/objects/$object"
    ;;
  delete)
    for word in "${words[@]:1}"; do rm -f "$dir/objects/$(kind_of "${word%/*}")_${word#*/}"; done
    if [[ ! -e "$dir/objects/Job_demo-members" ]]; then
      rm -f "$dir"/objects/Service_* "$dir"/objects/StatefulSet_*
    fi
    ;;
  get)
    case "${words[1]}" in
      persistentvolumeclaims)
        echo '{"metadata":{"name":"runs"},"spec":{"accessModes":["ReadWriteMany"]},"status":{"phase":"Bound"}}'
        ;;
      secrets) echo "secret/${words[2]}" ;;
      events) echo "{\"items\":[$(cat "$dir/events" 2>/dev/null)]}" ;;
      pods)
        with_pods=true
        list
        ;;
      jobs.batch,*)
        with_pods=true
        list "$dir"/objects/Job_* "$dir"/objects/StatefulSet_*
        ;;
      */*)
        files=()
        for word in "${words[@]:1}"; do
          files+=("$dir/objects/$(kind_of "${word%/*}")_${word#*/}")
        done
        list "${files[@]}"
        ;;
      *)
        file="$dir/objects/$(kind_of "${words[1]}")_${words[2]}"
        [[ ! -e "$file" ]] || show "$file"
        ;;
    esac
    ;;
  *)
    echo "no answer for: ${words[*]}" >&2
    exit 64
    ;;
esac
)sh";

void Write(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  CHECK(file.good()) << path;
}

// The text as a JSON string.
std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

}  // namespace

void FakeClusterTest::SetUp() {
  FakeKubectlTest::SetUp();
  for (const char* name : {"/objects", "/status", "/refused"}) fs::create_directory(dir_ + name);
  AnswerOthersBy(kCluster);
  kubectl_ = std::make_unique<Kubectl>("ml", program());
}

absl::StatusOr<int> FakeClusterTest::Submit(const RunInCluster& run, bool detach) {
  SubmitOptions options;
  options.detach = detach;
  options.runs_dir = dir_ + "/runs";
  options.watch.show = [this](absl::string_view line) { shown_ += std::string(line); };
  options.watch.say = [this](const std::string& line) { said_.push_back(line); };
  options.watch.wait = [this](int64_t) {
    if (on_wait_) on_wait_();
    return signal_;
  };
  return SubmitRun(run, kubectl_.get(), options);
}

void FakeClusterTest::SetStatus(const std::string& kind, const std::string& name,
                                const std::string& json) {
  Write(absl::StrCat(dir_, "/status/", kind, "_", name), json);
}

void FakeClusterTest::SetPods(const std::vector<std::string>& pods) {
  pods_ = pods;
  Write(dir_ + "/pods", absl::StrJoin(pods, "\n"));
}

std::string FakeClusterTest::Pod(const std::string& part, const std::string& name,
                                 const std::string& status) {
  return absl::StrCat(R"({"kind":"Pod","metadata":{"name":")", name, R"(","uid":"uid-of-)", name,
                      R"(","labels":{"app.kubernetes.io/component":")", part, R"("}},"status":)",
                      absl::StrReplaceAll(status, {{"\n", " "}}), "}");
}

void FakeClusterTest::SetEvent(const std::string& kind, const std::string& name,
                               const std::string& reason, const std::string& message) {
  Write(dir_ + "/events",
        absl::StrCat(R"({"involvedObject":{"uid":"uid-of-)", kind, "_", name, R"("},"reason":")",
                     reason, R"(","message":)", Quoted(message), "}"));
}

void FakeClusterTest::Refuse(const std::string& kind, const std::string& name,
                             const std::string& why) {
  Write(absl::StrCat(dir_, "/refused/", kind, "_", name), why + "\n");
}

void FakeClusterTest::Lose(const std::string& object) {
  fs::remove(absl::StrCat(dir_, "/objects/", absl::StrReplaceAll(object, {{" ", "_"}})));
}

std::vector<std::string> FakeClusterTest::Objects() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir_ + "/objects")) {
    names.push_back(absl::StrReplaceAll(entry.path().filename().string(), {{"_", " "}}));
  }
  std::sort(names.begin(), names.end());
  return names;
}

void FakeClusterTest::FailRun(const std::string& why) {
  SetStatus("Job", "demo", R"({"conditions":[{"type":"Failed","status":"True"}]})");
  std::vector<std::string> pods = pods_;
  pods.push_back(Pod("story", "demo-told",
                     absl::StrCat(R"({"phase":"Failed","containerStatuses":[{"state":{)",
                                  R"("terminated":{"message":)", Quoted(why), "}}}]}")));
  Write(dir_ + "/pods", absl::StrJoin(pods, "\n"));
}

}  // namespace satrap
