// The first access of a kernel to an allocation of its device causes a fault, and the fault handler
// then opens the allocation (guarded_memory.h). Every other segmentation fault in device memory
// prints one message and ends the process:
//
//   CHECK failed: kernels_stay_within_device_memory at FILE:LINE kernel Fill, block (0, 0, 0),
//   thread (31, 0, 0) wrote 0 bytes past the end of an allocation of 128 bytes
//   CHECK failed: host_uses_copies at FILE:LINE the host read byte 0 of an allocation of 128 bytes
//   of the device; use CopyIn and CopyOut (device_stream.h)
//
// The handler is installed once. If a fault is outside device memory, or a process sent the
// SIGSEGV, the handler removes itself and the previous handler gets the signal.
//
// Thread-safe.

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_FAULT_REPORT_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_FAULT_REPORT_H_

namespace satrap::host {

class GuardedMemory;

// Reports faults in this memory until RemoveFaultReport. At most 256 memories can be watched at a
// time; faults in further memories remain plain segmentation faults.
void AddFaultReport(const GuardedMemory* memory);
void RemoveFaultReport(const GuardedMemory* memory);

}  // namespace satrap::host

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_FAULT_REPORT_H_
