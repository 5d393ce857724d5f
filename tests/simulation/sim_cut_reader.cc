#include "tests/simulation/sim_cut_reader.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"
#include "embedding_ps/ps_engine.h"
#include "proto/checkpoint.pb.h"

namespace satrap::simulation {
namespace {

constexpr uint64_t kFirstNumber = uint64_t{1} << 40;
constexpr int64_t kMostEvents = 100000;
constexpr int64_t kMostUs = 1000000;

// An embedding PS and its loop. The PS is destroyed first.
struct Reader {
  SimLoop loop{1};
  std::unique_ptr<PsEngine> ps;
  // The rows that were read, by table and key. Nobody changes them.
  std::map<std::pair<uint32_t, uint64_t>, absl::optional<std::vector<float>>> rows;
};

JobConfig WithOnePs(JobConfig job) {
  job.mutable_embedding_ps()->set_replicas(1);
  return job;
}

}  // namespace

absl::optional<std::vector<float>> ReadRowOf(rpc::Handler* ps, const Envelope& envelope,
                                             uint64_t nth, uint32_t table, uint64_t key,
                                             SimLoop* loop) {
  LookupHeader header;
  *header.mutable_envelope() = envelope;
  header.mutable_call()->set_sender(0);
  header.mutable_call()->set_number(kFirstNumber + nth);
  header.mutable_call()->set_oldest_open(1);
  header.set_training(false);
  TableKeys* asked = header.add_tables();
  asked->set_table(table);
  asked->set_num_keys(1);
  rpc::PayloadBuilder builder;
  builder.Reserve<uint64_t>(1, asked->mutable_keys());
  builder.Allocate();
  builder.Fill<uint64_t>(asked->keys())[0] = key;
  absl::optional<std::vector<float>> row;
  bool done = false;
  ps->Handle(rpc::kLookup, {header.SerializeAsString(), builder.Take()},
             [&](absl::StatusOr<rpc::Message> answer) {
               CHECK_OK(answer.status());
               LookupAnswerHeader got;
               CHECK(got.ParseFromString(answer->header));
               const TableValues& values = got.tables(0);
               const auto floats = rpc::SectionView<float>(answer->payload, values.values(),
                                                           values.row_values(), "values");
               const auto bits =
                   rpc::SectionView<uint8_t>(answer->payload, values.presence(), 1, "presence");
               CHECK_OK(floats.status());
               CHECK_OK(bits.status());
               if (((*bits)[0] & 1) != 0) row.emplace(floats->begin(), floats->end());
               done = true;
             });
  CHECK(
      loop->RunUntil([&] { return done; }, loop->NowUs() + kMostUs, loop->events() + kMostEvents));
  return row;
}

CutReader::CutReader(const JobConfig& job, FileSystem* file_system)
    : job_(WithOnePs(job)), file_system_(file_system) {}

absl::StatusOr<CutContent> CutReader::Read(const std::string& folder) {
  ASSIGN_OR_RETURN(Files files, FilesIn(folder));
  if (content_.has_value() && folder == folder_ && files == files_) return *content_;
  content_.reset();
  ASSIGN_OR_RETURN(CutContent content, Load(folder));
  folder_ = folder;
  files_ = std::move(files);
  content_ = content;
  return content;
}

absl::StatusOr<CutReader::Files> CutReader::FilesIn(const std::string& folder) const {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(folder));
  Files files;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(files[name], ReadFile(absl::StrCat(folder, "/", name), file_system_));
  }
  return files;
}

absl::StatusOr<CutContent> CutReader::Load(const std::string& folder) const {
  // The load below checks the manifest's version.
  CheckpointManifest manifest;
  RETURN_IF_ERROR(ReadCheckedText(absl::StrCat(folder, "/manifest"), file_system_, &manifest));
  CutContent content;
  content.position = manifest.position();
  content.ledger = manifest.ledger();
  const auto reader = std::make_shared<Reader>();
  PsEngine::Options options;
  options.executor = &reader->loop;
  options.disk_executor = &reader->loop;
  options.file_system = file_system_;
  options.first_step = content.position.step();
  options.frozen_steps = content.position.frozen_steps();
  ASSIGN_OR_RETURN(reader->ps, PsEngine::Create(job_, options));
  absl::optional<absl::Status> loaded;
  reader->ps->Load(folder, [&loaded](absl::Status status) { loaded = std::move(status); });
  CHECK(reader->loop.RunUntil([&] { return loaded.has_value(); }, kMostUs, kMostEvents));
  RETURN_IF_ERROR(*loaded);
  content.tables.rows = reader->ps->Stats()[1].rows();
  content.tables.read_row = [reader](uint32_t table, uint64_t key) {
    const auto [row, is_new] = reader->rows.try_emplace({table, key});
    if (is_new) {
      row->second =
          ReadRowOf(reader->ps.get(), Envelope(), reader->rows.size(), table, key, &reader->loop);
    }
    return row->second;
  };
  return content;
}

}  // namespace satrap::simulation
