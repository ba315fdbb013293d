#pragma once
// What is remembered of one layout: each piece is made when it is first asked for, and found again
// by every layout that shares it.

#include "cost_model/remembered.hpp"

namespace zeroplan {

/// Of one problem, which must outlive it. Its Exchange may change meanwhile, nothing else may.
/// Valid until Remembered::trim, and until a few layouts that differ in more were recalled.
class Recalled {
 public:
  const Problem& problem() const { return problem_; }
  const Remembered& remembered() const { return remembered_; }

  const std::vector<Stage>& stages() const { return pieces_.list().stages; }
  /// The first of the stage's run of alike neighbours.
  std::size_t first_alike(std::size_t stage) const { return pieces_.list().first_alike(stage); }
  /// The first of each run.
  const std::vector<std::size_t>& firsts() const { return pieces_.list().firsts; }
  std::int64_t length_of_run(std::size_t run) const {
    const std::size_t next = run + 1 < firsts().size() ? firsts()[run + 1] : stages().size();
    return static_cast<std::int64_t>(next - firsts()[run]);
  }

  /// The folded passes of a stage on Megatron-Core: the same however states are exchanged.
  const PassesOfStage& megatron_passes(std::size_t stage) const;

  /// The bytes of their highest moment, by how many of which chunks the schedule keeps alive
  /// together: the same, many times as fast.
  Bytes megatron_peak(std::size_t stage) const;

  /// The bytes of Megatron-Core's buffers, which stay besides the model states.
  Bytes megatron_buffer_bytes(std::size_t stage) const;

  /// What the passes take, the same for all those layouts too.
  const StagePasses& passes(std::size_t stage) const;

  /// The stage's states, and how they are exchanged and updated.
  const StateShare& share(std::size_t stage) const { return own_share(stage); }
  const StageUpdate& update(std::size_t stage) const;
  const UpdateLoads& update_loads(std::size_t stage) const;

  /// When the last pass of each run of pipeline ranks ends. `with_update`: the passes of each run;
  /// empty where they are just those of passes(). Valid until the next call.
  const std::vector<double>& finished(const PassesOfRanks& with_update) const;

 private:
  friend class Remembered;
  Recalled(const Problem& problem, const Remembered& remembered, SharedPieces& pieces)
      : problem_(problem), remembered_(remembered), pieces_(pieces), shared_(*pieces.of_stages) {}

  StateShare& own_share(std::size_t stage) const;
  const PassProfile& profile(std::size_t stage) const;
  const ChunkBytes& chunk_bytes(std::size_t kind) const;
  const ChunkTime& chunk_time(std::size_t kind) const;
  Bytes boundary() const;
  double message() const;

  const Problem& problem_;
  const Remembered& remembered_;
  SharedPieces& pieces_;
  SharedStages& shared_;
};

inline Recalled Remembered::of(const Problem& problem) const {
  return {problem, *this, pieces_.of(problem)};
}

}  // namespace zeroplan
