#include "data_loader/check/record_size.h"

#include <string>

#include "common/config/job_config.h"
#include "common/config/validation_check.h"

namespace satrap {
namespace {

// Lists of ids `tags`, by `feature`; rows of 10 values; messages of at most 64 KiB.
JobConfig Job(const std::string& feature = "") {
  JobConfig job = JobWithData(absl::StrCat(R"(
      csv { columns { name: 'y' kind: LABEL } columns { name: 'user' kind: ID }
            columns { name: 'tags' kind: MULTI_ID } }
      train_files: 'train.csv'
      features { name: 'user' table: 'ids' }
      features { name: 'tags' table: 'ids' )",
                                           feature, "}"));
  job.mutable_tables(0)->mutable_segments(0)->set_dim(10);
  job.set_max_message_bytes(65536);
  ResolveJob(&job);
  return job;
}

// Why a record of this many ids is too large; empty if it is not. Id i is i mod `different`.
std::string Reason(const JobConfig& job, int ids, int different = 1 << 30) {
  const RecordSchema schema = SchemaOf(job.data());
  RecordBlock block(schema);
  block.BeginRow();
  block.set_label(1);
  block.row_ids()[0] = 7;
  for (int i = 0; i < ids; ++i) block.AppendToList(0, static_cast<uint64_t>(i % different), 1);
  block.CommitRow();
  std::string reason;
  return RecordSize(job, schema).IsTooLarge(block, &reason) ? reason : "";
}

TEST(RecordSizeTest, ARecordWhoseRowsFitIsGood) {
  EXPECT_EQ(Reason(Job(), 0), "");
  EXPECT_EQ(Reason(Job(), 900), "");
}

TEST(RecordSizeTest, ARecordWhoseRowsDoNotFitIsNamedWithItsLongestColumn) {
  const std::string reason = Reason(Job("transfer: ROWS"), 2000);
  EXPECT_NE(reason.find("more than max_message_bytes allows: column tags holds 2000 ids"),
            std::string::npos)
      << reason;
}

TEST(RecordSizeTest, IdsThatRepeatAreOneRowAndAreSentEachTime) {
  EXPECT_EQ(Reason(Job("transfer: ROWS"), 2000, 100), "");
  EXPECT_NE(Reason(Job("transfer: ROWS"), 20000, 100), "") << "160,000 bytes of ids";
}

TEST(RecordSizeTest, PooledRowsOnlyPassTheEmbeddingPss) {
  EXPECT_NE(Reason(Job("transfer: POOLED"), 2000), "") << "48 bytes a key";
  JobConfig two = Job("transfer: POOLED");
  two.mutable_embedding_ps()->set_replicas(4);
  EXPECT_EQ(Reason(two, 2000), "");
}

TEST(RecordSizeTest, OfASequenceTheFirstIdsHaveRows) {
  EXPECT_EQ(Reason(Job("pooling: NONE max_length: 50"), 2000), "");
}

}  // namespace
}  // namespace satrap
