// Lets a kernel's first access to an allocation open it, and turns every other segmentation fault in
// device memory into one message, and then the end of the process:
//
//   CHECK failed: kernels_stay_within_device_memory at FILE:LINE kernel Fill, block (0, 0, 0),
//   thread (31, 0, 0) wrote 0 bytes past the end of an allocation of 128 bytes
//   CHECK failed: host_uses_copies at FILE:LINE the host read byte 0 of an allocation of 128 bytes
//   of the device; use CopyIn and CopyOut (device_stream.h)
//
// The handler is installed once and stays until a fault elsewhere, or a SIGSEGV that a process
// sends: these go to the handler that was there before.
//
// Thread-safe.

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_FAULT_REPORT_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_FAULT_REPORT_H_

namespace satrap::host {

class GuardedMemory;

// Until RemoveFaultReport, a kernel's fault opens this memory (GuardedMemory::OpenForKernel), and any
// other fault in it is reported. CHECK-fails for more than 256 at a time.
void AddFaultReport(GuardedMemory* memory);
void RemoveFaultReport(GuardedMemory* memory);

}  // namespace satrap::host

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_FAULT_REPORT_H_
