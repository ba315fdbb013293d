// How does a search's memory come? Front door: use_large_pages.
#include "planner/sweep/large_pages.hpp"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace zeroplan {

void use_large_pages() {
#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)
  static constexpr int mib = 1 << 20;
  // What is freed is kept, also in blocks as long as the step of a search's finalist.
  mallopt(M_MMAP_THRESHOLD, 32 * mib);
  mallopt(M_TRIM_THRESHOLD, 512 * mib);
  mallopt(M_TOP_PAD, 16 * mib);
  // The next allocations come from where a large one was.
  constexpr std::size_t bytes = 24 * mib;
  constexpr std::uintptr_t page = 2 * mib;
  void* const block = std::malloc(bytes);
  if (block == nullptr) return;
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(block) + page - 1) / page * page;
  madvise(reinterpret_cast<void*>(first), bytes - page, MADV_HUGEPAGE);
  std::free(block);
#endif
}

}  // namespace zeroplan
