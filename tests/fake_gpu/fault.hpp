#pragma once
// What goes wrong in the libraries that stand in for CUDA, cuBLASLt and NCCL, and when.

namespace zeroplan::fake {

/// FAKE_GPU_FAULT=KIND@N: at the N-th call whose status a caller must look at,
enum class Fault {
  none,
  error,   // it fails; CUDA's calls then go on failing, as they do on a device
  memory,  // the first from then on that allocates finds no room
  hang,    // it never returns
  late,    // no stream ever ends again
  lost,    // NCCL reports a lost peer from then on, and no stream ends
  killed,  // the process is killed
};

/// Counts the call, and hangs or kills the process where that is what happens to it. FAKE_GPU_RANK
/// leaves the fault to the rank (RANK) of that number, -1 to who is none; FAKE_GPU_CALLS names a
/// file to which each process adds the number of its calls when it ends, and that of the last that
/// allocated.
Fault at_call();
/// The same of a call that allocates.
Fault at_allocation();

/// Returns never.
[[noreturn]] void hang();
/// Whether streams have ceased to end; and whether a peer is lost.
bool streams_stand();
bool peer_lost();
/// Whether a call of CUDA has failed for good.
bool broken();

/// A number from the environment.
long long setting(const char* name, long long otherwise);

}  // namespace zeroplan::fake
