// The objects of a run in a Kubernetes cluster (docs/kubernetes.md says what each is for):
//
//   Job RUN-members               owns all but Job RUN, and ends with the run
//   Service RUN-coordinator       the address at which the pods find the coordinator
//   ConfigMap RUN-job             the resolved job; of submission N from the second on, RUN-job-N
//   StatefulSet RUN-ROLE          the pods of a role; the ordinal of a pod is its index
//   Job RUN                       the run for those who look from outside; tells its story
//
// The ConfigMap has no owner: it stays with Job RUN, because the next submission, a resume, begins
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
// Of Job RUN, of the coordinator and of the ConfigMap.
inline constexpr char kRunDirAnnotation[] = "satrap/run-dir";
// Of the ConfigMap: what `satrap scale` has changed in its job, an assignment a line.
inline constexpr char kChangesAnnotation[] = "satrap/changes";
// The part of ReaderJob.
inline constexpr char kReaderPart[] = "reader";
// The keys of the ConfigMap.
inline constexpr char kJobKey[] = "job.textproto";
inline constexpr char kPatchKey[] = "template_patch.yaml";

// The port at which the coordinator, embedding PSs and embedding workers serve, and the one of the
// metrics and the readiness of each role.
inline constexpr int kServePort = 7000;
inline constexpr int kMetricsPort = 7001;

struct RunInCluster {
  JobConfig job;      // resolved and valid, with `kubernetes`; its run_dir is not used
  std::string name;   // IsRunName
  std::string space;  // the namespace; empty: the one of the user's context
  std::string image;
  std::string template_patch;  // of PatchOfTemplate; empty: none
  int submission = 1;
  // Of a run that goes on by a later submission: its folder, and the cut that it begins from, empty
  // for the newest.
  std::string run_dir;
  std::string from;
  // Tells the objects of one submission from those of another; empty: they have no such annotation.
  std::string identity;
  // Tells what one command has made from what another one of the same submission has made: random.
  // Empty: they have no such annotation.
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

// "statefulsets.apps/demo-nn-worker", as kubectl takes it.
std::string ResourceOf(const Manifest& manifest);

// "demo-embedding-ps" of the run demo.
std::string NameOfRole(absl::string_view run, Role role);
std::string NameOfMembersJob(absl::string_view run);
std::string NameOfJobMap(const RunInCluster& run);

// The folder of the run: run_dir; without that, in the volume that is not read only, named after
// the run and, if there is one, the owner. So a run that takes the name of one that was deleted
// does not go on with that one.
std::string RunDirOf(const RunInCluster& run);

// The Job that owns the others.
Manifest MembersJob(const RunInCluster& run);
// All others, in the order in which they are made. Job RUN is the last.
std::vector<Manifest> OwnedManifests(const RunInCluster& run);

// A Job that runs `command`, words of one of satrap's that takes the run's folder, `more` and
// PlaceFlags, and so reads the folder when the run has no pods any more. `id` tells its name from
// others'. It ends by itself within kReaderSeconds, and Kubernetes removes it a minute later.
inline constexpr int kReaderSeconds = 120;
Manifest ReaderJob(const RunInCluster& run, const std::string& id,
                   const std::vector<std::string>& command,
                   const std::vector<std::string>& more = {});

// All objects, without owners, as documents of YAML.
std::string ManifestsText(RunInCluster run);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_MANIFESTS_H_
