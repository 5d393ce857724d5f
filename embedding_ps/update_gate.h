// Decides whether an Update may change the tables now. By its rules Updates, cuts and loads exclude
// each other, but no lock is held while one of them runs:
//
//   - A cut and a load begin only while no Update is open.
//   - An Update is refused during a load, and after a load that has left the tables without rows.
//   - A cut may make Updates wait until its rows are written.
//   - If a load replaces the rows of tables that were in use, the new rows are "restored": they are
//     for an evaluation only, and no cut begins any more.
//
// Thread-compatible, and never blocks: the engine calls it under its own lock.

#ifndef SATRAP_EMBEDDING_PS_UPDATE_GATE_H_
#define SATRAP_EMBEDDING_PS_UPDATE_GATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/thread/executor.h"

namespace satrap {

class UpdateGate {
 public:
  enum class Admission { kRun, kWaits, kRefused };

  // Opens an Update. Whatever this returns, the Update stays open until Finish. kWaits: `update`
  // has been moved into the gate, and Release will return it. Otherwise `update` is unchanged: run
  // it (kRun), or answer with an error (kRefused).
  Admission Admit(Task* update);
  // Opens a step that is summed but not applied yet, so that no cut and no load begins before it is
  // applied.
  void Open() { ++open_; }
  // REQUIRES: an Update or a step is open
  void Finish();

  // FAILED_PRECONDITION if an Update is open, during a load, after a load that failed and left no
  // rows, or if the rows are restored. With `hold_updates`, Updates that arrive before Release(cut)
  // wait for it.
  absl::Status BeginCut(uint64_t cut, bool hold_updates);
  // Returns the Updates that wait for this cut, in their order of arrival, so that they can run
  // now. Returns none if Updates wait for a newer cut, or for no cut.
  std::vector<Task> Release(uint64_t cut);

  // Begins a load. Returns whether the tables are untouched, that is, whether none of these has
  // come before: an Update, a cut, or a load that was not of the model that the run starts from.
  // FAILED_PRECONDITION if an Update is open or another load runs.
  absl::StatusOr<bool> BeginLoad();
  struct LoadEnd {
    bool replaced = false;       // the old rows are gone
    bool failed = false;         // and not all of the new ones are there
    bool was_untouched = false;  // as BeginLoad said
    bool of_start_model = false;
  };
  void EndLoad(const LoadEnd& end);

 private:
  int64_t open_ = 0;
  bool loading_ = false;
  bool load_failed_ = false;
  bool touched_ = false;
  bool restored_ = false;
  uint64_t awaited_cut_ = 0;  // 0: none
  std::vector<Task> waiting_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_UPDATE_GATE_H_
