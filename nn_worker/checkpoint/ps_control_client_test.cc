#include "nn_worker/checkpoint/ps_control_client.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/header.h"
#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using Stats = absl::StatusOr<std::vector<TableStats>>;

// A PS. The test sets its answer to each attempt.
class ScriptedPs final : public rpc::Channel {
 public:
  void Call(const rpc::Method& method, rpc::Message, int64_t, rpc::Callback done) override {
    calls.push_back(method.path);
    if (answer) return done(answer());
    held.push_back(std::move(done));
  }
  std::function<absl::StatusOr<rpc::Message>()> answer;  // null: none comes
  std::vector<rpc::Callback> held;                       // calls that have no answer yet
  std::vector<std::string> calls;
};

rpc::Message StatsOf(const std::string& table, uint64_t rows, uint64_t bytes) {
  TableStatsAnswer answer;
  answer.add_tables()->set_name(table);
  answer.mutable_tables(0)->set_rows(rows);
  answer.mutable_tables(0)->set_bytes(bytes);
  return rpc::MessageOf(answer);
}

class PsControlClientTest : public testing::Test {
 protected:
  PsControlClientTest() { timeouts_.silence_timeout_ms = 5000; }

  PsControlClient NewClient() {
    return PsControlClient(Envelope(), timeouts_, &executor_, {&ps0_, &ps1_});
  }

  rpc::RpcTimeouts timeouts_;
  ManualExecutor executor_;
  ScriptedPs ps0_, ps1_;
};

TEST_F(PsControlClientTest, TableStatsAreRepeatedWhileAPsIsAway) {
  PsControlClient client = NewClient();
  int attempts = 0;
  ps0_.answer = [] { return StatsOf("t", 3, 100); };
  ps1_.answer = [&]() -> absl::StatusOr<rpc::Message> {
    ++attempts;
    if (attempts == 1) return absl::UnavailableError("away");
    if (attempts == 2) return absl::DeadlineExceededError("late");
    return StatsOf("t", 4, 200);
  };
  absl::optional<Stats> stats;
  client.TableStats([&](Stats result) { stats = std::move(result); });
  executor_.AdvanceBy(1'000'000);
  ASSERT_TRUE(stats.has_value());
  ASSERT_TRUE(stats->ok()) << stats->status();
  ASSERT_EQ((*stats)->size(), 1u);
  EXPECT_EQ((**stats)[0].rows(), 7u);
  EXPECT_EQ((**stats)[0].bytes(), 300u);
}

TEST_F(PsControlClientTest, TableStatsAreNotRepeatedForEver) {
  PsControlClient client = NewClient();
  ps0_.answer = [] { return StatsOf("t", 3, 100); };
  ps1_.answer = [] { return absl::UnavailableError("away"); };
  absl::optional<Stats> stats;
  client.TableStats([&](Stats result) { stats = std::move(result); });
  executor_.AdvanceBy(4'000'000);
  EXPECT_FALSE(stats.has_value());
  executor_.AdvanceBy(2'000'000);
  ASSERT_TRUE(stats.has_value());
  EXPECT_EQ(stats->status(), absl::UnavailableError("TableStats to embedding_ps 1: away"));
}

TEST_F(PsControlClientTest, AnotherErrorOfTableStatsIsToldAtOnce) {
  PsControlClient client = NewClient();
  ps1_.answer = [] { return absl::FailedPreconditionError("another run"); };
  absl::optional<Stats> stats;
  client.TableStats([&](Stats result) { stats = std::move(result); });
  executor_.RunReady();
  ASSERT_TRUE(stats.has_value()) << "the other PS gives no answer at all";
  EXPECT_EQ(stats->status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ps1_.calls.size(), 1u);
}

TEST_F(PsControlClientTest, TheFirstErrorOfACallToAllIsToldAtOnceAndOnce) {
  PsControlClient client = NewClient();
  ps0_.answer = [] { return absl::DataLossError("not written"); };
  int told = 0;
  absl::Status marked;
  client.CallAll(rpc::kBeginCut, BeginCutRequest(), [&](absl::Status status) {
    ++told;
    marked = std::move(status);
  });
  executor_.RunReady();
  EXPECT_EQ(told, 1) << "the other PS gives no answer at all";
  EXPECT_EQ(marked.code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::StrContains(marked.message(), "BeginCut to embedding_ps 0")) << marked;
}

TEST_F(PsControlClientTest, AfterAFailedLoadNoPsIsLoadingAnyMore) {
  PsControlClient client = NewClient();
  ps0_.answer = [] { return absl::DataLossError("table_4.rows is damaged"); };
  int told = 0;
  absl::Status loaded;
  client.LoadTables("/cuts/one", [&](absl::Status status) {
    ++told;
    loaded = std::move(status);
  });
  executor_.RunReady();
  EXPECT_EQ(told, 0) << "the other PS loads still";
  ASSERT_EQ(ps1_.held.size(), 1u);
  LoadTablesAnswer answer;
  answer.set_outcome(OUTCOME_DONE);
  ps1_.held[0](rpc::MessageOf(answer));
  executor_.RunReady();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(loaded.code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::StrContains(loaded.message(), "LoadTables to embedding_ps 0")) << loaded;
}

}  // namespace
}  // namespace satrap
