// `satrap produce` and `satrap topics`. Each prints its result or one error, and returns the
// process's exit code: 0, 1 for an error, 2 for a wrong command line.

#ifndef SATRAP_DEPLOY_KAFKA_COMMANDS_H_
#define SATRAP_DEPLOY_KAFKA_COMMANDS_H_

#include <string>
#include <vector>

namespace satrap {

// `args` are the arguments after the command's name; --help prints the list of flags. TopicsCommand
// needs --brokers; the topics of a run are shown by deploy/cli.
int ProduceCommand(const std::vector<std::string>& args);
int TopicsCommand(const std::vector<std::string>& args);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_KAFKA_COMMANDS_H_
