// Tests the client against a fake coordinator, over a real socket.

#include "common/role/coordinator_client.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/grpc_channel.h"
#include "common/rpc/grpc_server.h"
#include "common/thread/clock.h"
#include "common/thread/mutex.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr int64_t kTimeoutMs = 20000;  // longer than any test takes
constexpr uint64_t kRunId = 0x1234567812345678;
constexpr rpc::Method kMethods[] = {kRegister, kStoreSet, kStoreGet, kFinish,
                                    kFail,     kStatus,   kFixSplits};

// Keeps the requests that it receives. It first answers one call with each of `errors`, then each
// call with the answer that was set for its method. Calls of other methods are never answered.
class FakeCoordinator final : public rpc::Handler {
 public:
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    absl::StatusOr<rpc::Message> answer = rpc::Message();
    {
      MutexLock lock(&mutex_);
      requests_[method.path].push_back(request.header);
      changed_.NotifyAll();
      const auto told = answers_.find(method.path);
      if (!errors_.empty()) {
        answer = errors_.front();
        errors_.erase(errors_.begin());
      } else if (told == answers_.end()) {
        unanswered_.push_back(std::move(respond));
        return;
      } else {
        answer->header = told->second;
      }
    }
    respond(std::move(answer));
  }
  void Answer(const rpc::Method& method, const std::string& header) {
    MutexLock lock(&mutex_);
    answers_[method.path] = header;
  }
  void Refuse(std::vector<absl::Status> errors) {
    MutexLock lock(&mutex_);
    errors_ = std::move(errors);
  }
  size_t NumCalls(const rpc::Method& method) {
    MutexLock lock(&mutex_);
    return requests_[method.path].size();
  }
  void AwaitCalls(const rpc::Method& method, size_t count) {
    MutexLock lock(&mutex_);
    while (requests_[method.path].size() < count) changed_.Wait(&mutex_);
  }
  template <typename Request>
  Request LastOf(const rpc::Method& method) {
    Request request;
    MutexLock lock(&mutex_);
    EXPECT_FALSE(requests_[method.path].empty());
    EXPECT_TRUE(request.ParseFromString(requests_[method.path].back()));
    return request;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::vector<std::string>> requests_ GUARDED_BY(mutex_);
  std::map<std::string, std::string> answers_ GUARDED_BY(mutex_);
  std::vector<absl::Status> errors_ GUARDED_BY(mutex_);
  std::vector<rpc::Callback> unanswered_ GUARDED_BY(mutex_);
};

class CoordinatorClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // The path is short, because a socket's path must not exceed 107 bytes.
    dir_ = std::filesystem::temp_directory_path() / "satrap_test_XXXXXX";
    ASSERT_NE(mkdtemp(dir_.data()), nullptr);
    address_ = absl::StrCat("unix:", dir_, "/coordinator");
    auto channel = rpc::GrpcChannel::Create(address_, rpc::EndpointOptions());
    ASSERT_TRUE(channel.ok()) << channel.status();
    channel_ = *std::move(channel);
  }
  void TearDown() override {
    channel_.reset();
    server_.reset();
    std::filesystem::remove_all(dir_);
  }
  void StartServer() {
    const rpc::GrpcServer::Service service = {kMethods, &coordinator_};
    auto server = rpc::GrpcServer::Start(address_, rpc::EndpointOptions(), {&service, 1});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  CoordinatorClient Client(int64_t timeout_ms = kTimeoutMs) {
    Envelope envelope;
    envelope.set_run_id(kRunId);
    return CoordinatorClient(channel_.get(), envelope, timeout_ms);
  }

  std::string dir_;
  std::string address_;
  FakeCoordinator coordinator_;
  std::unique_ptr<rpc::GrpcServer> server_;
  std::unique_ptr<rpc::GrpcChannel> channel_;
};

TEST_F(CoordinatorClientTest, EachCallCarriesWhatItWasGiven) {
  StartServer();
  for (const rpc::Method& method : kMethods) coordinator_.Answer(method, "");
  StatusAnswer status;
  status.set_job_name("tiny");
  coordinator_.Answer(kStatus, status.SerializeAsString());
  CoordinatorClient client = Client();

  RegisterRequest request;
  request.mutable_member()->set_role(EMBEDDING_PS);
  request.set_job_fingerprint(77);
  EXPECT_TRUE(client.Register(request).ok());
  EXPECT_EQ(coordinator_.LastOf<RegisterRequest>(kRegister).job_fingerprint(), 77u);
  EXPECT_EQ(client.Status()->job_name(), "tiny");
  RunResult result;
  result.set_samples(5);
  EXPECT_TRUE(client.Finish(result).ok());
  EXPECT_EQ(coordinator_.LastOf<FinishRequest>(kFinish).result().samples(), 5u);
  EXPECT_TRUE(client.Fail(DATA_LOADER, 3, 0xabc, absl::NotFoundError("no such file")).ok());
  const auto fail = coordinator_.LastOf<FailRequest>(kFail);
  EXPECT_EQ(fail.role(), DATA_LOADER);
  EXPECT_EQ(fail.index(), 3u);
  EXPECT_EQ(fail.incarnation(), 0xabcu);
  EXPECT_EQ(fail.ending().text(), "no such file");
  EXPECT_TRUE(client.Set("rank 0", "127.0.0.1").ok());
  const auto set = coordinator_.LastOf<StoreSetRequest>(kStoreSet);
  EXPECT_EQ(set.key(), "rank 0");
  EXPECT_EQ(set.value(), "127.0.0.1");
}

TEST_F(CoordinatorClientTest, EachCallOfAMemberNamesItsRun) {
  StartServer();
  for (const rpc::Method& method : kMethods) coordinator_.Answer(method, "");
  StoreGetAnswer found;
  found.set_found(true);
  coordinator_.Answer(kStoreGet, found.SerializeAsString());
  CoordinatorClient client = Client();
  EXPECT_TRUE(client.Finish(RunResult()).ok());
  EXPECT_TRUE(client.Fail(DATA_LOADER, 3, 0xabc, absl::NotFoundError("no such file")).ok());
  EXPECT_TRUE(client.Set("rank 0", "127.0.0.1").ok());
  EXPECT_TRUE(client.Get("rank 0", 0).ok());
  EXPECT_TRUE(client.Status().ok());
  EXPECT_EQ(coordinator_.LastOf<FinishRequest>(kFinish).envelope().run_id(), kRunId);
  EXPECT_EQ(coordinator_.LastOf<FailRequest>(kFail).envelope().run_id(), kRunId);
  EXPECT_EQ(coordinator_.LastOf<StoreSetRequest>(kStoreSet).envelope().run_id(), kRunId);
  EXPECT_EQ(coordinator_.LastOf<StoreGetRequest>(kStoreGet).envelope().run_id(), kRunId);
  EXPECT_EQ(coordinator_.LastOf<StatusRequest>(kStatus).run_id(), kRunId);
}

TEST_F(CoordinatorClientTest, AClientThatKnowsNoRunTakesTheStatusOfAny) {
  StartServer();
  coordinator_.Answer(kStatus, "");
  EXPECT_TRUE(CoordinatorClient(channel_.get()).Status().ok());
  EXPECT_FALSE(coordinator_.LastOf<StatusRequest>(kStatus).has_run_id());
}

TEST_F(CoordinatorClientTest, AnErrorOfTheCoordinatorIsTheCallersAtOnce) {
  StartServer();
  coordinator_.Answer(kRegister, "");
  coordinator_.Refuse({absl::FailedPreconditionError("the index is taken")});
  const absl::Status status = Client().Register(RegisterRequest()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "coordinator: the index is taken");
  EXPECT_EQ(coordinator_.NumCalls(kRegister), 1u) << "it would be refused again";
}

TEST_F(CoordinatorClientTest, AnAttemptThatWasLostIsRepeated) {
  StartServer();
  coordinator_.Answer(kFail, "");
  // A call that is open while its coordinator shuts down fails with the last of these errors.
  coordinator_.Refuse({absl::UnavailableError("reset"), absl::DeadlineExceededError("late"),
                       absl::CancelledError("the other side has ended the call")});
  EXPECT_TRUE(Client().Fail(NN_WORKER, 0, 0xabc, absl::InternalError("x")).ok());
  EXPECT_EQ(coordinator_.NumCalls(kFail), 4u);
}

TEST_F(CoordinatorClientTest, TheTopicsOfARunAreWaitedForLongerThanOtherAnswers) {
  StartServer();
  coordinator_.Answer(kFixSplits, "");
  coordinator_.Refuse(std::vector<absl::Status>(4, absl::UnavailableError("a broker is away")));
  EXPECT_TRUE(Client(/*timeout_ms=*/1).FixSplits(3, SplitList()).ok());
  EXPECT_EQ(coordinator_.NumCalls(kFixSplits), 5u);
  EXPECT_EQ(coordinator_.LastOf<FixSplitsRequest>(kFixSplits).loader(), 3u);
}

TEST_F(CoordinatorClientTest, ACoordinatorMayComeAfterItsCallers) {
  coordinator_.Answer(kStatus, "");
  absl::Status status;
  std::thread caller([&] { status = Client().Status().status(); });
  StartServer();
  caller.join();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(CoordinatorClientTest, TheTimeoutEndsACallWhereNobodyListens) {
  const int64_t start_ms = MonotonicMs();
  const absl::Status status = Client(300).Status().status();
  EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(absl::StartsWith(status.message(), "coordinator: ")) << status;
  EXPECT_GE(MonotonicMs() - start_ms, 300);
}

TEST_F(CoordinatorClientTest, TheTimeoutEndsACallThatIsNotAnswered) {
  StartServer();
  const absl::Status status = Client(300).Status().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

TEST_F(CoordinatorClientTest, AnAttemptThatTheTimeoutCutsShortDoesNotHideTheReason) {
  StartServer();
  coordinator_.Refuse({absl::UnavailableError("the run is between two generations")});
  EXPECT_EQ(Client(300).Status().status(),
            absl::UnavailableError("coordinator: the run is between two generations"));
  EXPECT_EQ(coordinator_.NumCalls(kStatus), 2u) << "the second attempt is not answered";
}

TEST_F(CoordinatorClientTest, AnAnswerThatIsNoneIsInternal) {
  StartServer();
  coordinator_.Answer(kStatus, "\xff no message");
  const absl::Status status = Client().Status().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
}

TEST_F(CoordinatorClientTest, AKeyIsWaitedFor) {
  StartServer();
  coordinator_.Answer(kStoreGet, StoreGetAnswer().SerializeAsString());
  absl::StatusOr<std::string> value;
  std::thread waiting([&] { value = Client().Get("rank 1", kTimeoutMs); });
  coordinator_.AwaitCalls(kStoreGet, 2);
  StoreGetAnswer found;
  found.set_found(true);
  found.set_value("127.0.0.1:7");
  coordinator_.Answer(kStoreGet, found.SerializeAsString());
  waiting.join();
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, "127.0.0.1:7");
  EXPECT_EQ(coordinator_.LastOf<StoreGetRequest>(kStoreGet).key(), "rank 1");
}

TEST_F(CoordinatorClientTest, AKeyThatNobodySetsIsNamed) {
  StartServer();
  coordinator_.Answer(kStoreGet, StoreGetAnswer().SerializeAsString());
  const absl::Status once = Client().Get("rank 1", 0).status();
  EXPECT_EQ(coordinator_.NumCalls(kStoreGet), 1u);
  EXPECT_EQ(once.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(once.message(), "nobody set 'rank 1' within 0 ms");
  const int64_t start_ms = MonotonicMs();
  EXPECT_TRUE(absl::IsDeadlineExceeded(Client().Get("rank 1", 100).status()));
  EXPECT_GE(MonotonicMs() - start_ms, 100);
  EXPECT_GT(coordinator_.NumCalls(kStoreGet), 2u);
}

}  // namespace
}  // namespace satrap
