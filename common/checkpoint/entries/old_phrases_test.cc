#include "common/checkpoint/entries/old_phrases.h"

#include <string>
#include <utility>

#include "common/checkpoint/entries/run_end.h"
#include "common/checkpoint/run_log.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

GenerationEntry Read(const std::string& cause) {
  GenerationEntry entry;
  entry.set_generation(2);
  entry.set_cause(cause);
  ReadOldCause(&entry);
  return entry;
}

TEST(OldPhrases, TheFourWordsOfOldLogsSayWhyAGenerationBegan) {
  const std::pair<const char*, Began> words[] = {{"start", BEGAN_START},
                                                 {"resume", BEGAN_RESUME},
                                                 {"scale", BEGAN_SCALE_ANNOUNCED},
                                                 {"scaled", BEGAN_SCALED}};
  for (const auto& [word, began] : words) {
    const GenerationEntry entry = Read(word);
    EXPECT_EQ(entry.began(), began) << word;
    EXPECT_FALSE(entry.has_ended()) << word;
    EXPECT_FALSE(entry.has_cause()) << word;
    EXPECT_EQ(CauseText(entry), word) << "it is shown as before";
  }
}

TEST(OldPhrases, ASentenceOfOldLogsIsTheTextOfAnEnding) {
  const GenerationEntry entry = Read("embedding_ps 1 was killed by signal 9 (Killed)");
  EXPECT_EQ(entry.began(), BEGAN_RESTART);
  EXPECT_EQ(entry.ended().text(), "embedding_ps 1 was killed by signal 9 (Killed)");
  EXPECT_EQ(CauseText(entry), "embedding_ps 1 was killed by signal 9 (Killed)");
  EXPECT_EQ(entry.generation(), 2u) << "the rest stays";
}

TEST(OldPhrases, AnEntryWithoutAnyCauseFollowsALoss) {
  GenerationEntry entry;
  ReadOldCause(&entry);
  EXPECT_EQ(entry.began(), BEGAN_RESTART);
}

TEST(OldPhrases, AnEntryOfThisBuildIsNotReadByItsWords) {
  GenerationEntry entry;
  entry.set_began(BEGAN_RESTART);
  entry.mutable_ended()->set_text("resume");
  const std::string before = entry.SerializeAsString();
  ReadOldCause(&entry);
  EXPECT_EQ(entry.SerializeAsString(), before);
}

TEST(OldPhrases, AnOldFailureOfACutIsKnownByItsAdvice) {
  EXPECT_EQ(AdviceOfOldFailure("embedding_ps 0: a.rows is damaged; go on from another cut with "
                               "`satrap resume RUN --from CUT`\n  embedding_ps 0 exited"),
            Ending::RESUME_FROM_ANOTHER_CUT);
  EXPECT_EQ(AdviceOfOldFailure("out of luck"), Ending::RESUME);
}

}  // namespace
}  // namespace satrap
