#include "common/config/candidates.h"

#include "absl/strings/str_cat.h"

namespace satrap {

bool IsCandidateLoss(TaskConfig::Loss loss) {
  switch (loss) {
    case TaskConfig::BCE:
    case TaskConfig::MSE:
    case TaskConfig::BPR:
    case TaskConfig::SOFTMAX_CROSS_ENTROPY:
      return false;
    case TaskConfig::SAMPLED_SOFTMAX:
    case TaskConfig::NCE:
    case TaskConfig::IN_BATCH_SOFTMAX:
      return true;
  }
  return false;
}

int CandidateFeatureOf(const JobConfig& job) {
  if (!job.model().has_candidates()) return -1;
  for (int f = 0; f < job.data().features_size(); ++f) {
    if (job.data().features(f).name() == job.model().candidates().feature()) return f;
  }
  return -1;
}

bool RemovesHits(const CandidatesConfig& candidates, TaskConfig::Loss loss) {
  if (candidates.has_remove_accidental_hits()) return candidates.remove_accidental_hits();
  return loss != TaskConfig::NCE;
}

bool NeedsCandidateList(const JobConfig& job) {
  const CandidatesConfig& candidates = job.model().candidates();
  return job.action() == JobConfig::TRAIN && job.model().has_candidates() &&
         (candidates.count() > 0 || candidates.subtract_log_q());
}

std::string CandidateListPath(const JobConfig& job) {
  return absl::StrCat(job.run_dir(), "/candidates.bin");
}

}  // namespace satrap
