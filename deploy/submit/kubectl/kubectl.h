// Runs kubectl, so that contexts, logins and proxies are the user's own.
//
// Not thread-safe. The process must have no other children. Every call except Stream has a
// deadline.

#ifndef SATRAP_DEPLOY_SUBMIT_KUBECTL_KUBECTL_H_
#define SATRAP_DEPLOY_SUBMIT_KUBECTL_KUBECTL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace satrap {

// How a call of Stream has ended.
struct Streamed {
  int signal = 0;  // SIGINT or SIGTERM, which came and ended it; 0: none
  int code = 0;    // its exit code, or 128 and the number of the signal that killed it
  bool succeeded() const { return signal == 0 && code == 0; }
};

class Kubectl {
 public:
  // `space` is the namespace of every call; empty: that of the user's context. `program` is found
  // on the PATH unless it has a slash.
  explicit Kubectl(std::string space, std::string program = "kubectl")
      : space_(std::move(space)), program_(std::move(program)) {}

  // Runs kubectl with `args`, and `input` as its stdin, and returns what it prints. After 3 s, also
  // shows its stderr as it is written, because a login may ask the user for something. NOT_FOUND:
  // there is no kubectl. FAILED_PRECONDITION: kubectl has failed; the message has its stderr, in
  // one line. DEADLINE_EXCEEDED: kubectl has not ended within a minute, or within five if a user
  // may have to log in, and was killed.
  absl::StatusOr<std::string> Run(std::vector<std::string> args, absl::string_view input = "");

  // Like Run with `-o json`, but parses what kubectl prints into `answer`, a message of
  // proto/kubectl.proto. If kubectl prints nothing, as with --ignore-not-found, `answer` is empty.
  // Errors are those of Run; INTERNAL: the output is not the expected JSON.
  absl::Status Ask(std::vector<std::string> args, google::protobuf::Message* answer,
                   absl::string_view input = "");

  // Runs kubectl, with this process's stderr, until it ends. If this process gets SIGINT or
  // SIGTERM, kubectl is ended. `show` gets each line that kubectl prints, with its line end if it
  // has one. Errors are those of Run. REQUIRES: SIGINT, SIGTERM and SIGCHLD are blocked in all
  // threads
  absl::StatusOr<Streamed> Stream(std::vector<std::string> args,
                                  const std::function<void(absl::string_view line)>& show);

  // Replaces this process by kubectl with `args`. If that fails, returns why, as Run does.
  absl::Status Become(std::vector<std::string> args);

  const std::string& space() const { return space_; }

 private:
  std::vector<std::string> CommandOf(std::vector<std::string> args) const;
  absl::Status NotStarted(int error) const;

  const std::string space_;
  const std::string program_;
};

// Blocks the signals that Stream reads. REQUIRES: no other thread
void BlockSignalsOfStream();

// Waits for `timeout_ms`. If SIGINT or SIGTERM comes meanwhile, ends the wait and returns the
// signal; else returns 0. REQUIRES: as Stream
int WaitForSignal(int64_t timeout_ms);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_KUBECTL_KUBECTL_H_
