// How ids of the data become rows of tables, as a cut keeps it, so that a run which begins with the
// cut's model can tell whether its ids find those rows: by feature the table, the id space, and the
// rules by which the data becomes ids. A row itself says nothing of this: its key is a hash.
//
// Rules, by the field of the job that says them:
//     ids            "hashed text" or "numbers", where the format of the data tells
//     vocabulary     of the feature's column: "none", or the number of words and their hash
//     trim, trim_lists   of data.csv, as far as it has them and the column is touched by them
//     bucketize, criteo_x4, cross_columns   of the feature, where it has one
//
// Thread-safe: functions of their arguments.

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
  std::vector<std::string> features;  // that read the table in an id space of the model's
  std::vector<std::string> features_without_rows;  // that read it in another one
  // For people, one sentence each: a feature whose id space the model's table has not, or whose ids
  // come about by other rules. Names the field that joins them.
  std::vector<std::string> warnings;
};

// Of the table of this name, which the run takes of the model. Nothing if the cut is of an older
// build and says nothing of its ids. REQUIRES: a validated job
TableFit FitOf(const CheckpointManifest& model, const JobConfig& job, const std::string& table);

// The warnings of all tables that the run takes (WarmStartConfig.only); a run that scores takes
// all.
std::vector<std::string> IdWarnings(const CheckpointManifest& model, const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_SAVED_FEATURES_H_
