#include "embedding_ps/preload.h"

#include <memory>
#include <vector>

#include "common/numeric/hash.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class PreloadTest : public ::testing::Test {
 protected:
  PreloadTest() {
    TableConfig* table = job_.add_tables();
    table->set_name("rows");
    SegmentConfig* segment = table->add_segments();
    segment->set_name("value");
    segment->set_dim(2);
    segment->mutable_initializer()->mutable_constant()->set_value(0.5);
    segment->mutable_optimizer()->mutable_adagrad();
    job_.mutable_embedding_ps()->set_replicas(2);
    AddFeature("user", 1000);
    AddFeature("item", 500);
    AddFeature("word", 0);
  }
  void AddFeature(const char* name, int64_t preload_ids) {
    FeatureConfig* feature = job_.mutable_data()->add_features();
    feature->set_name(name);
    feature->set_table("rows");
    feature->set_preload_ids(preload_ids);
  }
  std::unique_ptr<EmbeddingTable> NewTable() {
    auto table = EmbeddingTable::Create(job_.tables(0), EmbeddingTable::Options());
    EXPECT_TRUE(table.ok()) << table.status();
    return *std::move(table);
  }
  bool Exists(const EmbeddingTable& table, uint64_t id, const char* space) {
    std::vector<float> values(2);
    std::vector<uint8_t> presence(1);
    table.Lookup({KeyOf(id, Xxh64(space))}, AbsentRows::kZeros, absl::MakeSpan(values),
                 absl::MakeSpan(presence));
    if (presence[0] == 1) {
      EXPECT_EQ(values[0], 0.5);
    }
    return presence[0] == 1;
  }
  JobConfig job_;
};

TEST_F(PreloadTest, EachRowIsAtTheOneThatOwnsIt) {
  const auto first = NewTable();
  const auto second = NewTable();
  PreloadRows(job_, 0, {first.get()});
  PreloadRows(job_, 1, {second.get()});
  EXPECT_EQ(first->rows() + second->rows(), 1500);
  for (const uint64_t id : {0, 1, 499}) {
    EXPECT_NE(Exists(*first, id, "item"), Exists(*second, id, "item")) << id;
  }
  EXPECT_FALSE(Exists(*first, 500, "item") || Exists(*second, 500, "item"));
  EXPECT_FALSE(Exists(*first, 0, "word") || Exists(*second, 0, "word"));
}

TEST_F(PreloadTest, RowsThatExistStay) {
  job_.mutable_embedding_ps()->set_replicas(1);
  const auto table = NewTable();
  const std::vector<uint64_t> key = {KeyOf(3, Xxh64("user"))};
  const std::vector<float> row = {7, 8, 1, 1};
  table->WriteRows(key, row);
  PreloadRows(job_, 0, {table.get()});
  std::vector<float> read(4);
  table->ReadRows(key, absl::MakeSpan(read));
  EXPECT_EQ(read, row);
  EXPECT_EQ(table->rows(), 1500);
}

}  // namespace
}  // namespace satrap
