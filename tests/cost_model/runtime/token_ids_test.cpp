// What a step reads is a thousandth of what it makes: no peak and no published figure shows it.
#include <algorithm>

#include "cost_model/answer/stage_memory.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

// Of the first of this name, on the only rank.
Bytes bytes_of(const Problem& p, std::string_view name) {
  const Evaluator evaluator(p);
  const StageProgram program = evaluator.stage_program(p, stages(p).front());
  std::vector<TensorSpec> all = program.resident;
  for (const ChunkProgram& chunk : program.chunks) {
    all.push_back(chunk.batch);
    for (const Run& run : chunk.runs) {
      const std::vector<TensorSpec>& tensors = run.block->block().tensors;
      all.insert(all.end(), tensors.begin(), tensors.end());
    }
  }
  const auto found = std::ranges::find(all, name, &TensorSpec::name);
  return found == all.end() ? Bytes{} : found->bytes;
}

}  // namespace

TEST_CASE("ids, labels and masks are those of a micro-batch's tokens") {
  struct Case {
    Runtime runtime;
    std::string_view name;
    std::int64_t bytes;  // of a token
  };
  using enum Runtime;
  const Case cases[] = {{megatron, "token ids", 8},
                        {megatron, "labels and loss mask", 12},
                        {nanotron, "token ids", 8},
                        {zeroplan, "token ids", 4},
                        {zeroplan, "targets", 4},
                        {fsdp2, "token ids and labels", 16},
                        {deepspeed, "token ids and labels", 16},
                        {ddp, "token ids and labels", 16}};
  for (const Case& c : cases) {
    CAPTURE(name_of(c.runtime), c.name);
    const Problem p = tests::problem(c.runtime, "llama3-8b", {.micro_batch = 2});
    CHECK(bytes_of(p, c.name) == Bytes{c.bytes * 2 * 4096});
  }
}
