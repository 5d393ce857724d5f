// An embedding PS for tests of CutEngine.

#ifndef SATRAP_NN_WORKER_CHECKPOINT_FAKE_CUT_PS_H_
#define SATRAP_NN_WORKER_CHECKPOINT_FAKE_CUT_PS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/file/file_system.h"
#include "common/rpc/control_methods.h"
#include "gtest/gtest.h"
#include "nn_worker/checkpoint/fake_cut_peer.h"

namespace satrap {

// An embedding PS that marks its rows at once and writes one file of a cut on the real disk.
class FakeCutPs final : public rpc::Handler {
 public:
  FakeCutPs(ManualExecutor* executor, int index)
      : executor_(executor),
        index_(index),
        begin_(NewFakeReceiver(executor)),
        await_(NewFakeReceiver(executor)),
        abandon_(NewFakeReceiver(executor)),
        load_(NewFakeReceiver(executor)) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kBeginCut) {
      begin_.Receive<BeginCutRequest>(
          std::move(request), std::move(respond),
          [this](const rpc::PendingAnswer& call, const BeginCutRequest& begin, const Buffer&) {
            Begin(call, begin);
          });
    } else if (method == rpc::kAwaitCut) {
      await_.Receive<AwaitCutRequest>(
          std::move(request), std::move(respond),
          [this](const rpc::PendingAnswer& call, const AwaitCutRequest& await, const Buffer&) {
            if (hangs_in_writing) return;
            executor_->PostAfter(writing_us, [this, call, await] { Write(call, await.cut()); });
          });
    } else if (method == rpc::kAbandonCut) {
      abandon_.Receive<AbandonCutRequest>(
          std::move(request), std::move(respond),
          [this](const rpc::PendingAnswer& call, const AbandonCutRequest& abandon, const Buffer&) {
            abandoned.push_back(abandon.cut());
            if (hangs_in_abandoning) return;
            call.Finish(rpc::MessageOf(AbandonCutAnswer()));
          });
    } else if (method == rpc::kLoadTables) {
      load_.Receive<LoadTablesRequest>(
          std::move(request), std::move(respond),
          [this](const rpc::PendingAnswer& call, const LoadTablesRequest& load, const Buffer&) {
            loaded.push_back(load.directory());
            call.Finish(rpc::MessageOf(LoadTablesAnswer()));
          });
    } else {
      TableStatsAnswer stats;
      stats.add_tables()->set_name("t");
      stats.mutable_tables(0)->set_rows(5);
      stats.mutable_tables(0)->set_bytes(100);
      respond(rpc::MessageOf(stats));
    }
  }

  std::vector<BeginCutRequest> begun;
  std::vector<uint64_t> abandoned;
  std::vector<std::string> loaded;
  int64_t writing_us = 50000;
  std::string abandons;  // why every cut is abandoned here; empty: none is
  bool copy_limit = false;
  bool hangs_in_marking = false;
  bool hangs_in_writing = false;  // no answer, as from a disk that hangs
  bool hangs_in_abandoning = false;
  absl::Status fails;

 private:
  void Begin(const rpc::PendingAnswer& call, const BeginCutRequest& begin) {
    if (hangs_in_marking) return;
    if (!fails.ok()) return call.Finish(fails);
    EXPECT_TRUE(std::filesystem::exists(begin.directory()));
    begun.push_back(begin);
    call.Finish(rpc::MessageOf(BeginCutAnswer()));
  }

  void Write(const rpc::PendingAnswer& call, uint64_t cut) {
    AwaitCutAnswer answer;
    answer.set_copied_bytes(8);
    const bool told = !abandoned.empty() && abandoned.back() == cut;
    if (told || !abandons.empty()) {
      answer.set_abandoned(told ? "rank 0 has abandoned it" : abandons);
      if (!told && copy_limit) answer.set_copy_limit(true);
      return call.Finish(rpc::MessageOf(answer));
    }
    const std::string name = absl::StrCat("table_4_", index_, ".rows");
    auto file = DiskFileSystem()->Create(begun.back().directory() + "/" + name);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append("rows").ok());
    SavedFile* saved = answer.add_files();
    saved->set_name(name);
    saved->set_table(4);
    saved->set_rows(10);
    saved->set_bytes(4);
    call.Finish(rpc::MessageOf(answer));
  }

  ManualExecutor* const executor_;
  const int index_;
  rpc::CallReceiver begin_, await_, abandon_, load_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_CHECKPOINT_FAKE_CUT_PS_H_
