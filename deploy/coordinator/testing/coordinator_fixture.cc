#include "deploy/coordinator/testing/coordinator_fixture.h"

#include <utility>

#include "common/config/job_config.h"
#include "common/config/testing/validation_check.h"
#include "common/role/ending.h"

namespace satrap {

CoordinatorFixture::CoordinatorFixture() {
  job_ = SmallJob();
  job_.set_run_dir(kRun);
  job_.mutable_data_loader()->set_replicas(1);
  job_.mutable_embedding_worker()->set_replicas(1);
  job_.mutable_embedding_ps()->set_replicas(2);
  job_.mutable_nn_worker()->set_replicas(1);
  ResolveJob(&job_);
  EXPECT_TRUE(disk_.CreateFolders(kRun).ok());
  options_.executor = &executor_;
  options_.disk_executor = &disk_executor_;
  options_.file_system = &disk_;
  options_.writer = 1;
  options_.unix_ms = [this] { return executor_.NowUs() / 1000; };
  // Make every warning of the engine a failure of the test. A test that expects one sets its own
  // function.
  options_.warn = [](const std::string& warning) { ADD_FAILURE() << warning; };
  Begin();
}

void CoordinatorFixture::Begin(const std::string& cause) {
  ClaimRequest request;
  request.ended.set_text(cause);
  Serve(request);
}

void CoordinatorFixture::BeginAfter(const Ending& ended) {
  ClaimRequest request;
  request.ended = ended;
  Serve(request);
}

void CoordinatorFixture::Resume(const std::string& from) {
  ClaimRequest request;
  request.next_job = true;
  request.from = from;
  Serve(request);
}

void CoordinatorFixture::BeginInPods(int submission, const Ending& ended) {
  options_.in_pods = true;
  ClaimRequest request;
  request.submission = static_cast<uint64_t>(submission);
  request.ended = ended;
  Serve(request);
}

void CoordinatorFixture::BeginNewRunInPods() {
  disk_.Remove(kRun).IgnoreError();
  ASSERT_TRUE(disk_.CreateFolders(kRun).ok());
  BeginInPods(1);
}

void CoordinatorFixture::Serve(ClaimRequest request) {
  // The previous coordinator ends before the next one claims a generation. To test one that does
  // not, use Supersede.
  engine_.reset();
  request.job = job_;
  // A process's drafts are named by this number, so it must be different for each process.
  request.writer = ++options_.writer;
  request.run_id = kRunId;
  request.unix_ms = options_.unix_ms();
  auto claimed = ClaimGeneration(request, &disk_);
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  generation_ = claimed->generation;
  engine_ = std::make_unique<CoordinatorEngine>(*std::move(claimed), options_);
}

void CoordinatorFixture::BeginNewRun() {
  disk_.Remove(kRun).IgnoreError();
  ASSERT_TRUE(disk_.CreateFolders(kRun).ok());
  Begin();
}

void CoordinatorFixture::Supersede(const std::string& cut) {
  // Only append the entry: nothing else of another coordinator is visible to the engine under test.
  RunLog other = Log();
  RunLogEntry next;
  next.mutable_generation()->set_generation(generation_ + 1);
  if (!cut.empty()) next.mutable_generation()->set_cut(cut);
  ASSERT_TRUE(other.Append(next).ok());
}

Envelope CoordinatorFixture::ThisRun() const {
  Envelope envelope;
  envelope.set_job_fingerprint(JobFingerprint(job_));
  envelope.set_generation(generation_);
  envelope.set_run_id(kRunId);
  return envelope;
}

Envelope CoordinatorFixture::AnotherRun() const {
  Envelope envelope = ThisRun();
  envelope.set_run_id(kRunId + 1);
  return envelope;
}

RegisterRequest CoordinatorFixture::RegisterOf(Role role, int index, uint64_t incarnation,
                                               int64_t pid) const {
  RegisterRequest request;
  request.set_incarnation(incarnation);
  request.set_protocol(ProtocolFingerprint());
  request.mutable_member()->set_role(role);
  request.mutable_member()->set_index(static_cast<uint32_t>(index));
  request.mutable_member()->set_pid(pid);
  request.mutable_member()->set_address(MemberAddress(role, index));
  return request;
}

absl::Status CoordinatorFixture::Register(Role role, int index, uint64_t incarnation, int64_t pid) {
  return Call<RegisterAnswer>(kRegister, RegisterOf(role, index, incarnation, pid)).status();
}

std::string CoordinatorFixture::MemberAddress(Role role, int index) {
  return "unix:/run/" + std::to_string(role) + "." + std::to_string(index);
}

void CoordinatorFixture::RegisterAll() {
  // These are the members of the constructor's job. A test with other replica counts registers its
  // members itself.
  EXPECT_TRUE(Register(DATA_LOADER, 0).ok());
  EXPECT_TRUE(Register(EMBEDDING_WORKER, 0).ok());
  EXPECT_TRUE(Register(EMBEDDING_PS, 0).ok());
  EXPECT_TRUE(Register(EMBEDDING_PS, 1).ok());
  EXPECT_TRUE(Register(NN_WORKER, 0).ok());
}

HeartbeatRequest CoordinatorFixture::HeartbeatOf(Role role, int index, uint64_t incarnation) const {
  HeartbeatRequest request;
  *request.mutable_envelope() = ThisRun();
  request.set_role(role);
  request.set_index(static_cast<uint32_t>(index));
  request.set_incarnation(incarnation);
  request.set_ready(true);
  return request;
}

absl::StatusOr<HeartbeatAnswer> CoordinatorFixture::Heartbeat(Role role, int index,
                                                              uint64_t incarnation) {
  return Call<HeartbeatAnswer>(kHeartbeat, HeartbeatOf(role, index, incarnation));
}

void CoordinatorFixture::StartRun() {
  RegisterAll();
  BeatAll();
  EXPECT_EQ(engine_->Status().state(), RUNNING);
}

void CoordinatorFixture::BeatAll() {
  for (const Role role : {DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER}) {
    EXPECT_TRUE(Heartbeat(role, 0).ok());
  }
  EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1).ok());
}

void CoordinatorFixture::Beat(int seconds, Role silent) {
  for (int i = 0; i < seconds; ++i) {
    for (const Role role : {DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER}) {
      if (role != silent) {
        EXPECT_TRUE(Heartbeat(role, 0).ok());
      }
    }
    if (silent != EMBEDDING_PS) {
      EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1).ok());
    }
    executor_.AdvanceBy(1000 * 1000);
    // Run the file work that ticks have posted. If a file task is running, this does nothing,
    // because the disk runs one task at a time.
    disk_executor_.RunReady();
  }
}

absl::StatusOr<HeartbeatAnswer> CoordinatorFixture::SayLeaving(Role role, int index,
                                                               uint64_t incarnation) {
  HeartbeatRequest request = HeartbeatOf(role, index, incarnation);
  request.set_leaving(true);
  return Call<HeartbeatAnswer>(kHeartbeat, request);
}

FailRequest CoordinatorFixture::FailOf(Role role, int index, const std::string& reason,
                                       absl::StatusCode code) const {
  FailRequest request;
  *request.mutable_envelope() = ThisRun();
  request.set_role(role);
  request.set_index(static_cast<uint32_t>(index));
  request.set_incarnation(kFirst);
  *request.mutable_ending() = FailureOf(role, index, absl::Status(code, reason));
  return request;
}

FailAnswer CoordinatorFixture::Fail(Role role, int index, const std::string& reason,
                                    absl::StatusCode code) {
  EXPECT_TRUE(Register(role, index).ok());
  const auto answer = Call<FailAnswer>(kFail, FailOf(role, index, reason, code));
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? *answer : FailAnswer();
}

FailAnswer CoordinatorFixture::FailMeanwhile(absl::StatusCode code) {
  // Do not use Call here: it would run file work, but this is called in the middle of a file task.
  absl::StatusOr<FailAnswer> told = absl::UnknownError("");
  Send(kFail, FailOf(NN_WORKER, 0, "the peer is away", code), &told);
  EXPECT_TRUE(told.ok()) << told.status();
  return told.ok() ? *told : FailAnswer();
}

FinishRequest CoordinatorFixture::FinishOf() const {
  FinishRequest request;
  *request.mutable_envelope() = ThisRun();
  request.mutable_result()->set_samples(7);
  return request;
}

void CoordinatorFixture::MakeCut(uint64_t cut, uint64_t order) {
  CheckpointManifest manifest;
  manifest.set_version(kManifestVersion);
  manifest.set_step(10 * cut);
  manifest.set_generation(generation_);
  manifest.set_cut(cut);
  if (order != 0) manifest.set_order_fingerprint(order);
  manifest.set_dense_file("dense.bin");
  manifest.set_dense_bytes(4);
  manifest.mutable_position()->set_step(10 * cut);
  // The smallest ledger that affects what the next generation hands out: split 0 is done, so the
  // first lease is of split 1.
  EpochLedger* epoch = manifest.mutable_ledger()->add_epochs();
  epoch->set_epoch(0);
  epoch->set_rows(5);
  epoch->add_done_splits(0);
  epoch->add_done_splits(0);
  disk_.Put(Folder(cut) + "/dense.bin", "1234");
  ASSERT_TRUE(WriteManifest(Folder(cut), manifest, &disk_).ok());
}

CommitCutRequest CoordinatorFixture::CommitOf(uint64_t cut) const {
  CommitCutRequest request;
  *request.mutable_envelope() = ThisRun();
  // With this number, a second commit of the same cut counts as a repeated call, and gets the first
  // call's answer.
  request.mutable_call()->set_number(cut);
  request.mutable_call()->set_oldest_open(cut);
  request.set_cut(CutName(generation_, cut));
  request.set_seconds(0.5);
  return request;
}

absl::Status CoordinatorFixture::Commit(const CommitCutRequest& request) {
  const auto answer = Call<CommitCutAnswer>(kCommitCut, request);
  if (!answer.ok()) return answer.status();
  if (answer->outcome() != OUTCOME_DONE) return absl::UnavailableError("told to wait");
  // An abandoned cut is an answer, not an error of the call. Tests recognise it by the code below.
  if (!answer->has_abandoned()) return absl::OkStatus();
  return absl::ResourceExhaustedError(answer->abandoned());
}

absl::Status CoordinatorFixture::MakeAndCommit(uint64_t cut) {
  MakeCut(cut);
  return Commit(CommitOf(cut));
}

absl::StatusOr<uint64_t> CoordinatorFixture::Wish(WishRequest::Kind kind, const JobConfig& job) {
  WishRequest request;
  request.set_run_id(kRunId);
  request.set_kind(kind);
  if (kind == WishRequest::SCALE) *request.mutable_job() = job;
  const auto answer = Call<WishAnswer>(kWish, request);
  if (!answer.ok()) return answer.status();
  return answer->number();
}

absl::Status CoordinatorFixture::Leave(uint64_t cut, uint64_t wish) {
  MakeCut(cut);
  CommitCutRequest commit = CommitOf(cut);
  commit.set_wish(wish);
  commit.set_leave(true);
  return Commit(commit);
}

void CoordinatorFixture::Break(const std::string& prefix) {
  disk_.SetHook([prefix](const std::string& operation) {
    return operation.rfind(prefix, 0) == 0 ? absl::ResourceExhaustedError("no space left")
                                           : absl::OkStatus();
  });
}

void CoordinatorFixture::WhileLinking(std::function<void()> work) {
  disk_.SetHook([work = std::move(work), linked = false](const std::string& operation) mutable {
    if (operation.rfind("hard_link", 0) == 0 && !std::exchange(linked, true)) work();
    return absl::OkStatus();
  });
}

RunLog CoordinatorFixture::Log() {
  // No engine in a test has this writer number, so Supersede can append to this log.
  auto log = RunLog::Open(kRun, &disk_, 99);
  EXPECT_TRUE(log.ok()) << log.status();
  return *std::move(log);
}

}  // namespace satrap
