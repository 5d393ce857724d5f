#include "deploy/submit/kubectl/yaml.h"

#include <string>

#include "gtest/gtest.h"

namespace satrap {
namespace {

std::string TextOf(const std::string& value) { return Yaml(Yaml::Map{{"k", value}}).Text(); }

TEST(YamlTest, MapsAndListsAreIndented) {
  const Yaml value = Yaml::Map{
      {"kind", "Pod"},
      {"spec", Yaml::Map{{"replicas", 2},
                         {"ready", true},
                         {"containers", Yaml::List{Yaml::Map{{"name", "a"},
                                                             {"args", Yaml::List{"x", "--y=1"}},
                                                             {"env", Yaml::Map{{"b", false}}}},
                                                   Yaml::Map{{"name", "c"}}}},
                         {"none", Yaml::Map{}},
                         {"empty", Yaml::List{}}}},
      {"big", int64_t{1} << 40},
  };
  EXPECT_EQ(value.Text(),
            "kind: Pod\n"
            "spec:\n"
            "  replicas: 2\n"
            "  ready: true\n"
            "  containers:\n"
            "    - name: a\n"
            "      args:\n"
            "        - x\n"
            "        - \"--y=1\"\n"
            "      env:\n"
            "        b: false\n"
            "    - name: c\n"
            "  none: {}\n"
            "  empty: []\n"
            "big: 1099511627776\n");
}

TEST(YamlTest, AListMayHoldLists) {
  EXPECT_EQ(Yaml(Yaml::List{Yaml(Yaml::List{"a", "b"}), "c"}).Text(), "-\n  - a\n  - b\n- c\n");
}

TEST(YamlTest, ATextThatWouldBeReadAsSomethingElseIsQuoted) {
  EXPECT_EQ(TextOf("a-b_c.d/e9"), "k: a-b_c.d/e9\n");
  EXPECT_EQ(TextOf("/runs"), "k: /runs\n");
  for (const std::string text :
       {"",   "1",    "1.5",  "1e9",  "true", "No",  "OFF", "y",    "null", "~",
        "-a", "a: b", "a #b", "$(X)", "*",    "a,b", "0x1", ".inf", " a",   "a "}) {
    EXPECT_EQ(TextOf(text), "k: \"" + text + "\"\n");
  }
  EXPECT_EQ(TextOf("a\"b\\c\td"), "k: \"a\\\"b\\\\c\\x09d\"\n");
  EXPECT_EQ(Yaml(Yaml::Map{{"a.b/c", 1}, {"yes", 2}}).Text(), "a.b/c: 1\n\"yes\": 2\n");
}

TEST(YamlTest, ATextOfLinesIsABlock) {
  EXPECT_EQ(TextOf("name: 'x'\n\n  a { b: \"c\" }\n"), "k: |\n  name: 'x'\n\n    a { b: \"c\" }\n");
  EXPECT_EQ(TextOf("no end"), "k: \"no end\"\n");
  EXPECT_EQ(TextOf("two\n\n"), "k: \"two\\n\\n\"\n");
  EXPECT_EQ(TextOf(" indented\n"), "k: \" indented\\n\"\n");
  EXPECT_EQ(TextOf("\x01\n"), "k: \"\\x01\\n\"\n");
}

}  // namespace
}  // namespace satrap
