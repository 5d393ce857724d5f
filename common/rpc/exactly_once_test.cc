// Runs a NumberedClient against a CallReceiver on a network that loses, repeats, delays and
// reorders messages: every call must happen once, with its payload, and get its own answer. It uses
// one thread, and a different seed for each schedule.

#include <algorithm>

#include "common/testing/numbered_calls.h"

namespace satrap::rpc {
namespace {

constexpr size_t kCalls = 60;

Buffer PayloadOf(uint64_t number) {
  Buffer payload(100);
  std::fill_n(payload.mutable_data(), payload.size(), static_cast<uint8_t>(number));
  return payload;
}

TEST(ExactlyOnceTest, HoldsOnABadNetwork) {
  const Calls calls = {kCalls, PayloadOf, [](uint64_t) { return Buffer(); }};
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SplitMix64 random(seed);
    ManualExecutor executor;
    CountingReceiver receiver(calls, &executor, &random, Keeping::kUntilClosed);
    BadNetwork network({{0, 1, 2, 3}, 4, 5}, &executor, &random, &receiver);
    PatientSender sender(calls, &executor, &network);
    sender.StartMore();
    executor.AdvanceBy(24 * 3600 * kSecondUs);
    ASSERT_EQ(sender.answered, kCalls) << "seed " << seed;
    for (size_t number = 1; number <= kCalls; ++number) {
      ASSERT_EQ(receiver.runs[number], 1) << "seed " << seed << " call " << number;
    }
    ASSERT_EQ(receiver.window->num_running(), 0u);
    receiver.window->Admit(kCalls + 1, kCalls + 1, [](auto) {});
    ASSERT_EQ(receiver.window->num_kept(), 0u) << "the sender has closed all";
  }
}

}  // namespace
}  // namespace satrap::rpc
