// Another command that reads cuts of the run while the run trains, as `predict` and `--init_from`
// do. Now and then it pins the newest cut, holds the pin for some events, and then reads the cut.
// However many cuts are committed meanwhile, the pinned cut must still exist and be whole.
//
// It draws from a random stream of its own. It affects the world only by holding the lock of its
// pin.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_PINNING_READER_H_
#define SATRAP_TESTS_SIMULATION_SIM_PINNING_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/file/file_system.h"
#include "common/numeric/random.h"

namespace satrap::simulation {

class PinningReader {
 public:
  struct Surroundings {
    FileSystem* disk = nullptr;                                   // of a process that does not die
    std::function<std::string()> newest_cut;                      // its folder; empty: none yet
    std::function<absl::Status(const std::string& folder)> read;  // all of a cut
    std::function<void(std::string)> violated;
  };
  PinningReader(uint64_t seed, Surroundings surroundings);

  // Call before each event of the world, with the number of events so far.
  void Act(int64_t events);
  // Releases the pin without reading the cut, as in a loss of power.
  void Die() { pin_.reset(); }

  int reads() const { return reads_; }

 private:
  const Surroundings surroundings_;
  SplitMix64 random_;
  int64_t next_ = 0;  // events until it acts again
  std::unique_ptr<FileLock> pin_;
  std::string pinned_;  // the folder, while there is a pin
  int reads_ = 0;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_PINNING_READER_H_
