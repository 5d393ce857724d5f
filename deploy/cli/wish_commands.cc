// The commands that ask a run in progress for something (a wish): stop, checkpoint RUN, scale.

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/config/text_format.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_job.h"
#include "deploy/cli/run_wishes.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/story/pod_stop.h"
#include "deploy/submit/cluster_flags.h"
#include "deploy/submit/cluster_runs.h"
#include "deploy/submit/kubectl/kubectl.h"
#include "deploy/submit/run_scale.h"

namespace satrap {
namespace {

// How long the last cut and the end of a run in pods may take.
constexpr int64_t kPodStopMs = 1800000;

int Report(const absl::StatusOr<WishEnd>& end) {
  if (!end.ok()) return PrintError(end.status());
  if (!end->warning.empty()) fprintf(stderr, "satrap: warning: %s\n", end->warning.c_str());
  printf("%s\n", end->text.c_str());
  return 0;
}

int Wish(const std::string& run,
         absl::FunctionRef<absl::StatusOr<WishEnd>(const std::string& run_dir)> wish) {
  const auto run_dir = FindRun(run, kRunsDir);
  return run_dir.ok() ? Report(wish(*run_dir)) : PrintError(run_dir.status());
}

absl::Status ScaleInCluster(const std::string& run, const std::vector<std::string>& sets,
                            const std::string& space) {
  RETURN_IF_ERROR(CheckRunName(run));
  Kubectl kubectl(space);
  BlockSignalsOfStream();
  return ScaleRunInCluster(run, sets, &kubectl, {ShowText, SayLine, WaitForSignal});
}

// Sets the namespace of `place` as FindNamespace does, unless this process is in a pod of the run,
// where RUN is the run's folder.
absl::Status TakePlace(const std::string& run, PlaceFlags* place) {
  return place->coordinator.empty() ? FindNamespace(run, &place->space) : absl::OkStatus();
}

absl::StatusOr<std::string> PlanText(const absl::StatusOr<ScalePlan>& plan) {
  RETURN_IF_ERROR(plan.status());
  return ToText(*plan);
}

}  // namespace

absl::Status RunInCoordinatorPod(const std::string& run, const std::string& space,
                                 const std::vector<std::string>& command) {
  RETURN_IF_ERROR(CheckRunName(run));
  Kubectl kubectl(space);
  ASSIGN_OR_RETURN(std::vector<std::string> args, ArgumentsInPod(run, command, &kubectl));
  return kubectl.Become(std::move(args));
}

int StopCommand(const CommandCall& call) {
  PlaceFlags flags;
  const auto arguments = ParseArguments(call, flags.Table());
  if (!arguments.ok()) return PrintError(arguments.status());
  const absl::Status found = TakePlace((*arguments)[0], &flags);
  if (!found.ok()) return PrintError(found);
  if (!flags.space.empty()) {
    return PrintError(RunInCoordinatorPod((*arguments)[0], flags.space, {"stop"}));
  }
  if (!flags.coordinator.empty()) {
    BlockSignalsOfStream();
    const absl::StatusOr<std::string> stopped = StopFromPod(
        (*arguments)[0], flags.submission, flags.coordinator, kPodStopMs, WaitForSignal);
    if (!stopped.ok()) return PrintError(stopped.status());
    printf("%s\n", stopped->c_str());
    return 0;
  }
  return Wish((*arguments)[0], [](const std::string& run_dir) { return StopRun(run_dir); });
}

int TakeCutOf(const std::string& run, const PlaceFlags& place) {
  if (place.coordinator.empty()) return Wish(run, TakeCut);
  return Report(TakeCutInPod(run, place.submission, place.coordinator));
}

int ScaleCommand(const CommandCall& call) {
  ScaleFlags flags;
  const auto arguments = ParseScale(call, flags.Table());
  if (!arguments.ok()) return PrintError(arguments.status());
  const std::string& run = (*arguments)[0];
  const std::vector<std::string> sets(arguments->begin() + 1, arguments->end());
  const absl::Status found = TakePlace(run, &flags.place);
  if (!found.ok()) return PrintError(found);
  const PlaceFlags& place = flags.place;
  if (!place.space.empty()) {
    const absl::Status scaled = ScaleInCluster(run, sets, place.space);
    return scaled.ok() ? 0 : PrintError(scaled);
  }
  if (place.coordinator.empty()) {
    return Wish(run, [&sets](const std::string& run_dir) { return ScaleRun(run_dir, sets); });
  }
  if (flags.plan) {
    return PrintText(PlanText(PlanScaleInPod(run, place.submission, place.coordinator, sets)));
  }
  return Report(ScaleRunInPod(run, place.submission, place.coordinator, sets));
}

}  // namespace satrap
