// PsCuts manages the cuts of an embedding PS by number: it begins, awaits and abandons them as rank
// 0 asks (BeginCut, AwaitCut, AbandonCut in proto/control.proto). CutWriter does the work.
//
// The numbers of cuts ascend. Each cut is begun once. A cut with a higher number abandons an
// unfinished one. A request to begin a cut with a lower number must be a late copy, so it is
// refused. A cut that was abandoned before it began is also refused.
//
// Thread-safe. Callbacks run outside the lock.

#ifndef SATRAP_EMBEDDING_PS_PS_CUTS_H_
#define SATRAP_EMBEDDING_PS_PS_CUTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/thread/mutex.h"
#include "embedding_ps/checkpoint/cut_writer.h"
#include "proto/control.pb.h"

namespace satrap {

class PsCuts {
 public:
  struct Counts {
    uint64_t begun = 0;
    uint64_t abandoned = 0;
    uint64_t rows_copied = 0;  // copied before an Update changed them, in cuts that have ended
    uint64_t bytes_copied = 0;
    uint64_t bytes_written = 0;  // to files that were made durable
    double seconds = 0;          // from the marks to the end of writing
  };

  // The directory in `options` is ignored, because each Begin has its own. Tables, executor, file
  // system and kill points must outlive this object, and this object must outlive the tasks of the
  // executor.
  explicit PsCuts(CutWriter::Options options) : options_(std::move(options)) {}

  // Whether Begin(cut) would mark the rows; false if the cut has already begun. FAILED_PRECONDITION
  // if a higher number was begun or abandoned, or if this number was abandoned before it began.
  // INVALID_ARGUMENT if `cut` is 0.
  absl::StatusOr<bool> IsNew(uint64_t cut) const;
  // Marks all rows and begins to write them to `directory`. `ended` runs when writing has ended.
  // REQUIRES: IsNew(cut), and no row is being changed
  void Begin(uint64_t cut, const std::string& directory, absl::AnyInvocable<void()> ended);
  // Answers when the cut has ended, as proto/control.proto says. If a higher number was begun or
  // abandoned, the answer is that the cut was abandoned. FAILED_PRECONDITION if neither this number
  // nor a higher one is known.
  using Awaited = absl::AnyInvocable<void(absl::StatusOr<AwaitCutAnswer>)>;
  void Await(uint64_t cut, Awaited answer);
  // Abandons the cut. Answers once nothing of the cut is being written and nothing more will be.
  void Abandon(uint64_t cut, absl::AnyInvocable<void()> answer);

  // Abandons all cuts that are still being written. The engine calls this before it replaces the
  // tables.
  void AbandonAll(const absl::Status& why);

  Counts counts() const;

 private:
  struct Running {
    std::shared_ptr<CutWriter> writer;
    absl::AnyInvocable<void()> ended;
    std::vector<Awaited> awaited;
    std::vector<absl::AnyInvocable<void()>> abandoned;
  };
  std::shared_ptr<CutWriter> Mark(const std::string& directory);
  void End(uint64_t cut, const CutWriter::Result& result);

  const CutWriter::Options options_;
  mutable Mutex mutex_;
  uint64_t newest_ GUARDED_BY(mutex_) = 0;                    // begun or abandoned
  bool begun_ GUARDED_BY(mutex_) = false;                     // whether newest_ was begun
  absl::optional<AwaitCutAnswer> answer_ GUARDED_BY(mutex_);  // of the newest, once it has ended
  std::map<uint64_t, Running> running_ GUARDED_BY(mutex_);
  Counts counts_ GUARDED_BY(mutex_);
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_PS_CUTS_H_
