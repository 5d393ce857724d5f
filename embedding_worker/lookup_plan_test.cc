#include "embedding_worker/lookup_plan.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/numeric/hash.h"
#include "common/numeric/random.h"
#include "embedding_worker/embedding_layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FeatureConfig* AddFeature(const char* name, const char* table, JobConfig* job) {
  FeatureConfig* feature = job->mutable_data()->add_features();
  feature->set_name(name);
  feature->set_table(table);
  return feature;
}

void AddTable(const char* name, uint32_t id, JobConfig* job) {
  TableConfig* table = job->add_tables();
  table->set_name(name);
  table->set_id(id);
  table->add_segments()->set_dim(2);
}

// A job with two tables. Table "t" has the features "a" and "b", which share an id space, and "c",
// which has its own. Table "u" has the feature "d".
JobConfig Job() {
  JobConfig job;
  AddTable("t", 3, &job);
  AddTable("u", 9, &job);
  AddFeature("a", "t", &job)->set_id_space("shared");
  AddFeature("b", "t", &job)->set_id_space("shared");
  AddFeature("c", "t", &job);
  AddFeature("d", "u", &job);
  return job;
}

// A part as vectors: ids[f], and offsets[f] unless feature f has one id per sample.
struct Part {
  size_t samples;
  std::vector<std::vector<uint64_t>> ids;
  std::vector<std::vector<uint32_t>> offsets;

  JaggedIds View() const {
    JaggedIds view;
    view.samples = samples;
    for (size_t f = 0; f < ids.size(); ++f) view.features.push_back({ids[f], offsets[f]});
    return view;
  }
};

LookupPlan Plan(const JobConfig& job, const Part& part) {
  PlanScratch scratch;
  const EmbeddingLayout layout = EmbeddingLayout::Make(job);
  auto plan = LookupPlan::Make(layout, part.View(), &scratch);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

const Part kSmall = {2, {{5, 6}, {6, 7, 6}, {5, 5}, {1, 1}}, {{}, {0, 1, 3}, {}, {}}};

TEST(LookupPlan, EveryIdFindsItsKey) {
  const JobConfig job = Job();
  const LookupPlan plan = Plan(job, kSmall);
  const char* const spaces[] = {"shared", "shared", "c", "d"};
  for (int f = 0; f < 4; ++f) {
    ASSERT_EQ(plan.RowsOf(f).size(), kSmall.ids[f].size());
    const std::vector<uint64_t>& keys = plan.tables[f < 3 ? 0 : 1].keys;
    for (size_t j = 0; j < kSmall.ids[f].size(); ++j) {
      EXPECT_EQ(keys[plan.RowsOf(f)[j]], KeyOf(kSmall.ids[f][j], Xxh64(spaces[f])))
          << f << " " << j;
    }
  }
}

TEST(LookupPlan, FeaturesOfOneTableAndIdSpaceShareKeys) {
  const LookupPlan plan = Plan(Job(), kSmall);
  EXPECT_EQ(plan.tables[0].keys.size(), 4u);  // shared 5, 6, 7 and c's own 5
  EXPECT_EQ(plan.tables[1].keys.size(), 1u);
  EXPECT_EQ(plan.RowsOf(0)[1], plan.RowsOf(1)[0]);
  EXPECT_NE(plan.RowsOf(0)[0], plan.RowsOf(2)[0]);
  EXPECT_EQ(plan.NumKeys(), 5u);
  EXPECT_EQ(plan.NumIds(), 9u);
}

TEST(LookupPlan, CountsAreSamplesNotOccurrences) {
  const LookupPlan plan = Plan(Job(), kSmall);
  const auto count_of = [&](uint64_t id, const char* space) -> uint32_t {
    const uint64_t key = KeyOf(id, Xxh64(space));
    for (size_t i = 0; i < plan.tables[0].keys.size(); ++i) {
      if (plan.tables[0].keys[i] == key) return plan.tables[0].counts[i];
    }
    return 0;
  };
  EXPECT_EQ(count_of(5, "shared"), 1u);
  // Sample 0 has the id only in feature b; sample 1 has it in a and b, but counts once.
  EXPECT_EQ(count_of(6, "shared"), 2u);
  EXPECT_EQ(count_of(7, "shared"), 1u);
  EXPECT_EQ(count_of(5, "c"), 2u);
  EXPECT_THAT(plan.tables[1].counts, ElementsAre(2));
}

// A random part. Its ids have a distribution like Zipf's, so that some partitions have one id and
// others have hundreds.
Part RandomPart(size_t samples, uint64_t seed) {
  SplitMix64 random(seed);
  Part part;
  part.samples = samples;
  for (int f = 0; f < 4; ++f) {
    std::vector<uint64_t> ids;
    std::vector<uint32_t> offsets = {0};
    for (size_t s = 0; s < samples; ++s) {
      const size_t count = f == 1 ? random.Below(4) : 1;
      for (size_t i = 0; i < count; ++i)
        ids.push_back(random.Below(1 + random.Below(random.Below(5000) + 1)));
      offsets.push_back(static_cast<uint32_t>(ids.size()));
    }
    part.ids.push_back(std::move(ids));
    part.offsets.push_back(f == 1 ? std::move(offsets) : std::vector<uint32_t>());
  }
  return part;
}

TEST(LookupPlan, KeysAreUniqueSortedByPartitionAndCoverAllIds) {
  const LookupPlan plan = Plan(Job(), RandomPart(20000, 1));
  for (const LookupPlan::Table& table : plan.tables) {
    std::set<uint64_t> seen;
    int partition = 0;
    for (uint64_t key : table.keys) {
      EXPECT_TRUE(seen.insert(key).second);
      EXPECT_GE(PartitionOf(key), partition);
      partition = PartitionOf(key);
    }
  }
  const Part part = RandomPart(20000, 1);
  const char* const spaces[] = {"shared", "shared", "c", "d"};
  std::map<std::pair<int, uint64_t>, std::set<size_t>> samples;
  for (int f = 0; f < 4; ++f) {
    size_t s = 0;
    for (size_t j = 0; j < part.ids[f].size(); ++j) {
      if (part.offsets[f].empty()) s = j;
      while (!part.offsets[f].empty() && part.offsets[f][s + 1] <= j) ++s;
      const uint64_t key = KeyOf(part.ids[f][j], Xxh64(spaces[f]));
      ASSERT_EQ(plan.tables[f < 3 ? 0 : 1].keys[plan.RowsOf(f)[j]], key);
      samples[{f < 3 ? 0 : 1, key}].insert(s);
    }
  }
  EXPECT_EQ(plan.NumKeys(), samples.size());
  for (int t = 0; t < 2; ++t) {
    for (size_t i = 0; i < plan.tables[t].keys.size(); ++i) {
      const std::set<size_t>& of_key = samples[{t, plan.tables[t].keys[i]}];
      ASSERT_EQ(plan.tables[t].counts[i], of_key.size());
    }
  }
}

// Tables of up to 64 ids are sorted in another way than larger ones.
TEST(LookupPlan, KeysAreInOrderOfPartitionAndFirstOccurrenceForEveryNumberOfIds) {
  for (size_t samples = 1; samples <= 140; ++samples) {
    const Part part = RandomPart(samples, 100 + samples);
    const LookupPlan plan = Plan(Job(), part);
    // Table "u" has one feature with one id a sample.
    std::map<int, std::vector<uint64_t>> by_partition;
    std::map<uint64_t, uint32_t> counts;
    for (const uint64_t id : part.ids[3]) {
      const uint64_t key = KeyOf(id, Xxh64("d"));
      if (++counts[key] == 1) by_partition[PartitionOf(key)].push_back(key);
    }
    std::vector<uint64_t> keys;
    std::vector<uint32_t> of_keys;
    for (const auto& [partition, its_keys] : by_partition) {
      for (const uint64_t key : its_keys) {
        keys.push_back(key);
        of_keys.push_back(counts[key]);
      }
    }
    ASSERT_EQ(plan.tables[1].keys, keys) << samples << " ids";
    ASSERT_EQ(plan.tables[1].counts, of_keys) << samples << " ids";
    for (size_t j = 0; j < samples; ++j) {
      ASSERT_EQ(keys[plan.RowsOf(3)[j]], KeyOf(part.ids[3][j], Xxh64("d"))) << samples << " " << j;
    }
  }
}

// All keys are of one partition, so that a small table, too, has more of them than are searched one
// after another.
TEST(LookupPlan, ManyIdsOfOnePartitionAreUnifiedInASmallTable) {
  std::map<int, std::vector<uint64_t>> ids;  // by partition
  uint64_t id = 0;
  while (ids[PartitionOf(KeyOf(id, Xxh64("d")))].size() < 30) {
    ids[PartitionOf(KeyOf(id, Xxh64("d")))].push_back(id);
    ++id;
  }
  const std::vector<uint64_t>& of_partition = ids[PartitionOf(KeyOf(id, Xxh64("d")))];
  std::vector<uint64_t> chosen = of_partition;
  chosen.insert(chosen.end(), of_partition.rbegin(), of_partition.rend());
  const size_t samples = chosen.size();
  const LookupPlan plan =
      Plan(Job(), {samples, {chosen, chosen, chosen, chosen}, {{}, {}, {}, {}}});
  ASSERT_EQ(plan.tables[1].keys.size(), 30u);
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(plan.tables[1].keys[i], KeyOf(chosen[i], Xxh64("d"))) << i;
    EXPECT_EQ(plan.tables[1].counts[i], 2u) << i;
    EXPECT_EQ(plan.RowsOf(3)[i], i);
    EXPECT_EQ(plan.RowsOf(3)[samples - 1 - i], i);
  }
}

TEST(LookupPlan, ScratchOfAnEarlierPlanChangesNothing) {
  const EmbeddingLayout layout = EmbeddingLayout::Make(Job());
  PlanScratch used;
  const Part large = RandomPart(5000, 2), small = RandomPart(700, 3);
  ASSERT_TRUE(LookupPlan::Make(layout, large.View(), &used).ok());
  const auto again = LookupPlan::Make(layout, small.View(), &used);
  const LookupPlan fresh = Plan(Job(), small);
  EXPECT_EQ(again->rows, fresh.rows);
  for (int t = 0; t < 2; ++t) {
    EXPECT_EQ(again->tables[t].keys, fresh.tables[t].keys);
    EXPECT_EQ(again->tables[t].counts, fresh.tables[t].counts);
  }
}

TEST(LookupPlan, TheRunsOfAllPssAreAllKeysInOrder) {
  const LookupPlan plan = Plan(Job(), RandomPart(3000, 4));
  for (int num_ps : {1, 2, 3, 7, 4096}) {
    size_t end = 0;
    for (int ps = 0; ps < num_ps; ++ps) {
      const LookupPlan::KeyRange run = plan.KeyRangeOf(0, ps, num_ps);
      EXPECT_EQ(run.begin, end);
      for (size_t i = run.begin; i < run.end; ++i) {
        ASSERT_EQ(PsOfPartition(PartitionOf(plan.tables[0].keys[i]), num_ps), ps);
      }
      end = run.end;
    }
    EXPECT_EQ(end, plan.tables[0].keys.size());
  }
}

TEST(LookupPlan, OnlyRowsOfRowsFeaturesAreSent) {
  JobConfig job = Job();
  job.mutable_data()->mutable_features(1)->set_transfer(FeatureConfig::POOLED);
  job.mutable_data()->mutable_features(3)->set_transfer(FeatureConfig::POOLED);
  const LookupPlan plan = Plan(job, kSmall);
  EXPECT_EQ(plan.tables[0].keys.size(), 4u);
  EXPECT_EQ(plan.tables[0].num_sent, 3u);  // 7 is not sent, because only b has it
  ASSERT_EQ(plan.tables[0].sent.size(), 3u);
  for (int f : {0, 2}) {
    for (size_t j = 0; j < kSmall.ids[f].size(); ++j) {
      EXPECT_EQ(plan.tables[0].keys[plan.tables[0].sent[plan.RowsOf(f)[j]]],
                KeyOf(kSmall.ids[f][j], Xxh64(f == 0 ? "shared" : "c")));
    }
  }
  EXPECT_EQ(plan.tables[0].keys[plan.RowsOf(1)[1]], KeyOf(7, Xxh64("shared")));
  EXPECT_EQ(plan.tables[1].num_sent, 0u);
}

TEST(LookupPlan, WithoutPooledFeaturesAllRowsAreSent) {
  const LookupPlan plan = Plan(Job(), kSmall);
  EXPECT_EQ(plan.tables[0].num_sent, 4u);
  EXPECT_TRUE(plan.tables[0].sent.empty());
}

TEST(LookupPlan, APartOfNoSamplesHasNoKeys) {
  const LookupPlan plan = Plan(Job(), {0, {{}, {}, {}, {}}, {{}, {0}, {}, {}}});
  EXPECT_EQ(plan.NumKeys(), 0u);
  EXPECT_EQ(plan.KeyRangeOf(0, 1, 2).size(), 0u);
}

// The candidates have the id space of "a" and "b". Feature "c" reads the same table with another id
// space.
TEST(LookupPlan, CandidatesAreRowsLikeThoseOfTheirFeature) {
  EmbeddingLayout layout = EmbeddingLayout::Make(Job());
  layout.candidate_feature = 0;
  const Part part = {2, {{1, 2}, {3, 1}, {5, 2}, {1, 1}}, {{}, {}, {}, {}}};
  const std::vector<uint64_t> candidates = {2, 9, 1, 9};
  JaggedIds ids = part.View();
  ids.candidates = candidates;
  PlanScratch scratch;
  const auto plan = LookupPlan::Make(layout, ids, &scratch);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto key = [&](uint64_t id) { return KeyOf(id, layout.features[0].id_space_hash); };
  const LookupPlan::Table& table = plan->tables[0];
  const absl::Span<const uint32_t> rows = plan->RowsOfCandidates();
  ASSERT_EQ(rows.size(), 4u);
  for (size_t j = 0; j < rows.size(); ++j) EXPECT_EQ(table.keys[rows[j]], key(candidates[j])) << j;
  EXPECT_EQ(rows[0], plan->RowsOf(0)[1]) << "an item of a sample is one row";
  EXPECT_EQ(rows[2], plan->RowsOf(1)[1]) << "also in another feature";
  EXPECT_EQ(plan->RowsOf(3).size(), 2u);
  EXPECT_EQ(plan->NumIds(), 12u);
  // Two samples have id 1, one has id 2 and one has id 3. Each candidate counts like a sample.
  std::map<uint64_t, uint32_t> counts;
  for (size_t i = 0; i < table.keys.size(); ++i) counts[table.keys[i]] = table.counts[i];
  EXPECT_EQ(counts[key(1)], 3u);
  EXPECT_EQ(counts[key(2)], 2u);
  EXPECT_EQ(counts[key(3)], 1u);
  EXPECT_EQ(counts[key(9)], 2u);
  // If the first part of the batch has the same candidates and counts them, this part counts only
  // its samples.
  ids.counts_candidates = false;
  const auto other = LookupPlan::Make(layout, ids, &scratch);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->tables[0].keys, table.keys);
  for (size_t i = 0; i < table.keys.size(); ++i) counts[table.keys[i]] = other->tables[0].counts[i];
  EXPECT_EQ(counts[key(1)], 2u);
  EXPECT_EQ(counts[key(2)], 1u);
  EXPECT_EQ(counts[key(9)], 0u);
}

TEST(LookupPlan, TheRowsOfCandidatesAreSentBesideThoseOfPooledFeatures) {
  JobConfig job = Job();
  job.mutable_data()->mutable_features(2)->set_transfer(FeatureConfig::POOLED);
  EmbeddingLayout layout = EmbeddingLayout::Make(job);
  layout.candidate_feature = 0;
  const Part part = {1, {{1}, {2}, {5}, {1}}, {{}, {}, {}, {}}};
  const std::vector<uint64_t> candidates = {8, 1};
  JaggedIds ids = part.View();
  ids.candidates = candidates;
  PlanScratch scratch;
  const auto plan = LookupPlan::Make(layout, ids, &scratch);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const LookupPlan::Table& table = plan->tables[0];
  EXPECT_EQ(table.num_sent, 3u) << "1, 2 and 8";
  for (size_t j = 0; j < candidates.size(); ++j) {
    EXPECT_EQ(table.keys[table.sent[plan->RowsOfCandidates()[j]]],
              KeyOf(candidates[j], layout.features[0].id_space_hash));
  }
}

TEST(LookupPlan, APartOfNoSamplesHasItsCandidates) {
  EmbeddingLayout layout = EmbeddingLayout::Make(Job());
  layout.candidate_feature = 3;
  const Part part = {0, {{}, {}, {}, {}}, {{}, {}, {}, {}}};
  const std::vector<uint64_t> candidates = {4, 5};
  JaggedIds ids = part.View();
  ids.candidates = candidates;
  PlanScratch scratch;
  const auto plan = LookupPlan::Make(layout, ids, &scratch);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->tables[1].keys.size(), 2u);
  EXPECT_EQ(plan->RowsOfCandidates().size(), 2u);
}

TEST(LookupPlan, WrongOffsetsAreRefusedByName) {
  const EmbeddingLayout layout = EmbeddingLayout::Make(Job());
  PlanScratch scratch;
  Part part = kSmall;
  part.offsets[1] = {0, 1, 2};
  const auto plan = LookupPlan::Make(layout, part.View(), &scratch);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(plan.status().message(), HasSubstr("features[1] (b)"));
  part = kSmall;
  part.ids.pop_back();
  part.offsets.pop_back();
  EXPECT_EQ(LookupPlan::Make(layout, part.View(), &scratch).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace satrap
