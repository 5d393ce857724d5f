// Tests an endless run that trains from a topic while its processes and the broker are killed.
// Every hundredth message is bad, and the topic gets another partition during the run. In the end
// every record is trained once, and every bad message is among the dead letters.
//
//   bazel run //tests/kafka:topic_chaos_test -- --records=1000000 --kills=20 --seed=1

#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/flags/flags.h"
#include "gtest/gtest.h"
#include "tests/kafka/topic_run_fixture.h"

namespace satrap {
namespace {

struct Flags {
  int64_t records = 60000;
  int64_t kills = 6;
  uint64_t seed = 1;

  std::vector<Flag> Table() {
    return {
        NumberFlag("records", "N", "messages, the bad ones included (default: 60000)", &records, 1),
        NumberFlag("kills", "N", "of processes and of the broker (default: 6)", &kills, 1),
        NumberFlag("seed", "N", "of the order of kills (default: 1)", &seed, 0),
    };
  }
};
Flags flags;

constexpr int kPartitions = 4;
constexpr int64_t kBadOneOf = 100;

struct Victim {
  std::string role;  // empty: the broker
  int index = 0;
};

// Draws every process equally often, in rounds that are shuffled by the seed.
std::vector<Victim> DrawVictims() {
  std::mt19937_64 random(flags.seed);
  std::vector<Victim> round = {{"data_loader", 0},  {"data_loader", 1}, {"embedding_ps", 0},
                               {"embedding_ps", 1}, {"coordinator", 0}, {"", 0}};
  std::vector<Victim> victims;
  while (static_cast<int64_t>(victims.size()) < flags.kills) {
    std::shuffle(round.begin(), round.end(), random);
    victims.insert(victims.end(), round.begin(), round.end());
  }
  victims.resize(static_cast<size_t>(flags.kills));
  return victims;
}

class TopicChaosTest : public TopicRunFixture {
 protected:
  // Writes `messages` to the partitions [0, partitions) in turn.
  void Write(int partitions, int64_t messages) {
    std::vector<std::vector<std::string>> lines(static_cast<size_t>(partitions));
    for (int64_t i = 0; i < messages; ++i, ++written_) {
      const bool is_bad = written_ % kBadOneOf == kBadOneOf - 1;
      lines[static_cast<size_t>(i % partitions)].push_back(is_bad ? "no record" : LineOf(records_));
      if (is_bad) {
        ++bad_;
      } else {
        ++records_;
      }
    }
    for (int p = 0; p < partitions; ++p) {
      broker_->Produce({topic_, p}, lines[static_cast<size_t>(p)]);
    }
  }

  void Kill(const Victim& victim) {
    if (victim.role.empty()) {
      broker_->Kill();
      broker_->Restart();
      return;
    }
    const int generations = Generations();
    Signal(victim.role, victim.index, SIGKILL);
    // The next kill waits for the next generation. Otherwise it might hit a process that has
    // already ended as a consequence of this kill.
    ASSERT_TRUE(WaitForGenerations(generations + 1)) << "nobody has begun again";
  }

  std::string topic_;
  int64_t written_ = 0;
  int64_t records_ = 0;  // good messages so far
  int64_t bad_ = 0;
};

TEST_F(TopicChaosTest, EveryGoodMessageIsTrainedOnceAndEveryBadOneIsADeadLetter) {
  topic_ = broker_->NewTopic(kPartitions);
  const std::string dead = broker_->NewTopic(1);
  Write(kPartitions, flags.records * 3 / 4);
  const Command run = StartRun(WriteTopicJob(
      topic_,
      absl::StrCat("end { at: NEVER } max_wait_ms: 200 dead_letter_topic: \"", dead, "\"")));
  const std::vector<Victim> victims = DrawVictims();
  for (size_t k = 0; k < victims.size(); ++k) {
    if (k == victims.size() / 2) {
      ASSERT_TRUE(broker_->admin().AddPartitions(topic_, kPartitions + 1).ok());
      Write(kPartitions + 1, flags.records - written_);
    }
    // Kills come at fixed amounts of progress, so that there is work between any two of them.
    const int64_t due = flags.records * static_cast<int64_t>(k) / flags.kills;
    ASSERT_TRUE(WaitUntil([&] { return Consumed(topic_) >= due && Cuts() > 0; }, 120))
        << Consumed(topic_) << " of " << due << "\n"
        << ReadFile(run.err_path);
    printf("%ld messages are in a cut: %s %d is killed\n", Consumed(topic_),
           victims[k].role.empty() ? "the broker" : victims[k].role.c_str(), victims[k].index);
    ASSERT_NO_FATAL_FAILURE(Kill(victims[k])) << ReadFile(run.err_path);
  }
  ASSERT_TRUE(WaitUntilConsumed(topic_)) << ReadFile(run.err_path);
  const CommandEnd stop = Satrap({"stop", RunDir()});
  EXPECT_EQ(stop.exit_code, 0) << stop.err;
  ExpectFinished(WaitFor(run, 60), records_);

  std::set<std::string> keys;
  const auto letters = KeysAndReasons(dead);
  for (const auto& [key, reason] : letters) keys.insert(key);
  EXPECT_EQ(static_cast<int64_t>(keys.size()), bad_);
  printf(
      "%zu kills, %d generations: %ld records trained once, %ld bad messages in %zu dead letters\n",
      victims.size(), Generations(), records_, bad_, letters.size());
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const auto code = satrap::TakeProgramFlags(argc, argv, "usage: topic_chaos_test [FLAGS]",
                                             satrap::flags.Table());
  if (code.has_value()) return *code;
  return RUN_ALL_TESTS();
}
