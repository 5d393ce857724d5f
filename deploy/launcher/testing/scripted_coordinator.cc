// Test support: a coordinator whose answers are files in the run's folder, which a test writes.
//
//   scripted_coordinator --config=RUN/job.textproto --listen=ADDRESS ...
//
//   RUN/status.textproto   its StatusAnswer, read again for each Status call
//   RUN/wish.textproto     the last WishRequest that was sent to it
//   RUN/on_wish.textproto  if it exists, a wish is accepted and this becomes RUN/status.textproto;
//                          otherwise wishes are refused
//
// It runs until it is killed.

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "common/base/check.h"
#include "common/config/text_format.h"
#include "common/role/coordinator_client.h"
#include "common/role/role_flags.h"
#include "common/rpc/grpc_server.h"
#include "proto/control.pb.h"

namespace satrap {
namespace {

constexpr rpc::Method kMethods[] = {kStatus, kWish};

class ScriptedCoordinator final : public rpc::Handler {
 public:
  explicit ScriptedCoordinator(std::string run_dir) : run_dir_(std::move(run_dir)) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    rpc::Message answer;
    if (method == kStatus) {
      StatusAnswer status;
      status.set_run_id(1);
      const absl::Status read = ParseTextFile(run_dir_ + "/status.textproto", &status);
      if (!read.ok()) return respond(absl::UnavailableError(read.message()));
      answer.header = status.SerializeAsString();
      return respond(answer);
    }
    WishRequest wish;
    wish.ParseFromString(request.header);
    std::ofstream(run_dir_ + "/wish.textproto") << ToText(wish);
    std::error_code error;
    std::filesystem::rename(run_dir_ + "/on_wish.textproto", run_dir_ + "/status.textproto", error);
    if (error) return respond(absl::FailedPreconditionError("the run takes no more cuts"));
    WishAnswer number;
    number.set_number(1);
    answer.header = number.SerializeAsString();
    respond(answer);
  }

 private:
  const std::string run_dir_;
};

int Run(int argc, char** argv) {
  const auto flags = ParseCoordinatorFlags(std::vector<std::string>(argv + 1, argv + argc));
  CHECK_OK(flags.status());
  ScriptedCoordinator coordinator(std::filesystem::path(flags->config).parent_path().string());
  const auto server = rpc::GrpcServer::Start(flags->listen, rpc::EndpointOptions(),
                                             {rpc::GrpcServer::Service{kMethods, &coordinator}});
  if (!server.ok()) {
    fprintf(stderr, "error: %s\n", std::string(server.status().message()).c_str());
    return 1;
  }
  while (true) pause();
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) { return satrap::Run(argc, argv); }
