// Test support: a kubectl that answers from a list and notes how it was called, and a run to
// submit.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_SUBMIT_KUBECTL_FAKE_KUBECTL_H_
#define SATRAP_DEPLOY_SUBMIT_KUBECTL_FAKE_KUBECTL_H_

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {

class FakeKubectlTest : public ::testing::Test {
 protected:
  struct Answer {
    std::string out;
    int code = 0;
    std::string err;
    bool once = false;  // the answer of one call, after which later answers to it count
  };

  void SetUp() override;
  void TearDown() override;

  // The program's path.
  std::string program() const { return dir_ + "/kubectl"; }
  // Calls whose arguments, joined by blanks, match the glob `pattern` get the answer, unless an
  // earlier pattern matches. A call without an answer fails, unless there is AnswerOthersBy.
  void On(const std::string& pattern, const Answer& answer);
  void On(const std::string& pattern, const std::string& out) {
    On(pattern, Answer{out, 0, "", false});
  }
  // Calls that match no pattern become the program `script`, in dir_, whose first argument is the
  // path of what the call got as its stdin, and whose others are those of the call.
  void AnswerOthersBy(const std::string& script);

  // The arguments of each call, joined by blanks, and what the n-th got as its stdin.
  std::vector<std::string> Calls() const;
  std::string Input(size_t call) const;

  std::string dir_;

 private:
  int rules_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_KUBECTL_FAKE_KUBECTL_H_
