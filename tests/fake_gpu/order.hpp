#pragma once
// Whether streams that touch the same memory wait for each other: with FAKE_GPU_ORDER=1 the program
// ends with a line where they do not. What the host has waited for is behind all it asks for later.
// Kernels are not seen, since their arguments are not; copies, products and collectives are.

#include <cstddef>

namespace zeroplan::fake {

/// A stream reads, or also writes, these bytes. `what` says which call.
void touches(void* stream, const void* begin, std::size_t bytes, bool writes, const char* what);
/// The same of memory that is given back: nobody may touch it afterwards.
void frees(void* stream, const void* begin, std::size_t bytes);

void records(void* event, void* stream);
void waits(void* stream, void* event);
/// The host has waited for a stream or an event; null: for all.
void host_waits(void* stream_or_event);
/// It is made anew, at an address that may have been another's.
void begins(void* stream_or_event);

}  // namespace zeroplan::fake
