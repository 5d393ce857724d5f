#include "deploy/cli/testing/fake_run.h"

#include <utility>

#include "common/config/text_format.h"
#include "common/role/coordinator_client.h"
#include "common/rpc/header.h"

namespace satrap {

void FakeRunTest::SetUp() {
  LoggedRunTest::SetUp();
  auto folder = RunFolder::CreateAt(dir_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  folder_ = *std::move(folder);
  address_ = folder_->SocketAddress("coordinator_0");
  on_wish_ = [](const WishRequest&) { return 1; };
  Script({"state: RUNNING generation: 1"});
  StartCoordinator();
}

void FakeRunTest::TearDown() {
  EndCoordinator();
  Release();
  LoggedRunTest::TearDown();
}

void FakeRunTest::StartCoordinator() {
  static constexpr rpc::Method kMethods[] = {kStatus, kWish};
  auto server = rpc::GrpcServer::Start(address_, rpc::EndpointOptions(),
                                       {rpc::GrpcServer::Service{kMethods, this}});
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
}

void FakeRunTest::Script(std::vector<std::string> statuses) {
  const MutexLock lock(&mutex_);
  statuses_ = std::move(statuses);
}

std::vector<WishRequest> FakeRunTest::Wishes() {
  const MutexLock lock(&mutex_);
  return wishes_;
}

int FakeRunTest::StatusCalls() {
  const MutexLock lock(&mutex_);
  return status_calls_;
}

void FakeRunTest::Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) {
  const MutexLock lock(&calls_);
  if (method == kStatus) {
    AnswerStatus(std::move(respond));
  } else {
    AnswerWish(request, std::move(respond));
  }
}

std::string FakeRunTest::NextStatus() {
  const MutexLock lock(&mutex_);
  ++status_calls_;
  const std::string next = statuses_.front();
  if (statuses_.size() > 1) statuses_.erase(statuses_.begin());
  return next;
}

void FakeRunTest::AnswerStatus(rpc::Callback respond) {
  const std::string text = NextStatus();
  if (text == kSilent || text == kGone) {
    if (text == kGone) Release();
    const MutexLock lock(&mutex_);
    unanswered_.push_back(std::move(respond));
    return;
  }
  StatusAnswer status;
  const absl::Status parsed = ParseText(text, "status", &status);
  EXPECT_TRUE(parsed.ok()) << parsed;
  status.set_run_id(kRunId);
  if (status.state() == STOPPED && is_released_) Release();
  respond(rpc::MessageOf(status));
}

void FakeRunTest::AnswerWish(const rpc::Message& request, rpc::Callback respond) {
  WishRequest wish;
  EXPECT_TRUE(wish.ParseFromString(request.header));
  {
    const MutexLock lock(&mutex_);
    wishes_.push_back(wish);
    if (static_cast<int>(wishes_.size()) <= silent_wishes_) {
      unanswered_.push_back(std::move(respond));
      return;
    }
  }
  // Copy the function, because calling it may replace on_wish_.
  const auto answer_of = on_wish_;
  const absl::StatusOr<uint64_t> number = answer_of(wish);
  if (!number.ok()) return respond(number.status());
  WishAnswer answer;
  answer.set_number(*number);
  respond(rpc::MessageOf(answer));
}

}  // namespace satrap
