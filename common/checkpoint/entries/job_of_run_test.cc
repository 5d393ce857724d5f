#include "common/checkpoint/entries/job_of_run.h"

#include <string>

#include "gtest/gtest.h"

namespace satrap {
namespace {

RunLogEntry Generation(uint64_t generation, int pss, Began began = BEGAN_RESTART) {
  RunLogEntry entry;
  entry.mutable_generation()->set_generation(generation);
  entry.mutable_generation()->set_began(began);
  entry.mutable_generation()->mutable_job()->mutable_embedding_ps()->set_replicas(pss);
  return entry;
}

RunLogEntry Running(uint64_t generation) {
  RunLogEntry entry;
  entry.mutable_running()->set_generation(generation);
  return entry;
}

RunLogEntry Cut(uint64_t generation) {
  RunLogEntry entry;
  entry.mutable_cut()->set_generation(generation);
  return entry;
}

RunLogEntry Dropped(uint64_t generation) {
  RunLogEntry entry;
  entry.mutable_dropped()->set_generation(generation);
  return entry;
}

int PssOf(const JobConfig* job) { return job == nullptr ? 0 : job->embedding_ps().replicas(); }

TEST(JobOfRun, AGenerationHasRunIfTheLogSaysSoOrHasACutOfIt) {
  EXPECT_EQ(LastThatRan({}), nullptr);
  EXPECT_EQ(LastThatRan({Generation(1, 1)}), nullptr);
  EXPECT_EQ(LastThatRan({Generation(1, 1), Running(1)})->generation(), 1u);
  EXPECT_EQ(LastThatRan({Generation(1, 1), Cut(1), Generation(2, 2)})->generation(), 1u);
  EXPECT_EQ(LastThatRan({Generation(1, 1), Cut(1), Generation(2, 2), Running(2)})->generation(),
            2u);
}

TEST(JobOfRun, TheNextGenerationHasTheJobOfTheNewestUnlessThatIsDropped) {
  EXPECT_EQ(JobOfNext({}), nullptr);
  EXPECT_EQ(PssOf(JobOfNext({Generation(1, 1), Running(1), Generation(2, 2)})), 2)
      << "a death while it begins does not undo a change";
  std::vector<RunLogEntry> dropped = {Generation(1, 1), Running(1), Generation(2, 2),
                                      Generation(3, 2), Dropped(3)};
  EXPECT_EQ(PssOf(JobOfNext(dropped)), 1);
  ASSERT_NE(DroppedChange(dropped), nullptr);
  EXPECT_EQ(DroppedChange(dropped)->generation(), 3u);
  dropped.push_back(Generation(4, 1));
  EXPECT_EQ(DroppedChange(dropped), nullptr);
  dropped.push_back(Generation(5, 2, BEGAN_RESUME));
  EXPECT_EQ(PssOf(JobOfNext(dropped)), 2) << "somebody tries it again";
}

TEST(JobOfRun, OnlyAnotherJobThanTheLastThatRanCanBeTakenBack) {
  JobConfig job;
  job.mutable_embedding_ps()->set_replicas(1);
  EXPECT_EQ(JobToGoBackTo({}, job), nullptr) << "a first generation has nothing to go back to";
  EXPECT_EQ(JobToGoBackTo({Generation(1, 2)}, job), nullptr) << "it has not run";
  EXPECT_EQ(PssOf(JobToGoBackTo({Generation(1, 2), Running(1)}, job)), 2);
  job.mutable_embedding_ps()->set_replicas(2);
  job.set_run_dir("/moved");
  EXPECT_EQ(JobToGoBackTo({Generation(1, 2), Running(1)}, job), nullptr) << "it is the same";
}

}  // namespace
}  // namespace satrap
