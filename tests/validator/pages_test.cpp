// The closing equation of a GPU, replayed without one: every tensor of a step at the shapes that
// script/gpu runs, laid by a stand-in for the driver into pages of 2 MiB.
#include "validator/cuda/pages.hpp"

#include <map>

#include "tests/catch.hpp"
#include "tests/validator/tiny.hpp"
#include "validator/cuda/closing.hpp"
#include "validator/device/dry_device.hpp"
#include "validator/ranks.hpp"
#include "validator/shrink.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;

namespace {

// Blocks from half a page on have pages of their own; smaller ones are laid side by side, into the
// first page with room, which stays until all in it are gone.
class PagedDriver final : public DryDevice {
 public:
  static constexpr std::int64_t page = 2 * mebi;

  void* allocate(std::int64_t asked) override {
    const std::int64_t bytes = round_up(asked, Ledger::alignment);
    auto* memory = reinterpret_cast<void*>(static_cast<std::uintptr_t>(++blocks_));
    taken_[memory] = {bytes, lay(bytes)};
    tensors_ += bytes;
    pages_.take(Bytes{bytes});
    if (tensors_ >= closing.tensors.count()) {
      closing.tensors = Bytes{tensors_};
      closing.used = Bytes{own_ + static_cast<std::int64_t>(shared_.size()) * page};
      closing.pages = pages_.beyond();
    }
    return memory;
  }
  void release(void* memory) noexcept override {
    const auto found = taken_.find(memory);
    if (found == taken_.end()) return;
    const auto [bytes, in] = found->second;
    tensors_ -= bytes;
    pages_.give(Bytes{bytes});
    if (in == alone) {
      own_ -= round_up(bytes, page);
    } else if (--shared_[in].blocks == 0) {
      shared_.erase(in);
    }
    taken_.erase(found);
  }

  Closing closing{};

 private:
  static constexpr std::int64_t alone = -1;
  struct Shared {
    std::int64_t filled = 0, blocks = 0;
  };
  struct Block {
    std::int64_t bytes = 0, in = alone;
  };

  std::int64_t lay(std::int64_t bytes) {
    if (2 * bytes >= page) {
      own_ += round_up(bytes, page);
      return alone;
    }
    for (auto& [number, shared] : shared_) {
      if (shared.filled + bytes > page) continue;
      shared.filled += bytes;
      ++shared.blocks;
      return number;
    }
    shared_[++pages_made_] = {bytes, 1};
    return pages_made_;
  }

  std::map<void*, Block> taken_;
  std::map<std::int64_t, Shared> shared_;
  std::int64_t blocks_ = 0, pages_made_ = 0, own_ = 0, tensors_ = 0;
  Pages pages_{Bytes{page}, Bytes{page / 2}};
};

Closing replayed(const Problem& p, std::int64_t stage) {
  PagedDriver driver;
  const engine::Place place{.tp = 0, .dp = 0, .pp = stage};
  AbsentGroups absent(p, place);
  RunOptions options;
  options.steps = 2;
  run_steps(p, place, driver, absent, options);
  return driver.closing;
}

// Of ranks that share a GPU, each as high as the first of its stage.
Closing all_ranks(const Problem& p) {
  Closing sum{};
  for (std::int64_t stage = 0; stage < p.layout.pp; ++stage) {
    const Closing one = replayed(p, stage);
    const std::int64_t ranks = p.layout.tp * p.layout.dp;
    sum.used += ranks * one.used;
    sum.tensors += ranks * one.tensors;
    sum.pages += ranks * one.pages;
  }
  return sum;
}

Problem plan(std::string_view model, const Layout& layout, std::int64_t batch) {
  Problem p = tests::problem(Runtime::zeroplan, model, layout);
  p.training.sequence_length = 4096;
  p.training.global_batch = batch;
  return for_engine(p).problem;
}

}  // namespace

TEST_CASE("with its pages booked, a GPU's equation closes for what script/gpu runs") {
  constexpr double about_a_second = 2e13;
  std::vector<Closing> closings;
  for (const ZeroStage zero :
       {ZeroStage::none, ZeroStage::optimizer, ZeroStage::gradients, ZeroStage::parameters}) {
    const Room room{.ranks = 4, .memory = 60_GiB, .step_flops = about_a_second};
    closings.push_back(
        all_ranks(shrunk(plan("llama3-8b", {.dp = 4, .zero = zero}, 1024), room).problem));
  }
  const Room four{.ranks = 4, .memory = 60_GiB, .step_flops = about_a_second};
  const Layout tied{
      .dp = 1, .tp = 2, .pp = 2, .zero = ZeroStage::optimizer, .sequence_parallel = true};
  closings.push_back(all_ranks(shrunk(plan("llama3.2-1b", tied, 1024), four).problem));
  const Room room{.ranks = 8, .memory = 60_GiB, .step_flops = about_a_second};
  Layout both{.dp = 2, .tp = 2, .pp = 2, .zero = ZeroStage::optimizer, .sequence_parallel = true};
  closings.push_back(all_ranks(shrunk(plan("llama3-8b", both, 1024), room).problem));
  both.zero = ZeroStage::parameters;
  both.sequence_parallel = false;
  both.recompute = Recompute::full;
  Problem settings = plan("llama3-8b", both, 1024);
  settings.runtime.zeroplan = {.prefetch = true,
                               .partition_activations = true,
                               .reduce_bucket_size = 1'000'000,
                               .contiguous_memory_optimization = true};
  closings.push_back(all_ranks(shrunk(settings, room).problem));
  const Layout large{
      .dp = 4, .tp = 8, .pp = 4, .zero = ZeroStage::optimizer, .sequence_parallel = true};
  for (const std::int64_t stage : {0, 3}) {
    closings.push_back(replayed(plan("llama3-70b", large, 32), stage));
  }
  std::size_t open = 0;
  for (Closing closing : closings) {
    CAPTURE(closing.used.count(), closing.unaccounted().count(), closing.allowed().count());
    REQUIRE(closing.closes());
    closing.pages = {};
    if (!closing.closes()) ++open;
  }
  REQUIRE(open > 0);  // or this would show nothing
}

TEST_CASE("pages hold nothing beyond tensors that fill them, and nothing where none is known") {
  Pages pages(2_MiB);
  pages.take(4_MiB);
  REQUIRE(pages.beyond() == Bytes{});
  pages.take(2_MiB + Bytes{512});
  REQUIRE(pages.beyond() == 2_MiB - Bytes{512});
  pages.give(2_MiB + Bytes{512});
  pages.take(Bytes{512});
  pages.take(Bytes{512});
  REQUIRE(pages.beyond() == 2_MiB - Bytes{1024});
  Pages halves(2_MiB, 1_MiB);
  halves.take(1_MiB);
  halves.take(1_MiB);
  REQUIRE(halves.beyond() == 2_MiB);
  halves.take(Bytes{mebi / 2});
  REQUIRE(halves.beyond() == 3_MiB + Bytes{mebi / 2});
  Pages unknown;
  unknown.take(3_MiB);
  REQUIRE(unknown.beyond() == Bytes{});
}
