// The objects of a run in a Kubernetes cluster (docs/kubernetes.md says what each is for):
//
//   Job RUN-members               owns all but Job RUN, and ends with the run
//   Service RUN-coordinator       the address at which the pods find the coordinator
//   ConfigMap RUN-job             the resolved job; from submission N = 2 on, its name is RUN-job-N
//   StatefulSet RUN-ROLE          the pods of a role; the ordinal of a pod is its index
//   Job RUN                       shows the run to those outside, and tells its story
//
// The ConfigMap has no owner. It stays, like Job RUN, because the next submission (a resume) begins
// with it.
//
// Thread-safe: functions of their arguments. The same arguments give the same bytes.

#ifndef SATRAP_DEPLOY_SUBMIT_MANIFESTS_H_
#define SATRAP_DEPLOY_SUBMIT_MANIFESTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "deploy/submit/kubectl/yaml.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

// Labels and annotations of all objects.
inline constexpr char kAppLabel[] = "app.kubernetes.io/name";  // "satrap"
inline constexpr char kRunLabel[] = "app.kubernetes.io/instance";
inline constexpr char kPartLabel[] = "app.kubernetes.io/component";
inline constexpr char kSubmissionAnnotation[] = "satrap/submission";
inline constexpr char kIdentityAnnotation[] = "satrap/identity";
inline constexpr char kCommandAnnotation[] = "satrap/command";
// The annotation of Job RUN, the coordinator's objects and the ConfigMap: the run's folder.
inline constexpr char kRunDirAnnotation[] = "satrap/run-dir";
// The annotation of the ConfigMap: what `satrap scale` has changed in its job, one assignment per
// line.
inline constexpr char kChangesAnnotation[] = "satrap/changes";
// The part of ReaderJob.
inline constexpr char kReaderPart[] = "reader";
// The keys of the ConfigMap.
inline constexpr char kJobKey[] = "job.textproto";
inline constexpr char kPatchKey[] = "template_patch.yaml";

// The port at which the coordinator, embedding PSs and embedding workers serve, and the port of
// each role's metrics and readiness.
inline constexpr int kServePort = 7000;
inline constexpr int kMetricsPort = 7001;

struct RunInCluster {
  JobConfig job;      // resolved and valid, with `kubernetes`; its run_dir is not used
  std::string name;   // IsRunName
  std::string space;  // the namespace; empty: the one of the user's context
  std::string image;
  std::string template_patch;  // of PatchOfTemplate; empty: none
  int submission = 1;
  // For a submission after the first: the run's folder, and the cut to begin from. If the cut is
  // empty, the submission begins from the newest one.
  std::string run_dir;
  std::string from;
  // Distinguishes the objects of this submission from those of others. Empty: they have no such
  // annotation.
  std::string identity;
  // Random. Distinguishes what this command has made from what another command has made for the
  // same submission. Empty: the objects have no such annotation.
  std::string command;
  // The uid of Job RUN-members, which only the cluster knows. Empty: no object has an owner, and
  // the run's folder is named after the run alone.
  std::string owner_uid;
};

struct Manifest {
  std::string kind;  // "Job", "Service", "ConfigMap", "StatefulSet"
  std::string name;
  bool has_pods = false;
  Yaml object = "";
};

// The name by which kubectl takes the object: "statefulsets.apps/demo-nn-worker".
std::string ResourceOf(const Manifest& manifest);

// "demo-embedding-ps" of the run demo.
std::string NameOfRole(absl::string_view run, Role role);
std::string NameOfMembersJob(absl::string_view run);
std::string NameOfJobMap(const RunInCluster& run);

// The folder of the run: run_dir if that is set. Otherwise the folder is in the volume that is not
// read-only, and is named after the run and, if there is one, the owner. So a run that has the name
// of a deleted run does not continue the deleted one.
std::string RunDirOf(const RunInCluster& run);

// The Job that owns the others.
Manifest MembersJob(const RunInCluster& run);
// All other objects, in the order in which they are made. Job RUN is the last.
std::vector<Manifest> OwnedManifests(const RunInCluster& run);

// A Job that runs one of satrap's commands, in order to read the run's folder when the run has no
// pods any more. `command` are the words of a command that takes a run's folder; `more` and the
// flags of PlaceFlags follow the folder. `id` makes the Job's name unique. The Job ends by itself
// within kReaderSeconds, and Kubernetes removes it a minute later.
inline constexpr int kReaderSeconds = 120;
Manifest ReaderJob(const RunInCluster& run, const std::string& id,
                   const std::vector<std::string>& command,
                   const std::vector<std::string>& more = {});

// All objects, without owners, as documents of YAML.
std::string ManifestsText(RunInCluster run);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_MANIFESTS_H_
