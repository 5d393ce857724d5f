// Decides whether an Update may change the tables now: the rule by which Updates, cuts and loads
// exclude each other, without a lock held during any of them.
//
//   - A cut and a load begin only while no Update is open.
//   - An Update is refused during a load, and after a load that has left the tables without rows.
//   - A cut may hold Updates until its rows are written.
//   - Rows that a load has put into tables that were in use ("restored") are for an evaluation
//     only, so no cut begins any more.
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

  // Opens an Update, which stays open until Finish, whatever is returned. kWaits: `update` has been
  // moved into the gate, and Release will return it. Otherwise `update` is unchanged: run it
  // (kRun), or answer with an error (kRefused).
  Admission Admit(Task* update);
  // Opens a step that is summed but not applied yet, so that no cut and no load begins in between.
  void Open() { ++open_; }
  // REQUIRES: an Update or a step is open
  void Finish();

  // FAILED_PRECONDITION if an Update is open, during a load, after a load that failed and left no
  // rows, or if the rows are restored. With `hold_updates`, Updates that come before Release(cut)
  // wait.
  absl::Status BeginCut(uint64_t cut, bool hold_updates);
  // The Updates that wait for this cut, in the order in which they came. Empty if none waits for
  // it, because they wait for a newer cut or for none.
  std::vector<Task> Release(uint64_t cut);

  // Returns whether the tables were untouched: no Update, no cut, and no load other than of a model
  // to start from has come. FAILED_PRECONDITION if an Update is open or another load runs.
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
