// An NN worker that computes on the CPU or on the device whose kernels it links.

#include "nn_worker/rank_process.h"

int main(int argc, char** argv) {
  const auto devices = satrap::NewDeviceProgram();
  return satrap::RunRankProcess(argc, argv, devices.get());
}
