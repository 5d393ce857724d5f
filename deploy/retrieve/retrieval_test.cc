#include "deploy/retrieve/retrieval.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/numeric/random.h"
#include "common/testing/temp_dir.h"
#include "deploy/retrieve/retrieval_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class RetrievalTest : public ::testing::Test {
 protected:
  // Items and users are points on a line: users at 1 (up, idle) rank the items d, c, b, a, and the
  // user at -1 (down) ranks them in reverse.
  void SetUp() override {
    options_.item_vectors = temp_.Write("item_vectors", "1\n2\n3\n4\n");
    options_.items = temp_.Write("items", "a\nb\nc\nd\n");
    options_.user_vectors = temp_.Write("user_vectors", "1\n-1\n1\n");
    options_.users = temp_.Write("users", "up\ndown\nidle\n");
    options_.relevant = temp_.Write("relevant", "up c\ndown a\ndown d\n");
    options_.ks = {1, 2};
  }
  std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  std::string ErrorOf() { return std::string(Retrieve(options_).status().message()); }

  const TempDir temp_;
  const std::string dir_ = temp_.path();
  RetrievalOptions options_;
};

TEST_F(RetrievalTest, EqualsAComputationByHand) {
  const auto result = Retrieve(options_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->users, 2) << "a user without relevant items does not count";
  EXPECT_EQ(result->items, 4);
  EXPECT_EQ(result->dim, 1);
  ASSERT_EQ(result->by_vectors.size(), 2u);
  // The ranking of user `up` is d, c; that of user `down` is a, b.
  EXPECT_EQ(result->by_vectors[0].recall, (0 + .5) / 2);
  EXPECT_EQ(result->by_vectors[0].mrr, (0 + 1.) / 2);
  EXPECT_EQ(result->by_vectors[1].recall, (1 + .5) / 2);
  EXPECT_EQ(result->by_vectors[1].hit_rate, 1);
  EXPECT_EQ(result->by_vectors[1].mrr, (.5 + 1) / 2);
  const double second = 1 / std::log2(3);
  EXPECT_DOUBLE_EQ(result->by_vectors[1].ndcg, (second + 1 / (1 + second)) / 2);
  EXPECT_TRUE(result->by_popularity.empty());
  EXPECT_TRUE(RetrievalWarnings(*result).empty());
}

TEST_F(RetrievalTest, SeenItemsAreNotRanked) {
  options_.seen = temp_.Write("seen", "up d\nup d\ndown b\nnobody a\nup unknown\n");
  options_.output = dir_ + "/top";
  const auto result = Retrieve(options_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->by_vectors[0].mrr, 1);
  EXPECT_EQ(Read(options_.output), "up\tc\tb\ndown\ta\tc\nidle\td\tc\n");
}

// The standard output may be a file that holds something already, and that is written to later.
TEST_F(RetrievalTest, TheListsMayGoToTheStandardOutput) {
  const std::string path = dir_ + "/stdout";
  fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  ASSERT_GE(file, 0);
  dup2(file, STDOUT_FILENO);
  dprintf(STDOUT_FILENO, "before\n");
  options_.output = "/dev/stdout";
  const auto result = Retrieve(options_);
  dprintf(STDOUT_FILENO, "after\n");
  dup2(before, STDOUT_FILENO);
  close(before);
  close(file);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Read(path), "before\nup\td\tc\ndown\ta\tb\nidle\td\tc\nafter\n");
}

TEST_F(RetrievalTest, AnOutputThatExistsStaysIfRankingFails) {
  options_.output = temp_.Write("top", "what was there");
  options_.users = temp_.Write("users", "up\ndown\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("has no counterpart"));
  EXPECT_EQ(Read(options_.output), "what was there");
  options_.output = dir_ + "/none/top";
  EXPECT_THAT(ErrorOf(), HasSubstr("cannot write " + options_.output));
}

TEST_F(RetrievalTest, PopularityRanksItemsByTheirNumberOfPairs) {
  options_.popularity = temp_.Write("pairs", "x c\ny c\nz d\nz unknown\nz unknown\nz unknown\n");
  options_.seen = temp_.Write("seen", "down c\n");
  const auto result = Retrieve(options_);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->by_popularity.size(), 2u);
  // The ranking of user `up` is c, d, a, b; that of user `down` is d, a, b.
  EXPECT_EQ(result->by_popularity[0].recall, (1 + .5) / 2);
  EXPECT_EQ(result->by_popularity[1].recall, 1);
}

TEST_F(RetrievalTest, BlocksOfUsersAndThreadsChangeNothing) {
  SplitMix64 random(7);
  std::string item_vectors, items, user_vectors, users, relevant;
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&items, "i", i, "\n");
    absl::StrAppend(&item_vectors, random.NextDouble() - .5, " ", random.NextDouble() - .5, "\n");
    absl::StrAppend(&users, "u", i, "\n");
    absl::StrAppend(&user_vectors, random.NextDouble() - .5, " ", random.NextDouble() - .5, "\n");
    absl::StrAppend(&relevant, "u", i, " i", random.Below(300), "\n");
  }
  options_.item_vectors = temp_.Write("item_vectors", item_vectors);
  options_.items = temp_.Write("items", items);
  options_.user_vectors = temp_.Write("user_vectors", user_vectors);
  options_.users = temp_.Write("users", users);
  options_.relevant = temp_.Write("relevant", relevant);
  options_.output = dir_ + "/top";
  std::vector<std::string> tables, lists;
  for (const int64_t block : {1000, 7, 1}) {
    options_.block_users = block;
    options_.threads = static_cast<int>(1 + block % 3);
    const auto result = Retrieve(options_);
    ASSERT_TRUE(result.ok()) << result.status();
    tables.push_back(RetrievalTable(*result));
    lists.push_back(Read(options_.output));
  }
  EXPECT_EQ(tables[1], tables[0]);
  EXPECT_EQ(tables[2], tables[0]);
  EXPECT_EQ(lists[1], lists[0]);
  EXPECT_EQ(lists[2], lists[0]);
}

TEST_F(RetrievalTest, WhatCannotBeFoundCountsAsNotFoundAndIsTold) {
  options_.item_vectors = temp_.Write("item_vectors", "1\nnan\n3\n4\n");
  options_.user_vectors = temp_.Write("user_vectors", "1\nnan\n1\n");
  options_.relevant = temp_.Write("relevant", "up c\nup b\nup d\nup gone\ndown a\nnobody a\n");
  options_.seen = temp_.Write("seen", "up d\n");
  options_.ks = {4};
  const auto result = Retrieve(options_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->users, 1);
  EXPECT_EQ(result->items, 3);
  EXPECT_EQ(result->by_vectors[0].recall, .25) << "of c, b, d and gone only c can be found";
  EXPECT_THAT(RetrievalWarnings(*result),
              ::testing::ElementsAre(HasSubstr("2 users with relevant items have no vector"),
                                     HasSubstr("1 item vector is nan, and is not ranked"),
                                     HasSubstr("2 relevant pairs have an item without a vector"),
                                     HasSubstr("1 relevant pair is a seen pair")));
}

TEST_F(RetrievalTest, SaysWhichFileIsWrong) {
  const RetrievalOptions right = options_;
  options_.items = temp_.Write("few", "a\nb\nc\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("item_vectors:4: has no counterpart: " + dir_ + "/few has"));
  options_.items = temp_.Write("many", "a\nb\nc\nd\ne\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("many:5: has no counterpart: "));
  options_.items = temp_.Write("twice", "a\nb\nc\na\n");
  EXPECT_THAT(ErrorOf(), EndsWith("twice:4: the item 'a' occurs twice"));
  options_ = right;
  options_.users = temp_.Write("twice", "up\nup\nidle\n");
  EXPECT_THAT(ErrorOf(), EndsWith("twice:2: the user 'up' occurs twice"));
  options_ = right;
  options_.user_vectors = temp_.Write("wide", "1 2\n3 4\n5 6\n");
  EXPECT_THAT(ErrorOf(), EndsWith("the vectors of users have 2 values, but those of items have 1"));
  options_ = right;
  options_.relevant = temp_.Write("nothing", "\n");
  EXPECT_THAT(ErrorOf(), EndsWith("nothing has no pairs of a user and an item"));
  options_.relevant = temp_.Write("strangers", "nobody a\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("no user of " + dir_ + "/strangers has a vector"));
  options_ = right;
  options_.seen = dir_ + "/missing";
  EXPECT_THAT(ErrorOf(), HasSubstr("cannot read " + dir_ + "/missing"));
  options_ = right;
  options_.output = dir_ + "/./users";
  EXPECT_THAT(ErrorOf(), EndsWith("/./users: it is one of the files to read"));
  EXPECT_EQ(Read(options_.users), "up\ndown\nidle\n");
  options_.output = dir_ + "/no/folder";
  EXPECT_THAT(ErrorOf(), HasSubstr("cannot write " + dir_ + "/no/folder"));
}

TEST(RetrievalReportTest, TheTableAndTheJsonHaveARowForEachRankingAndK) {
  RetrievalResult result;
  result.users = 2;
  result.items = 4;
  result.dim = 8;
  result.by_vectors = {{20, .5, .25, 1, .125}};
  result.by_popularity = {{20, 0, 0, 0, 0}};
  EXPECT_EQ(RetrievalTable(result),
            "2 users with relevant items, 4 items, 8 values a vector\n"
            "ranking         k    Recall      NDCG   HitRate       MRR\n"
            "vectors        20   0.50000   0.25000   1.00000   0.12500\n"
            "popularity     20   0.00000   0.00000   0.00000   0.00000\n");
  EXPECT_EQ(RetrievalJson(result),
            R"({"users":2,"items":4,"dim":8,"rankings":[)"
            R"({"ranking":"vectors","k":20,"recall":0.5,"ndcg":0.25,"hit_rate":1,"mrr":0.125},)"
            R"({"ranking":"popularity","k":20,"recall":0,"ndcg":0,"hit_rate":0,"mrr":0}]})"
            "\n");
}

}  // namespace
}  // namespace satrap
