// Describes how ids of the data become rows of tables. A cut stores this, so that a run that starts
// from the cut's model can tell whether its ids find the model's rows. The description names, for
// each feature, the table, the id space, and the rules by which the data becomes ids. The rows
// themselves do not show these, because their keys are hashes.
//
// Rules, named as the fields of the job that set them:
//     ids            "hashed text" or "numbers", if the format of the data decides it
//     vocabulary     of the feature's column: "none", or the number of words and their hash
//     trim, trim_lists   of data.csv, if they are set and affect the column
//     bucketize, criteo_x4, cross_columns   of the feature, if it has them
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_SAVED_FEATURES_H_
#define SATRAP_COMMON_CHECKPOINT_SAVED_FEATURES_H_

#include <string>
#include <vector>

#include "google/protobuf/repeated_field.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"

namespace satrap {

// The features of the job, in its order. REQUIRES: a validated job
google::protobuf::RepeatedPtrField<SavedFeature> SavedFeaturesOf(const JobConfig& job);

// How the features of a job fit a table of a model.
struct TableFit {
  std::vector<std::string> features;  // those that read the table in an id space of the model
  std::vector<std::string> features_without_rows;  // those that read it in another id space
  // Texts for people: one sentence for each feature whose id space the model's table does not have,
  // or whose ids are made by rules other than the model's. The sentence names the field of the job
  // that would make the two agree.
  std::vector<std::string> warnings;
};

// How the job's features fit the table of this name, which the run takes from the model. Empty if
// the cut was made by an older build, which did not store the rules by which ids are made.
// REQUIRES: a validated job
TableFit FitOf(const CheckpointManifest& model, const JobConfig& job, const std::string& table);

// The warnings for all tables that the run takes from the model: those that match
// WarmStartConfig.only, or all if `only` is empty or the run only scores.
std::vector<std::string> IdWarnings(const CheckpointManifest& model, const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_SAVED_FEATURES_H_
