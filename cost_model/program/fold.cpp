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

// Equal blocks that stand alike in their chunk.
struct Section {
  const FoldedBlock& block;
  std::int64_t count;
  Borrowed borrowed;
};

// The runs of a chunk in forward order, with a block at an end apart where its tensor there is the
// schedule's.
std::vector<Section> sections(const std::vector<Run>& runs, Borrowed at_ends) {
  std::vector<Section> list;
  for (const Run& run : runs) {
    const bool first = &run == &runs.front() && at_ends.input;
    const bool last = &run == &runs.back() && at_ends.output_grad;
    std::int64_t inside = run.count;
    if (first) {
      list.push_back({*run.block, 1, {.input = true, .output_grad = last && inside == 1}});
      --inside;
    }
    const bool apart = last && inside > 0;
    if (inside - apart > 0) list.push_back({*run.block, inside - apart, {}});
    if (apart) list.push_back({*run.block, 1, {.output_grad = true}});
  }
  return list;
}

MemoryBreakdown last_output(const std::vector<Run>& runs) {
  return one(runs.back().block->block.tensors[Block::output], 1);
}

// The forward pass of a chunk: block after block, the last output freed where it is sent and not
// kept.
Footprint fold_forward(const ChunkProgram& chunk, const std::vector<Run>& runs) {
  Footprint total;
  for (const Section& s : sections(runs, {.input = chunk.receives})) {
    const Block& block = s.block.block;
    add_run(total,
            s.borrowed.input ? fold(block, block.forward, forward_phase(s.block), s.borrowed)
                             : s.block.forward,
            s.count);
  }
  if (chunk.sends && !chunk.keeps_output) total.left += -1 * last_output(runs);
  return total;
}

// The backward pass, from the last block to the first; a kept output goes at its end.
Footprint fold_backward(const ChunkProgram& chunk, const std::vector<Run>& runs) {
  Footprint total;
  const std::vector<Section> list = sections(runs, {.input = chunk.receives, .output_grad = true});
  for (auto s = list.rbegin(); s != list.rend(); ++s) {
    const Block& block = s->block.block;
    const bool border = s->borrowed.input || s->borrowed.output_grad;
    add_run(total,
            border ? fold(block, block.backward, backward_phase(s->block), s->borrowed)
                   : s->block.backward,
            s->count);
  }
  if (chunk.sends && chunk.keeps_output) total.left += -1 * last_output(runs);
  return total;
}

class FoldingSink {
 public:
  using Handle = Category;

  explicit FoldingSink(const StageProgram& program) : program_(program) {
    for (const TensorSpec& spec : program.resident) live_ += one(spec, 1);
    peak_.live = live_;
    for (const ChunkProgram& chunk : program.chunks) {
      Footprints later{fold_forward(chunk, chunk.runs), fold_backward(chunk, chunk.runs)};
      Footprints first = later;
      if (!chunk.first_runs.empty()) {
        first = {fold_forward(chunk, chunk.first_runs), fold_backward(chunk, chunk.first_runs)};
      }
      first_.push_back(std::move(first));
      later_.push_back(std::move(later));
    }
  }

  void begin(const Pass&) {}

  Category allocate_border(std::string_view name, Category category) {
    live_[category] += program_.boundary;
    raise(peak_, {live_, phase_, name});
    return category;
  }
  void free_border(Category category) { live_[category] -= program_.boundary; }

  void forward(std::int32_t chunk, std::int32_t micro_batch) {
    add(footprints(chunk, micro_batch).forward, Phase::forward);
  }

  std::optional<Category> backward(std::int32_t chunk, std::int32_t micro_batch) {
    add(footprints(chunk, micro_batch).backward, Phase::backward);
    if (!program_.chunks[static_cast<std::size_t>(chunk)].receives) return std::nullopt;
    return Category::temporaries;
  }

  void optimizer_step() {
    const Block& step = program_.step;
    add(fold(step, step.forward, Phase::optimizer_step), Phase::optimizer_step);
  }

  const Moment& peak() const { return peak_; }

 private:
  struct Footprints {
    Footprint forward, backward;
  };

  const Footprints& footprints(std::int32_t chunk, std::int32_t micro_batch) const {
    return (micro_batch == 0 ? first_ : later_)[static_cast<std::size_t>(chunk)];
  }

  void add(const Footprint& footprint, Phase phase) {
    phase_ = phase;
    raise(peak_, above(live_, footprint.peak));
    live_ += footprint.left;
  }

  const StageProgram& program_;
  std::vector<Footprints> first_, later_;  // of each chunk
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
