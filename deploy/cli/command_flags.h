// The flags of the commands: one struct for each command. Its method Table() returns the table of
// the command's flags (flags.h), whose targets are the members of the struct.
//
// Thread-compatible.

#ifndef SATRAP_DEPLOY_CLI_COMMAND_FLAGS_H_
#define SATRAP_DEPLOY_CLI_COMMAND_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/flags/flags.h"

namespace satrap {

struct NoFlags {
  std::vector<Flag> Table() { return {}; }
};

// The flags of commands that run a job. `evaluate` has only these.
struct RunFlags {
  std::vector<std::string> sets;  // path=value, in order
  std::string report;             // a file name
  std::string run_dir;
  std::string output_file;  // only in the table of predict
  std::vector<Flag> Table();
};

struct DemoFlags {
  RunFlags run;
  bool kafka = false;
  absl::optional<double> rate;     // records a second; default: kDefaultRate
  absl::optional<double> minutes;  // absent: until all is trained
  static constexpr double kDefaultRate = 20000;
  std::vector<Flag> Table();
  // --rate and --minutes need --kafka.
  absl::Status Check() const;
};

struct TrainFlags {
  RunFlags run;
  std::string init_from;
  std::vector<Flag> Table();
};

struct ValidateFlags {
  std::vector<std::string> sets;
  std::vector<Flag> Table();
};

struct PredictFlags {
  RunFlags run;
  std::vector<std::string> outputs;  // layers, in order
  std::vector<Flag> Table();
};

struct RetrieveFlags {
  std::string users, items, relevant;  // files
  std::string seen;                    // empty: nothing was seen
  std::string popularity;              // empty: no baseline
  std::vector<int> ks = {20, 50};
  bool json = false;
  std::string output_file;
  std::vector<Flag> Table();
};

struct ResumeFlags {
  std::string from_cut;
  std::string space;    // as in PlaceFlags
  std::string image;    // only in a cluster; empty: the image of the previous submission
  bool detach = false;  // only in a cluster
  RunFlags run;
  std::vector<Flag> Table();
};

struct SubmitFlags {
  std::string name;   // empty: derived from the job's name
  std::string space;  // the namespace; empty: that of the user's context
  std::string image;  // empty: the image in the job
  std::vector<std::string> sets;
  bool detach = false;
  bool dry_run = false;
  std::vector<Flag> Table();
};

struct ChaosFlags {
  RunFlags run;
  int kills = 20;
  uint64_t seed = 1;
  double every_seconds = 0;  // 0: kills are planned by progress
  int undisturbed = 0;
  std::vector<Flag> Table();
};

struct ModelFlags {
  int64_t rows = 0;                             // 0: tables are not counted
  absl::optional<int> features, numerics, dim;  // absent: as ExampleData has them
  std::string dot;
  std::vector<std::string> sets;
  std::vector<Flag> Table();
};

// The flags of `bench deepfm`.
struct DeepFmFlags {
  double seconds = 20;
  double warmup_seconds = 10;
  std::string wire = "f32";
  std::string precision = "f32";  // the NN worker's precision
  std::string mlp = "400,400,400";
  std::string from_file;
  std::string from_topic;
  std::string brokers;
  std::vector<std::string> sets;
  std::vector<Flag> Table();
  // Checks that the flags name at most one source of the data: a file, or a topic together with its
  // brokers.
  absl::Status Check() const;
};

// The flags of `bench recovery`.
struct RecoveryFlags {
  int64_t rows = 1000000;
  int kills = 10;
  int stop = 0;  // 1: SIGSTOP instead of SIGKILL
  std::vector<std::string> sets;
  std::vector<Flag> Table();
};

// The flags of `bench cuts`.
struct CutsFlags {
  int64_t rows = 20000000;
  int pairs = 3;
  double every_seconds = 30;
  double warmup_seconds = 10;
  double seconds = 90;
  std::vector<std::string> sets;
  std::vector<Flag> Table();
};

// The error message if `set` overrides a field that only a command may set; "" for other fields.
// The message is meant to be appended to the text of the override.
std::string ProblemOfSet(absl::string_view set, bool takes_run_dir);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_COMMAND_FLAGS_H_
