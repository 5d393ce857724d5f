// The Kafka commands as a separate program: `kafka produce ...` and `kafka topics ...`.

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "deploy/kafka/commands.h"

int main(int argc, char** argv) {
  // If nobody reads the progress any more, the file must still be written to its end.
  signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (!args.empty() && args[0] == "produce") {
    return satrap::ProduceCommand({args.begin() + 1, args.end()});
  }
  if (!args.empty() && args[0] == "topics") {
    return satrap::TopicsCommand({args.begin() + 1, args.end()});
  }
  std::fputs("usage: kafka produce|topics [--help]\n", stderr);
  return 2;
}
