#pragma once
// The heap of a thread that searches, in pages that are made in a few steps.

namespace zeroplan {

/// Has the allocator take the calling thread's next memory in large pages and keep what it has. A
/// search makes some ten thousand pages else, one after another, which takes as long as a quarter
/// of its arithmetic. Where the C library or the kernel knows no such thing, nothing happens.
void use_large_pages();

}  // namespace zeroplan
