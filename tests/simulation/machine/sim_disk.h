// A disk in memory that can fail, and that can lose what was not synced.
//
// Loss of power. What file_system.h calls durable stays: the bytes of a file as of its last Sync,
// and the names of a folder as of its last SyncFolder. Of all later changes, only some survive,
// which are drawn at random:
//   - of a file's bytes: none, all, a prefix, a prefix filled up with zeros, or some blocks with
//     zeros for the others; after Create over an old file perhaps the old content;
//   - of a folder's changes (create, rename, link, remove, new folder): any subset, applied in
//     their order. A rename within a folder is one change. If the name of a folder is lost,
//     everything in the folder is lost.
// So a file whose name survives may be empty or torn. If only a process dies, nothing that it has
// written is lost.
//
// Failures. Any operation may fail, with RESOURCE_EXHAUSTED (the disk is full) or DATA_LOSS (it is
// broken), with a given probability or at a given operation. A failed Append may have written a
// part; a failed Rename, HardLink or Remove has changed nothing; a failed SyncFolder has made
// nothing durable. A failed Sync spoils its file until Create begins it anew: some of the blocks
// that were not durable are lost at once, without a trace, and later Syncs of the file succeed and
// make nothing durable, as on Linux.
//
// Locks. A lock ends when its process dies or the power is lost. Taking and releasing locks never
// fails and draws nothing.
//
// Everything is drawn from the disk's own seed, so a world replays exactly.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_MACHINE_SIM_DISK_H_
#define SATRAP_TESTS_SIMULATION_MACHINE_SIM_DISK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/file/file_system.h"
#include "common/numeric/random.h"
#include "tests/simulation/machine/sim_process.h"

namespace satrap::simulation {

struct DiskFaults {
  double fail_write = 0;  // of operations that change or sync something
  double fail_read = 0;   // of the others; always with DATA_LOSS
};

class SimDisk {
 public:
  struct Node;  // a file, a link or a folder

  explicit SimDisk(uint64_t seed, const DiskFaults& faults = {});
  ~SimDisk();
  SimDisk(const SimDisk&) = delete;
  SimDisk& operator=(const SimDisk&) = delete;

  // The disk as `process` sees it; null means a process that never dies. Once the process is dead,
  // every operation, also on files that it has open, is CANCELLED and does nothing. The disk and
  // the process must outlive the result; a file may outlive the file system that opened it.
  std::unique_ptr<FileSystem> Mount(SimProcess* process = nullptr);

  // Operations on files that are open now are CANCELLED from now on. REQUIRES: every process that
  // continues afterwards mounts the disk again
  void LosePower();

  void SetFaults(const DiskFaults& faults) { faults_ = faults; }
  // Makes one operation fail with `code`: the `nth` from now, counted from 1, of those that change
  // or sync something at a path that contains `within`.
  void FailNthWrite(int64_t nth, absl::StatusCode code, std::string within = "");
  // Makes the `nth` read from now, counted from 1, fail with DATA_LOSS. Only reads by a process
  // count and fail, not those of a mount without a process.
  void FailNthRead(int64_t nth) { reads_to_failure_ = nth; }

  struct Counts {
    int64_t writes = 0;  // operations that change or sync something
    int64_t reads = 0;
    int64_t failed = 0;
    int64_t failed_reads = 0;  // of those that failed
    int64_t torn_files = 0;    // files that LosePower left with other bytes
    int64_t lost_changes = 0;  // changes of folders
    int64_t spoilt_files = 0;  // files whose Sync has failed
  };
  const Counts& counts() const { return counts_; }

 private:
  friend class SimDiskLock;
  friend class SimDiskMount;
  friend class SimDiskWriter;
  friend class SimDiskReader;

  // Call first in every operation on `path`. Returns an injected failure, or OK.
  absl::Status BeginWrite(const char* doing, const std::string& path);
  absl::Status BeginRead(const SimProcess* process, const char* doing, const std::string& path);
  // The file's bytes after a loss of power, or after a failed Sync.
  std::string Torn(const Node& file);
  void LosePowerBelow(Node* folder, double survives);
  bool Draw(double probability) { return random_.NextDouble() < probability; }

  SplitMix64 random_;
  DiskFaults faults_;
  std::shared_ptr<Node> root_;
  int64_t writes_to_failure_ = 0;  // 0: none
  std::string fail_within_;
  int64_t reads_to_failure_ = 0;  // 0: none
  absl::StatusCode fail_code_ = absl::StatusCode::kDataLoss;
  int64_t power_losses_ = 0;
  Counts counts_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_MACHINE_SIM_DISK_H_
