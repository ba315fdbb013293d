// What does a program need at most, by arithmetic? Front door: fold_step.
#include "cost_model/program/fold.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>

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

const BlockBytes& bytes_of(const FoldedBlock& block) {
  return block.bytes;
}
const BlockBytes& bytes_of(const BlockBytes& block) {
  return block;
}

// Equal blocks that stand alike in their chunk.
template <class Of>
struct Section {
  const Of* block;
  std::int64_t count;
  Borrowed borrowed;

  void forward(Footprint& pass) const { pass = block->forward_with(borrowed); }
  void forward(PassBytes& pass) const { pass = bytes_of(*block).forward[borrowed.input ? 1 : 0]; }
  void backward(Footprint& pass, BackwardPart part) const {
    pass = block->backward_with(part, borrowed);
  }
  void backward(PassBytes& pass, BackwardPart) const {  // of whole passes alone
    pass = bytes_of(*block).backward[BlockBytes::index(borrowed)];
  }
};

// The runs of a chunk in forward order, with a block at an end apart where its tensor there is the
// schedule's: a received input, and the gradient of the output.
template <class AnyRuns>
auto sections(const ChunkProgram& chunk, const AnyRuns& runs) {
  using Of = std::remove_reference_t<decltype(*runs.front().block)>;
  boost::container::small_vector<Section<Of>, 8> list;
  list.reserve(runs.size() + 2);
  for (const auto& run : runs) {
    const bool first = &run == &runs.front() && chunk.receives;
    const bool last = &run == &runs.back();
    std::int64_t inside = run.count;
    if (first) {
      list.push_back({&*run.block, 1, {.input = true, .output_grad = last && inside == 1}});
      --inside;
    }
    const bool apart = last && inside > 0;
    if (inside - apart > 0) list.push_back({&*run.block, inside - apart, {}});
    if (apart) list.push_back({&*run.block, 1, {.output_grad = true}});
  }
  return list;
}

void free_output(Footprint& total, const FoldedBlock& block) {
  total.left += one(block.block().tensors[Block::output], -1);
}
template <class Of>
void free_output(PassBytes& total, const Of& block) {
  total.left -= bytes_of(block).output;
}

// What a chunk's forward pass begins with: the batch that it reads.
template <class Total>
Total batch_of(const ChunkProgram& chunk);
template <>
Footprint batch_of(const ChunkProgram& chunk) {
  const MemoryBreakdown held = one(chunk.batch, 1);
  return {held, {held, Phase::forward, chunk.batch.name}};
}
template <>
PassBytes batch_of(const ChunkProgram& chunk) {
  PassBytes total;
  total.left = total.peak = chunk.batch.bytes;
  return total;
}
void free_batch(Footprint& total, const ChunkProgram& chunk) {
  total.left += one(chunk.batch, -1);
}
void free_batch(PassBytes& total, const ChunkProgram& chunk) {
  total.left -= chunk.batch.bytes;
}

// The forward pass of a chunk: block after block, the last output freed where it is sent and not
// kept.
template <class Total, class Sections>
Total fold_forward(const ChunkProgram& chunk, const Sections& sections) {
  Total total = batch_of<Total>(chunk);
  Total pass;
  for (const auto& s : sections) {
    s.forward(pass);
    add_run(total, pass, s.count);
  }
  if (!chunk.keeps_batch) free_batch(total, chunk);
  if (chunk.sends && !chunk.keeps_output) free_output(total, *sections.back().block);
  return total;
}

// The backward pass of a chunk, from the last block to the first; a kept output goes at its end.
template <class Total, class Sections>
Total fold_backward(const ChunkProgram& chunk, const Sections& sections, BackwardPart part) {
  Total total;
  Total pass;
  const bool frees = chunk.keeps_batch && part != BackwardPart::weight_gradient;
  for (auto s = sections.rbegin(); s != sections.rend(); ++s) {
    const bool first = s + 1 == sections.rend();
    if (frees && chunk.drops_batch_before(first ? 0 : 1)) free_batch(total, chunk);
    s->backward(pass, part);
    add_run(total, pass, s->count);
  }
  if (frees && !chunk.drops_batch_before(0)) free_batch(total, chunk);
  const bool ends = part != BackwardPart::input_gradient;
  if (ends && chunk.sends && chunk.keeps_output) free_output(total, *sections.back().block);
  return total;
}

class FoldingSink {
 public:
  using Handle = Category;

  FoldingSink(const StageProgram& program, bool splits, std::int32_t last)
      : program_(program), splits_(splits), last_(last) {
    const ChunkProgram* before = nullptr;
    for (const ChunkProgram& chunk : program.chunks) {
      const bool alike = before != nullptr && *before == chunk;
      later_.push_back(alike ? later_.back() : footprints_of(chunk, chunk.runs));
      first_.push_back(alike                      ? first_.back()
                       : chunk.first_runs.empty() ? later_.back()
                                                  : footprints_of(chunk, chunk.first_runs));
      last_of_.push_back(chunk.last_runs.empty() ? later_.back()
                                                 : footprints_of(chunk, chunk.last_runs));
      std::vector<Footprints>& each = each_.emplace_back();
      for (const Runs& runs : chunk.each) each.push_back(footprints_of(chunk, runs));
      before = &chunk;
    }
  }

  void begin(const Pass&) {}

  Category allocate_border(std::string_view name, Category category) {
    live_[category] += program_.boundary;
    allocated_ += program_.boundary;
    if (allocated_ > highest_) rise({live_, phase_, name});
    return category;
  }
  void free_border(Category category) {
    live_[category] -= program_.boundary;
    allocated_ -= program_.boundary;
  }

  std::optional<Category> forward(std::int32_t chunk, std::int32_t micro_batch) {
    add(footprints(chunk, micro_batch).forward, Phase::forward);
    if (!hands_over(program_, chunk)) return std::nullopt;
    live_[Category::activations] += program_.boundary;  // beside what the footprint leaves
    allocated_ += program_.boundary;
    return Category::activations;
  }

  std::optional<Category> backward(std::int32_t chunk,
                                   std::int32_t micro_batch,
                                   BackwardPart part) {
    add(footprints(chunk, micro_batch).backward[static_cast<std::size_t>(part)], Phase::backward);
    if (part == BackwardPart::weight_gradient) return std::nullopt;
    if (!program_.chunks[static_cast<std::size_t>(chunk)].receives) return std::nullopt;
    return Category::temporaries;
  }

  void end_of_step(const Block&, Phase) {}  // stands apart: it depends on what is resident

  Footprint passes() const { return {live_, peak_}; }

 private:
  // A footprint with its allocated bytes.
  struct Summed {
    Summed() = default;
    Summed(const Footprint& f) : footprint(f), bytes(f) {}  // NOLINT: the same thing
    Footprint footprint;
    PassBytes bytes;
  };

  struct Footprints {
    Summed forward;
    std::array<Summed, 3> backward;  // by BackwardPart
  };

  Footprints footprints_of(const ChunkProgram& chunk, const Runs& runs) const {
    const auto list = sections(chunk, runs);
    Footprints made{fold_forward<Footprint>(chunk, list),
                    {fold_backward<Footprint>(chunk, list, BackwardPart::whole)}};
    if (!splits_) return made;
    for (const BackwardPart part : {BackwardPart::input_gradient, BackwardPart::weight_gradient}) {
      made.backward[static_cast<std::size_t>(part)] = fold_backward<Footprint>(chunk, list, part);
    }
    return made;
  }

  const Footprints& footprints(std::int32_t chunk, std::int32_t micro_batch) const {
    const std::vector<Footprints>& each = each_[static_cast<std::size_t>(chunk)];
    if (!each.empty()) return each[static_cast<std::size_t>(micro_batch)];
    const std::vector<Footprints>& all = micro_batch == 0       ? first_
                                         : micro_batch == last_ ? last_of_
                                                                : later_;
    return all[static_cast<std::size_t>(chunk)];
  }

  void add(const Summed& pass, Phase phase) {
    phase_ = phase;
    if (allocated_ + pass.bytes.peak > highest_) rise(above(live_, pass.footprint.peak));
    live_ += pass.footprint.left;
    allocated_ += pass.bytes.left;
  }

  void rise(const Moment& moment) {
    peak_ = moment;
    highest_ = moment.live.allocated();
  }

  const StageProgram& program_;
  bool splits_;                                      // some backward passes
  std::int32_t last_;                                // micro-batch
  std::vector<Footprints> first_, later_, last_of_;  // of each chunk
  std::vector<std::vector<Footprints>> each_;  // of each chunk and micro-batch, where these differ
  MemoryBreakdown live_;
  Bytes allocated_;  // of what is live
  Moment peak_;
  Bytes highest_;  // allocated at the peak
  Phase phase_ = Phase::forward;
};

}  // namespace

Footprint fold_passes(const StageProgram& program, const std::vector<Pass>& order) {
  const bool splits = std::any_of(order.begin(), order.end(), [](const Pass& pass) {
    return pass.kind == PassKind::input_gradient;
  });
  FoldingSink sink(program, splits, last_micro_batch(order));
  walk_step(program, order, sink);
  return sink.passes();
}

namespace {

template <class AnyRuns>
ChunkBytes bytes_of_passes(const ChunkProgram& chunk, const AnyRuns& runs) {
  const auto list = sections(chunk, runs);
  const auto forward = fold_forward<PassBytes>(chunk, list);
  const auto backward = fold_backward<PassBytes>(chunk, list, BackwardPart::whole);
  return {.forward_left = forward.left,
          .forward_peak = forward.peak,
          .backward_left = backward.left,
          .backward_peak = backward.peak};
}

}  // namespace

ChunkBytes chunk_bytes(const ChunkProgram& chunk) {
  return bytes_of_passes(chunk, chunk.runs);
}

ChunkBytes chunk_bytes(const ChunkProgram& chunk, const Runs& runs) {
  return bytes_of_passes(chunk, runs);
}

ChunkBytes chunk_bytes(const ChunkProgram& chunk, const RunsOfBytes& runs) {
  return bytes_of_passes(chunk, runs);
}

MemoryBreakdown sum(const std::vector<TensorSpec>& tensors) {
  MemoryBreakdown total;
  for (const TensorSpec& spec : tensors) total[spec.category] += spec.bytes;
  return total;
}

Moment highest_moment(const MemoryBreakdown& resident,
                      const Footprint& passes,
                      const Footprint& step,
                      const Footprint& checkpoint) {
  Moment peak{.live = resident};
  raise(peak, above(resident, passes.peak));
  MemoryBreakdown live = resident + passes.left;
  raise(peak, above(live, step.peak));
  live += step.left;
  raise(peak, above(live, checkpoint.peak));
  return peak;
}

Bytes highest_bytes(Bytes resident,
                    const PassBytes& passes,
                    const PassBytes& step,
                    const PassBytes& checkpoint) {
  PassBytes all = passes;
  add_run(all, step, 1);
  add_run(all, checkpoint, 1);
  return resident + all.peak;
}

Moment fold_step(const StageProgram& program, const std::vector<Pass>& order) {
  const Block& step = program.step;
  const Block& checkpoint = program.checkpoint;
  return highest_moment(sum(program.resident), fold_passes(program, order),
                        fold(step, step.forward, Phase::optimizer_step),
                        fold(checkpoint, checkpoint.forward, Phase::checkpoint));
}

std::vector<Call> fold_calls(const StageProgram& program, std::int64_t forward_passes) {
  std::vector<Call> sum;
  const auto add_runs = [&](const Runs& runs, std::int64_t times) {
    for (const Run& run : runs) {
      for (const Call& call : run.block->block().calls) add(sum, call, times * run.count);
    }
  };
  for (const ChunkProgram& chunk : program.chunks) {
    for (const Runs& runs : chunk.each) add_runs(runs, 1);
    if (!chunk.each.empty()) continue;
    add_runs(chunk.runs_of(0, 0), 1);
    const bool ends = !chunk.last_runs.empty() && forward_passes > 1;
    if (ends) add_runs(chunk.last_runs, 1);
    add_runs(chunk.runs, forward_passes - (ends ? 2 : 1));
  }
  for (const Call& call : program.step.calls) add(sum, of_step(call));
  return sum;
}

}  // namespace zeroplan
