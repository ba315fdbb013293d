// What does a program need at most, by arithmetic? Front door: fold_step.
#include "cost_model/program/fold.hpp"

#include "cost_model/program/walk.hpp"

namespace zeroplan {
namespace {

// `peak` above a start, seen from where that start is `base` above another.
Moment above(const MemoryBreakdown& base, const Moment& peak) {
  return {base + peak.live, peak.phase, peak.tensor};
}

MemoryBreakdown one(const TensorSpec& spec, std::int64_t sign) {
  MemoryBreakdown m;
  m[spec.category] = sign * spec.bytes;
  return m;
}

// A pass over a run of equal blocks: the live bytes move by the same amount each time, so the
// highest moment is in the first or the last.
void add_run(Footprint& total, const Footprint& block, std::int64_t count) {
  raise(total.peak, above(total.left, block.peak));
  raise(total.peak, above(total.left + (count - 1) * block.left, block.peak));
  total.left += count * block.left;
}

// The forward pass of a chunk: block after block, the last output freed where it is sent.
Footprint fold_forward(const ChunkProgram& chunk) {
  Footprint total;
  for (const Run& run : chunk.runs) add_run(total, run.block->forward, run.count);
  if (chunk.sends) total.left += one(chunk.runs.back().block->block.tensors[Block::output], -1);
  return total;
}

// The backward pass: a block begins when the next one is done with its output, which is then freed.
Footprint fold_backward(const ChunkProgram& chunk) {
  Footprint total;
  for (auto run = chunk.runs.rbegin(); run != chunk.runs.rend(); ++run) {
    const FoldedBlock& folded = *run->block;
    std::int64_t count = run->count;
    if (run == chunk.runs.rbegin()) {
      // The last block of a chunk: its output is gone or the loss, its gradient the schedule's.
      add_run(total, folded.backward_keeping_output_grad, 1);
      --count;
    }
    if (count == 0) continue;
    Footprint each = folded.backward;
    const MemoryBreakdown freed = one(folded.block.tensors[Block::output], -1);
    each.left += freed;
    each.peak.live += freed;
    add_run(total, each, count);
  }
  return total;
}

class FoldingSink {
 public:
  using Handle = Category;

  explicit FoldingSink(const StageProgram& program) : program_(program) {
    for (const TensorSpec& spec : program.resident) live_ += one(spec, 1);
    peak_.live = live_;
    for (const ChunkProgram& chunk : program.chunks) {
      forward_.push_back(fold_forward(chunk));
      backward_.push_back(fold_backward(chunk));
    }
  }

  void begin(const Pass&) {}

  Category allocate_border(std::string_view name, Category category) {
    live_[category] += program_.boundary;
    raise(peak_, {live_, phase_, name});
    return category;
  }
  void free_border(Category category) { live_[category] -= program_.boundary; }

  void forward(std::int32_t chunk, std::int32_t) {
    add(forward_[static_cast<std::size_t>(chunk)], Phase::forward);
  }

  std::optional<Category> backward(std::int32_t chunk, std::int32_t) {
    add(backward_[static_cast<std::size_t>(chunk)], Phase::backward);
    if (!program_.chunks[static_cast<std::size_t>(chunk)].receives) return std::nullopt;
    return Category::temporaries;
  }

  void optimizer_step() {
    for (const TensorSpec& spec : program_.step) {
      live_ += one(spec, 1);
      raise(peak_, {live_, Phase::optimizer_step, spec.name});
    }
    for (const TensorSpec& spec : program_.step) live_ += one(spec, -1);
  }

  const Moment& peak() const { return peak_; }
  const MemoryBreakdown& live() const { return live_; }

 private:
  void add(const Footprint& footprint, Phase phase) {
    phase_ = phase;
    raise(peak_, above(live_, footprint.peak));
    live_ += footprint.left;
  }

  const StageProgram& program_;
  std::vector<Footprint> forward_, backward_;
  MemoryBreakdown live_;
  Moment peak_;
  Phase phase_ = Phase::forward;
};

}  // namespace

Moment fold_step(const StageProgram& program, const std::vector<Pass>& order) {
  FoldingSink sink(program);
  walk_step(program, order, sink);
  return sink.peak();
}

}  // namespace zeroplan
