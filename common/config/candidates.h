// The settings of candidates in a job (ModelConfig.candidates), with their defaults and names
// resolved.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_CANDIDATES_H_
#define SATRAP_COMMON_CONFIG_CANDIDATES_H_

#include <string>

#include "proto/job.pb.h"

namespace satrap {

// Whether the loss compares a sample's item with candidates. Such a loss has no label and no
// metric.
bool IsCandidateLoss(TaskConfig::Loss loss);

// The index in data.features of the feature whose items are the candidates; -1 if the job has no
// model.candidates. REQUIRES: the job is validated
int CandidateFeatureOf(const JobConfig& job);

// Whether a candidate equal to the sample's own item is left out for this loss
// (CandidatesConfig.remove_accidental_hits).
bool RemovesHits(const CandidatesConfig& candidates, TaskConfig::Loss loss);

// Whether embedding workers need the list of items. They do if the job trains and draws candidates
// or uses log Q.
bool NeedsCandidateList(const JobConfig& job);
// Where a run keeps that list (common/candidates/candidate_list.h).
std::string CandidateListPath(const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_CANDIDATES_H_
