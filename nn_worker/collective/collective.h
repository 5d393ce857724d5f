// A Collective lets the NN workers (ranks) of one job act together. Implementations:
// LocalCollective (threads of one process) and GlooCollective (processes, over TCP); both pass
// collective_conformance.h.
//
// Every rank makes the same calls in the same order with the same sizes. There is no global state:
// a process may own several collectives.
//
// Deterministic: a sum has the same bits on every rank and on every run with the same size and
// counts.
//
// Waiting. No call has a deadline: ranks wait in a call while another rank saves a model or has no
// input. When a rank is lost, the code that learns of the loss ends the wait with Abort.
//
// Errors. After any error, Abort included, the object is dead: every later call returns the same
// status at once.
//
// Thread-compatible, except for Abort and status, which any thread may call at any time.

#ifndef SATRAP_NN_WORKER_COLLECTIVE_COLLECTIVE_H_
#define SATRAP_NN_WORKER_COLLECTIVE_COLLECTIVE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace satrap {

// A sum in progress (Collective::StartAllReduceSum). Thread-compatible.
class PendingSum {
 public:
  // Waits until the sum has ended. If another rank never joins the sum, only Abort ends the wait.
  virtual ~PendingSum() = default;
  // Whether the sum has ended. Does not wait.
  virtual bool Ended() = 0;
  // Returns the status of the sum when the sum has ended; later calls return it at once.
  // DEADLINE_EXCEEDED after `timeout_ms`: the sum continues, and Wait may be called again.
  virtual absl::Status Wait(int64_t timeout_ms) = 0;
};

class Collective {
 public:
  // REQUIRES: no sum is in progress
  virtual ~Collective() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // values[i] := sum over ranks of values[i]. On error `values` is unspecified.
  virtual absl::Status AllReduceSum(absl::Span<float> values) = 0;
  virtual absl::Status AllReduceSum(absl::Span<double> values) = 0;
  // Begins an AllReduceSum and returns at once. The sums have the same bits as those of
  // AllReduceSum. Until the sum has ended, nothing else may touch `values`. REQUIRES: until the
  // caller has seen the sum end, no method of this object is called except Abort and status
  virtual std::unique_ptr<PendingSum> StartAllReduceSum(absl::Span<float> values) = 0;

  // Copies the bytes of rank `root` to every rank. REQUIRES: the same size everywhere
  virtual absl::Status Broadcast(int root, absl::Span<char> bytes) = 0;

  // Element r of the result holds the bytes of rank r. Sizes may differ and may be 0.
  virtual absl::StatusOr<std::vector<std::string>> AllGatherBytes(absl::string_view bytes) = 0;

  // Sends element r of `bytes` to rank r; element r of the result holds the bytes that rank r sent
  // to this rank. Sizes may differ and may be 0. Both vectors are held in memory as a whole, so
  // large data should be sent in pieces, one call each. REQUIRES: an element for each rank
  virtual absl::StatusOr<std::vector<std::string>> AllToAllBytes(
      absl::Span<const std::string> bytes) = 0;

  // Returns when every rank has called Barrier.
  virtual absl::Status Barrier() = 0;

  // Ends the running call with `status` within 2 s; the object is dead from then on. If Abort is
  // called again, the first status stays. It ends only the calls of this rank: the other ranks get
  // their own errors, or must be aborted, too. REQUIRES: !status.ok()
  virtual void Abort(absl::Status status) = 0;
  // OK, or the status that ended the object. A caller that waits for something else in which the
  // other ranks take part, such as a device's work, must poll this status.
  virtual absl::Status status() = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_COLLECTIVE_H_
