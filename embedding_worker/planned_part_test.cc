#include "embedding_worker/planned_part.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "common/numeric/hash.h"
#include "common/rpc/frame.h"
#include "common/rpc/hot_methods.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

EmbeddingLayout Layout() {
  JobConfig job;
  job.add_tables()->set_name("t");
  for (const char* name : {"user", "tags"}) {
    FeatureConfig* feature = job.mutable_data()->add_features();
    feature->set_name(name);
    feature->set_table("t");
  }
  return EmbeddingLayout::Make(job);
}

// The request that docs/formats.md shows in "One PutBatch, byte by byte".
std::string ExampleBytes() {
  const std::string prefix = absl::HexStringToBytes(
      "0a6d"
      "0a14098877665544332211100119efcdab8967452301"
      "1206080010011801"
      "18002000"
      "2a2c"
      "0a0a08001000180020002800"
      "1001180220002801"
      "3001"
      "3a0408001008"
      "420408401008"
      "6a080800100018002002"
      "32090802120508800110103210080312"
      "0508c00110181a05088002100c"
      "128c02");
  std::string payload(268, '\0');
  const auto put = [&](size_t offset, const char* hex) {
    const std::string bytes = absl::HexStringToBytes(hex);
    payload.replace(offset, bytes.size(), bytes);
  };
  put(0, "0000003f00000040");
  put(64, "000000000000803f");
  put(128, "07000000000000000900000000000000");
  put(192, "030000000000000004000000000000000300000000000000");
  put(256, "000000000200000003000000");
  return prefix + payload;
}

struct Example {
  PutBatchHeader header;
  Buffer payload;
};

Example ReadExample() {
  const std::string bytes = ExampleBytes();
  const absl::string_view slice = bytes;
  auto message = rpc::DecodeFrame(rpc::kPutBatch, {slice});
  EXPECT_TRUE(message.ok()) << message.status();
  Example example;
  EXPECT_TRUE(example.header.ParseFromString(message->header));
  example.payload = std::move(message->payload);
  return example;
}

absl::StatusOr<PlannedPart> Make(const Example& example) {
  PlanScratch scratch;
  return PlannedPart::Make(Layout(), example.header, example.payload, &scratch);
}

TEST(PlannedPart, ReadsTheDocumentedBytes) {
  EXPECT_EQ(ExampleBytes().size(), 382u);
  const Example example = ReadExample();
  EXPECT_EQ(example.header.SerializeAsString(), ExampleBytes().substr(2, 109))
      << "the documented bytes are canonical";
  const auto part = Make(example);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->description.samples(), 2u);
  EXPECT_TRUE(part->description.last_of_lane());
  EXPECT_THAT(part->payload.View<float>(part->description.numeric_values().offset_bytes(), 2),
              ElementsAre(.5f, 2.f));

  const auto key_of = [&](const RowIndices& indices, size_t id) {
    return part->plan.tables[0].keys[indices.rows[id]];
  };
  const RowIndices user = part->IndicesOf(0), tags = part->IndicesOf(1);
  EXPECT_EQ(key_of(user, 0), KeyOf(7, Xxh64("user")));
  EXPECT_EQ(key_of(user, 1), KeyOf(9, Xxh64("user")));
  EXPECT_TRUE(user.offsets.empty());
  EXPECT_EQ(key_of(tags, 1), KeyOf(4, Xxh64("tags")));
  EXPECT_EQ(tags.rows[0], tags.rows[2]);
  EXPECT_THAT(tags.offsets, ElementsAre(0, 2, 3));
  EXPECT_EQ(part->plan.NumKeys(), 4u);
}

TEST(PlannedPart, KnowsTheLatestTimeOfItsRecords) {
  Example example = ReadExample();
  EXPECT_EQ(Make(example)->LatestTime(), absl::nullopt);
  Buffer with_times(320 + 16);
  std::memcpy(with_times.mutable_data(), example.payload.data(), example.payload.size());
  with_times.MutableView<int64_t>(320, 2)[0] = 1777627800500;
  with_times.MutableView<int64_t>(320, 2)[1] = -7;
  example.payload = with_times;
  example.header.mutable_part()->mutable_times()->set_offset_bytes(320);
  example.header.mutable_part()->mutable_times()->set_size_bytes(16);
  EXPECT_EQ(Make(example)->LatestTime(), 1777627800500);
}

TEST(PlannedPart, WeighsAsMuchAsItsSamples) {
  Example example = ReadExample();
  EXPECT_EQ(Make(example)->Weight(), 2);
  Buffer with_weights(320 + 8);
  std::memcpy(with_weights.mutable_data(), example.payload.data(), example.payload.size());
  with_weights.MutableView<float>(320, 2)[0] = 0.5f;
  with_weights.MutableView<float>(320, 2)[1] = 4;
  example.payload = with_weights;
  example.header.mutable_part()->mutable_weights()->set_offset_bytes(320);
  example.header.mutable_part()->mutable_weights()->set_size_bytes(8);
  EXPECT_EQ(Make(example)->Weight(), 4.5);
}

// Whatever value a byte of the header has, the part is either accepted or refused, and no memory
// outside the payload is accessed.
TEST(PlannedPart, SurvivesAnyDamagedHeaderByte) {
  const std::string good = ReadExample().header.SerializeAsString();
  int refused = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      Example example = ReadExample();
      std::string damaged = good;
      damaged[i] = static_cast<char>(value);
      if (!example.header.ParseFromString(damaged) || !example.header.has_part()) continue;
      if (!Make(example).ok()) ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(PlannedPart, RefusesDenseSectionsOfAnotherSize) {
  Example example = ReadExample();
  example.header.mutable_part()->set_tasks(2);
  EXPECT_THAT(Make(example).status().message(), HasSubstr("part.labels"));
  example = ReadExample();
  example.header.mutable_part()->mutable_weights()->set_size_bytes(4);
  EXPECT_THAT(Make(example).status().message(), HasSubstr("part.weights"));
}

TEST(PlannedPart, RefusesOffsetsThatFallAndWeightsThatAreNotFinite) {
  Example example = ReadExample();
  Buffer payload(example.payload.size());
  std::memcpy(payload.mutable_data(), example.payload.data(), payload.size());
  payload.MutableView<uint32_t>(256, 3)[1] = 9;
  example.payload = payload;
  EXPECT_THAT(Make(example).status().message(), HasSubstr("features[1] (tags)"));

  example = ReadExample();
  Buffer with_weights(192 + 64);
  std::memcpy(with_weights.mutable_data(), example.payload.data(), with_weights.size());
  with_weights.MutableView<float>(192, 2)[0] = 1;
  with_weights.MutableView<float>(192, 2)[1] = NAN;
  example.payload = with_weights;
  example.header.mutable_features(0)->mutable_weights()->set_offset_bytes(192);
  example.header.mutable_features(0)->mutable_weights()->set_size_bytes(8);
  EXPECT_THAT(Make(example).status().message(), HasSubstr("features[0].weights"));
}

}  // namespace
}  // namespace satrap
