// Turns a segmentation fault in device memory into one message, and then the end of the process:
//
//   CHECK failed: kernels stay within device memory at ... kernel Fill, block (0, 0, 0), thread (31, 0,
//   0) wrote 0 bytes past the end of an allocation of 124 bytes
//   CHECK failed: the host reaches device memory by copies at ... the host read byte 0 of ...
//
// The handler is installed once and stays; faults elsewhere go to the handler that was there before.
//
// Thread-safe.

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_FAULT_REPORT_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_FAULT_REPORT_H_

namespace satrap::host {

class DeviceMemory;

// Reports faults in this memory until RemoveFaultReport. Of more than 256 at a time, the faults of the
// rest stay plain segmentation faults.
void AddFaultReport(const DeviceMemory* memory);
void RemoveFaultReport(const DeviceMemory* memory);

}  // namespace satrap::host

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_FAULT_REPORT_H_
