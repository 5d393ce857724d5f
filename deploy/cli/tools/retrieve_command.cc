// The command `retrieve`: ranks items for users by the vectors that `predict --output` has written.

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/cli/command_flags.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_job.h"
#include "deploy/retrieve/retrieval.h"
#include "deploy/retrieve/retrieval_report.h"

namespace satrap {

int RetrieveCommand(const CommandCall& call) {
  RetrieveFlags flags;
  const auto arguments = ParseArguments(call, flags.Table());
  if (!arguments.ok()) return PrintError(arguments.status());
  RetrievalOptions options;
  options.user_vectors = (*arguments)[0];
  options.item_vectors = (*arguments)[1];
  options.users = flags.users;
  options.items = flags.items;
  options.relevant = flags.relevant;
  options.seen = flags.seen;
  options.popularity = flags.popularity;
  options.output = flags.output_file;
  options.ks = flags.ks;
  options.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const absl::StatusOr<RetrievalResult> result = Retrieve(options);
  if (!result.ok()) return PrintError(result.status());
  for (const std::string& warning : RetrievalWarnings(*result)) {
    fprintf(stderr, "satrap: warning: %s\n", warning.c_str());
  }
  // If the lists go to stdout, print the metrics to stderr so that they stay apart.
  FILE* const to = flags.output_file == "/dev/stdout" ? stderr : stdout;
  fprintf(to, "%s", (flags.json ? RetrievalJson(*result) : RetrievalTable(*result)).c_str());
  return 0;
}

}  // namespace satrap
