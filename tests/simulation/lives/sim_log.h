// The log of a run, as the checks read it. They look at it after nearly every acknowledgement, and
// most of its text is the same as at the look before, so an entry is parsed only when the bytes of
// its file have changed. The bytes are read anew at each look: a disk that has lost an acknowledged
// entry must not be hidden.
//
// Not thread-safe.

#ifndef SATRAP_TESTS_SIMULATION_LIVES_SIM_LOG_H_
#define SATRAP_TESTS_SIMULATION_LIVES_SIM_LOG_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/file/file_system.h"
#include "proto/run_log.pb.h"

namespace satrap::simulation {

struct SimLogEntry {
  explicit SimLogEntry(RunLogEntry read)
      : message(std::move(read)),
        bytes(message.SerializeAsString()),
        job(message.generation().job().SerializeAsString()) {}

  const RunLogEntry message;
  const std::string bytes;  // of `message`
  const std::string job;    // of a GENERATION: the bytes of its job
};

// Entries are shared, and never null.
using SimLogEntries = std::vector<std::shared_ptr<const SimLogEntry>>;

struct SimLog {
  // As RunLog::entries: if there is a COMPACTED entry, its entries come first, and it is not there.
  SimLogEntries entries;
  // The numbers of the newest entry and of the newest COMPACTED entry; 0 if there is none.
  size_t number = 0;
  size_t compacted_number = 0;
  uint64_t left_out_cuts = 0;
};

class SimLogReader {
 public:
  // `file_system` is not owned.
  SimLogReader(const std::string& run_dir, FileSystem* file_system)
      : folder_(run_dir + "/log"), file_system_(file_system) {}

  // Reads the log that the disk holds now; a run without a log folder has no entries. DATA_LOSS if
  // an entry is damaged, of no kind, or missing. Other errors are those of FileSystem.
  absl::StatusOr<SimLog> Read();

 private:
  // A file of the log. A COMPACTED entry stands for the entries that it holds.
  struct File {
    std::string text;
    bool is_compacted = false;
    uint64_t left_out_cuts = 0;
    SimLogEntries entries;
  };

  absl::StatusOr<const File*> ReadEntry(const std::string& name);

  const std::string folder_;
  FileSystem* const file_system_;
  std::map<std::string, File> files_;  // by name, as they were read last
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_LIVES_SIM_LOG_H_
