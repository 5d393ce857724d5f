#include "data_loader/source/quoting.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace satrap {
namespace {

// The fields of a record, each as <field>, followed by the error if there is one.
std::string FieldsOf(absl::string_view record, const QuoteRules& rules = QuoteRules()) {
  std::string scratch;
  QuotedFields fields(record, &rules, &scratch);
  std::string text;
  while (!fields.done()) {
    absl::string_view field;
    switch (fields.Next(&field)) {
      case QuotedFields::Result::kField:
        absl::StrAppend(&text, "<", field, ">");
        break;
      case QuotedFields::Result::kNotClosed:
        return text + "not closed";
      case QuotedFields::Result::kTextAfterQuote:
        return text + "text after quote";
    }
  }
  return text;
}

TEST(QuotedFieldsTest, QuotesEncloseFieldsAndMayHoldSeparatorsLineEndsAndDoubledQuotes) {
  EXPECT_EQ(FieldsOf(R"(a,"b",c)"), "<a><b><c>");
  EXPECT_EQ(FieldsOf(R"("a,b","c")"), "<a,b><c>");
  EXPECT_EQ(FieldsOf("\"a\r\nb\n\",c"), "<a\r\nb\n><c>");
  EXPECT_EQ(FieldsOf(R"("say ""hi"" now",x)"), R"(<say "hi" now><x>)");
  EXPECT_EQ(FieldsOf(R"("""",""",""","""""")"), R"(<"><","><"">)");
}

TEST(QuotedFieldsTest, EmptyFieldsAreFields) {
  EXPECT_EQ(FieldsOf(""), "<>");
  EXPECT_EQ(FieldsOf(","), "<><>");
  EXPECT_EQ(FieldsOf(R"("")"), "<>");
  EXPECT_EQ(FieldsOf(R"(a,"",)"), "<a><><>");
}

TEST(QuotedFieldsTest, AQuoteWithinAnUnquotedFieldIsAByte) {
  EXPECT_EQ(FieldsOf(R"(5" pipe,a"b"c,d")"), R"(<5" pipe><a"b"c><d">)");
  EXPECT_EQ(FieldsOf(R"( "a",b)"), R"(< "a"><b>)") << "without trim a space is a byte, too";
}

TEST(QuotedFieldsTest, TextAfterAClosingQuoteAndOpenQuotesAreErrors) {
  EXPECT_EQ(FieldsOf(R"(x,"a"b,c)"), "<x>text after quote");
  EXPECT_EQ(FieldsOf(R"("say "hi" now")"), "text after quote");
  EXPECT_EQ(FieldsOf(R"("a" ,b)"), "text after quote");
  EXPECT_EQ(FieldsOf(R"(a,"b)"), "<a>not closed");
  EXPECT_EQ(FieldsOf(R"(a,")"), "<a>not closed");
  EXPECT_EQ(FieldsOf(R"("a"")"), "not closed");
}

TEST(QuotedFieldsTest, TrimRemovesSpacesAroundQuotesButNotWithin) {
  QuoteRules rules;
  rules.trim = true;
  EXPECT_EQ(FieldsOf(" a\t, \" b \" ,\tc d , ", rules), "<a>< b ><c d><>");
  EXPECT_EQ(FieldsOf(R"( "a" b)", rules), "text after quote");
  rules.separator = '\t';
  EXPECT_EQ(FieldsOf(" \"a\" \t\t b \t", rules), "<a><><b><>") << "a separator is no space";
}

TEST(RecordEndFinderTest, ALineEndWithinQuotesDoesNotEndARecord) {
  const QuoteRules rules;
  const auto open_at_end = [&rules](absl::string_view text) {
    return RecordEndFinder(&rules).EndsWithinQuotes(text);
  };
  for (const char* text : {"\"", "a,\"b", "\"a\"\"", "\"\"\"", "\"a,\"b,\"c", "\"a\nb"}) {
    EXPECT_TRUE(open_at_end(text)) << text;
  }
  for (const char* text : {"", "a", "a\"", "\"\"", "a\"b,c", "\"a\"b\"", "\"a\"\"\"", " \"a"}) {
    EXPECT_FALSE(open_at_end(text)) << text;
  }
}

// Tries every text of up to seven bytes, over an alphabet with one byte of each kind that the
// grammar distinguishes.
TEST(RecordEndFinderTest, AgreesWithTheFieldsHoweverTheTextIsCut) {
  const std::string alphabet = "\", a";
  for (const bool trim : {false, true}) {
    QuoteRules rules;
    rules.trim = trim;
    for (int size = 0; size <= 7; ++size) {
      const int count = 1 << (2 * size);
      for (int number = 0; number < count; ++number) {
        std::string text;
        for (int i = 0; i < size; ++i) text += alphabet[static_cast<size_t>(number >> (2 * i) & 3)];
        RecordEndFinder whole(&rules);
        const bool open = whole.EndsWithinQuotes(text);
        RecordEndFinder by_bytes(&rules);
        bool open_by_bytes = false;
        for (const char& c : text) {
          open_by_bytes = by_bytes.EndsWithinQuotes(absl::string_view(&c, 1));
        }
        ASSERT_EQ(open_by_bytes, open) << text;
        // If text follows a closing quote, QuotedFields stops, but RecordEndFinder continues, so
        // they cannot be compared.
        const std::string fields = FieldsOf(text, rules);
        if (fields.find("text after") != std::string::npos) continue;
        ASSERT_EQ(fields.find("not closed") != std::string::npos, open) << text;
      }
    }
  }
}

}  // namespace
}  // namespace satrap
