// Test support: a small valid job, and the problems that ValidateJob reports after changes to it.

#ifndef SATRAP_COMMON_CONFIG_TESTING_VALIDATION_CHECK_H_
#define SATRAP_COMMON_CONFIG_TESTING_VALIDATION_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/config/field_path.h"
#include "common/config/text_format.h"
#include "common/config/validate/validate_job.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace satrap {

// A job whose data section, without features, is the text `data`.
inline JobConfig JobWithData(absl::string_view data) {
  JobConfig job;
  const std::string text = absl::StrCat("name: 'small' data {", data, R"(}
      tables { name: 'ids' id: 0 segments { name: 'linear' dim: 1 } }
      model { layers { name: 'logit' inputs: '*.linear' sum {} } })");
  CHECK_OK(ParseText(text, "job", &job));
  return job;
}

inline JobConfig SmallJob() {
  return JobWithData(R"(
      synthetic { vocabulary_sizes: [ 30, 40 ] interacting_features: 2 }
      features { name: 'C1' table: 'ids' }
      features { name: 'C2' table: 'ids' }
      numerics { name: 'I1' })");
}

// The problems of `job` with the assignments applied, one "PATH: WHAT" per line; "" if it is valid.
inline std::string ProblemsOf(JobConfig job, const std::vector<std::string>& assignments = {}) {
  for (const std::string& assignment : assignments) CHECK_OK(SetField(assignment, &job));
  std::string lines(ValidateJob(job).message());
  for (size_t at = lines.find("  "); at != std::string::npos; at = lines.find("\n  ")) {
    lines.erase(at == 0 ? 0 : at + 1, 2);
  }
  return lines;
}

// Expects that the job is valid with `low` and with `high`, and that a value just outside is
// refused with an error that names field, range and value.
inline void ExpectRange(const JobConfig& job, const std::string& field, int64_t low, int64_t high) {
  for (const int64_t value : {low, high}) {
    EXPECT_EQ(ProblemsOf(job, {absl::StrCat(field, "=", value)}), "") << field << " " << value;
  }
  for (const int64_t value : {low - 1, high + 1}) {
    EXPECT_EQ(ProblemsOf(job, {absl::StrCat(field, "=", value)}),
              absl::StrCat(field, ": must be in [", low, ", ", high, "], got ", value));
  }
}

// Expects that every one of `good` is valid, and every one of `bad` is refused with "FIELD: must be
// RANGE, got BAD".
inline void ExpectValues(const JobConfig& job, const std::string& field,
                         const std::vector<std::string>& good, const std::vector<std::string>& bad,
                         absl::string_view range) {
  for (const std::string& value : good) {
    EXPECT_EQ(ProblemsOf(job, {absl::StrCat(field, "=", value)}), "") << field << " " << value;
  }
  for (const std::string& value : bad) {
    EXPECT_EQ(ProblemsOf(job, {absl::StrCat(field, "=", value)}),
              absl::StrCat(field, ": must be ", range, ", got ", value));
  }
}

inline void ExpectPositive(const JobConfig& job, const std::string& field) {
  ExpectValues(job, field, {"1e-30", "1e+30"}, {"0", "-1e-30", "inf", "nan"},
               "finite and positive");
}

inline void ExpectFinite(const JobConfig& job, const std::string& field) {
  ExpectValues(job, field, {"0", "-1", "1"}, {"inf", "-inf", "nan"}, "finite");
}

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_TESTING_VALIDATION_CHECK_H_
