// The parts that all peers of a CutEngine in tests share: one run, one generation, short timeouts.

#ifndef SATRAP_NN_WORKER_CHECKPOINT_TESTING_FAKE_CUT_PEER_H_
#define SATRAP_NN_WORKER_CHECKPOINT_TESTING_FAKE_CUT_PEER_H_

#include <cstdint>

#include "common/rpc/call_receiver.h"
#include "common/rpc/timeouts.h"
#include "common/testing/manual_executor.h"

namespace satrap {

inline constexpr uint64_t kFakeGeneration = 3;

inline Envelope FakeEnvelope() {
  Envelope envelope;
  envelope.set_generation(kFakeGeneration);
  envelope.set_run_id(7);
  return envelope;
}

inline rpc::RpcTimeouts FakeTimeouts() {
  rpc::RpcTimeouts timeouts;
  timeouts.attempt_timeout_ms = 100;
  timeouts.hold_ms = 50;
  timeouts.silence_timeout_ms = 20000;
  return timeouts;
}

inline rpc::CallReceiver NewFakeReceiver(ManualExecutor* executor) {
  rpc::CallReceiver::Options options;
  options.name = "fake";
  options.envelope = FakeEnvelope();
  options.num_senders = 1;
  options.hold_us = 50000;
  return rpc::CallReceiver(options, executor);
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_CHECKPOINT_TESTING_FAKE_CUT_PEER_H_
