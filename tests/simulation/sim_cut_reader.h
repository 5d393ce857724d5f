// Reads committed cuts as a generation that begins from them would: the manifest, and the rows
// through an embedding PS that exists only for this. A call runs on a loop of its own and returns
// when the cut is read, so it may be made in the middle of an event of the world.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_CUT_READER_H_
#define SATRAP_TESTS_SIMULATION_SIM_CUT_READER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/file/file_system.h"
#include "common/rpc/rpc.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"
#include "tests/simulation/machine/sim_loop.h"
#include "tests/simulation/sim_history.h"

namespace satrap::simulation {

// Returns the row of a key at the embedding PS `ps`, read by a Lookup for an evaluation; nothing if
// there is no row. The Lookup is sent in the name of embedding worker 0, with a number above those
// of the worker's own calls. `nth` counts these Lookups to the PS. Runs events of `loop` until the
// answer has arrived.
absl::optional<std::vector<float>> ReadRowOf(rpc::Handler* ps, const Envelope& envelope,
                                             uint64_t nth, uint32_t table, uint64_t key,
                                             SimLoop* loop);

class CutReader {
 public:
  // `file_system` is not owned and must outlive what Read returns.
  CutReader(const JobConfig& job, FileSystem* file_system);

  // Reads the cut in `folder`. The newest cut is read again whenever a generation begins, so the
  // cut that was read last is not loaded again while all files of its folder have the same bytes.
  // An error means that the cut does not load.
  absl::StatusOr<CutContent> Read(const std::string& folder);

 private:
  using Files = std::map<std::string, std::string>;  // bytes by name

  absl::StatusOr<Files> FilesIn(const std::string& folder) const;
  absl::StatusOr<CutContent> Load(const std::string& folder) const;

  const JobConfig job_;  // with one PS, which has all rows
  FileSystem* const file_system_;
  // The cut that was read last.
  std::string folder_;
  Files files_;
  absl::optional<CutContent> content_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_CUT_READER_H_
