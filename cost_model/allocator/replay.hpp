#pragma once
// A played step through the caching allocator: what a run reserves, and where each tensor lies.

#include <limits>
#include <map>
#include <vector>

#include "cost_model/allocator/caching_allocator.hpp"
#include "cost_model/program/play.hpp"

namespace zeroplan {

/// The highest moment of a phase.
struct PhasePeak {
  Phase phase = Phase::init;
  Bytes allocated;          // sum of live blocks, as torch.cuda.max_memory_allocated counts
  Bytes reserved;           // torch.cuda.max_memory_reserved, of all phases up to this
  std::string_view tensor;  // the allocation that reached it; empty: none rose above the start
};

struct Replay {
  std::vector<PhasePeak> phases;  // in the order in which they come
  bool out_of_memory = false;

  Bytes peak_allocated() const;
  Bytes peak_reserved() const;
};

/// The phases of a run from its start and, last, of loading a checkpoint in one that resumes.
std::vector<PhasePeak> phases_of(const std::vector<PhasePeak>& fresh, const Replay& resumed);

/// A run resumed from a checkpoint has its moments before the first step, else that step makes
/// them. Its phases are init, resume, first step, and those of a steady step.
enum class Start { fresh, resumed };

inline constexpr Bytes unlimited{std::numeric_limits<std::int64_t>::max()};

/// Construction, a first step, and a steady step, and further steps reserve nothing more. `startup`
/// stands for `program.resident`. A run that reserves more than `most` ends there, out of memory.
Replay replay(const StageProgram& program,
              const Startup& startup,
              const std::vector<Pass>& order,
              const AllocatorConfig& config,
              Start start = Start::fresh,
              Bytes most = unlimited);

/// An event of the steady step, where the allocator put it.
struct Placed {
  Played event;
  std::int64_t address;
  Bytes size;  // of the block
};

struct PlacedStep {
  Replay totals;
  std::vector<Placed> events;                      // of the steady step
  std::vector<SegmentView> segments;               // after the steady step
  std::map<std::int64_t, std::string_view> names;  // of the tensor last placed at an address
};

/// The replay of a fresh run, with every address of its steady step.
PlacedStep placed_step(const StageProgram& program,
                       const Startup& startup,
                       const std::vector<Pass>& order,
                       const AllocatorConfig& config);

}  // namespace zeroplan
