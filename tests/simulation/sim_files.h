// The files that a world's loaders read: the world's samples as CSV, one file for each split, with
// bad and empty lines among them.
//
// Not thread-safe.

#ifndef SATRAP_TESTS_SIMULATION_SIM_FILES_H_
#define SATRAP_TESTS_SIMULATION_SIM_FILES_H_

#include <string>

#include "proto/job.pb.h"
#include "tests/simulation/data/sim_data.h"

namespace satrap::simulation {

// A temporary folder; the destructor removes it with everything in it. The folder is in memory if
// the machine has a file system for that, because there are many worlds and their files are small.
class SimFolder {
 public:
  SimFolder();
  ~SimFolder();
  SimFolder(const SimFolder&) = delete;
  SimFolder& operator=(const SimFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Writes the files into `folder` and names them in `job`.
void WriteFiles(const WorldShape& shape, const SimFolder& folder, JobConfig* job);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_FILES_H_
