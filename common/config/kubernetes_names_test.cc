#include "common/config/kubernetes_names.h"

#include <string>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(KubernetesNamesTest, ARunHasANameThatAllItsObjectsCanBeNamedAfter) {
  for (const std::string& name :
       {std::string("a"), std::string("demo-2"), std::string(kLongestRunName, 'x')}) {
    EXPECT_TRUE(IsRunName(name)) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("2-demo"), std::string("Demo"), std::string("demo_lr"),
        std::string("demo-"), std::string("-demo"), std::string("a.b"), std::string("a b"),
        std::string("demo-members"), std::string(kLongestRunName + 1, 'x')}) {
    EXPECT_FALSE(IsRunName(name)) << name;
  }
}

TEST(KubernetesNamesTest, ANamespaceIsALabelAndAnObjectIsNamedByLabelsWithDots) {
  EXPECT_TRUE(IsDnsLabel("7-days"));
  EXPECT_FALSE(IsDnsLabel("a.b"));
  EXPECT_FALSE(IsDnsLabel(std::string(64, 'a')));
  EXPECT_TRUE(IsObjectName("a.b-c.9"));
  EXPECT_TRUE(IsObjectName(std::string(253, 'a')));
  EXPECT_FALSE(IsObjectName(std::string(254, 'a')));
  for (const char* name : {"", "a..b", ".a", "a.", "a.-b", "a-.b", "A", "a_b", "a/b"}) {
    EXPECT_FALSE(IsObjectName(name)) << name;
  }
}

TEST(KubernetesNamesTest, TheKeyOfALabelMayHaveAPrefix) {
  for (const char* key : {"disk", "kubernetes.io/arch", "a/B_c.d-9", "nvidia.com/gpu"}) {
    EXPECT_TRUE(IsLabelKey(key)) << key;
  }
  for (const char* key : {"", "/", "a/", "/a", "A/b", "a/b/c", "-a", "a b"}) {
    EXPECT_FALSE(IsLabelKey(key)) << key;
  }
}

TEST(KubernetesNamesTest, TheValueOfALabelMayBeEmptyButNotLong) {
  for (const std::string& value : {std::string(), std::string("A_b.c-9"), std::string(63, 'x')}) {
    EXPECT_TRUE(IsLabelValue(value)) << value;
  }
  for (const std::string& value :
       {std::string("a/b"), std::string("-a"), std::string("a."), std::string(64, 'x')}) {
    EXPECT_FALSE(IsLabelValue(value)) << value;
  }
}

}  // namespace
}  // namespace satrap
