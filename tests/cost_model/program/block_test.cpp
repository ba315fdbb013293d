#include "cost_model/program/block.hpp"

#include "tests/catch.hpp"

using namespace zeroplan;

TEST_CASE("what a stretch of a pass saved is known without a list of it") {
  BlockWriter w(Bytes{512}, Bytes{512});
  w.save("before", Bytes{512});
  const std::size_t start = w.position();
  const Tensor kept = w.save("kept", Bytes{1024});
  const Tensor freed = w.save("freed", Bytes{1024});
  const Tensor working = w.temporary("working copy", Bytes{1024});
  w.free(freed);
  w.call("tp", Collective::all_reduce, Bytes{1024});
  w.allocate(Block::output);
  REQUIRE(w.saved_since(start) == TensorList{kept});

  w.free(w.saved_since(start));
  w.free(working);
  REQUIRE(w.saved_since(start).empty());
}

TEST_CASE("a call says which pass waits for it; nothing is sent in no bytes") {
  BlockWriter w;
  w.call("tp", Collective::all_reduce, Bytes{});
  w.call("tp", Collective::all_gather, Bytes{512});
  w.begin_backward();
  w.call("tp", Collective::reduce_scatter, Bytes{512}, Beside::products);
  const Block block = w.finish();
  REQUIRE(block.calls.size() == 2);
  CHECK(block.calls[0].during == During::forward);
  CHECK(block.calls[0].beside == Beside::nothing);
  CHECK(block.calls[1].during == During::backward);
  CHECK(block.calls[1].beside == Beside::products);
}

TEST_CASE("gradients of weights go when the next tensor is there that is none, or at the end") {
  BlockWriter w;
  w.begin_backward();
  const Tensor weight = w.allocate("gradient of a weight", Bytes{512}, Category::gradients);
  w.free_with_next(weight);
  const Tensor bias = w.allocate("gradient of its bias", Bytes{512}, Category::gradients);
  w.free_with_next(bias);
  w.run(Module::q_proj);
  const Tensor input = w.temporary("gradient of the input", Bytes{512});
  const Tensor last = w.allocate("gradient of a last weight", Bytes{512}, Category::gradients);
  w.free_with_next(last);
  const Block block = w.finish();
  std::vector<std::pair<Tensor, bool>> order;  // and whether it is freed
  for (const Event& event : block.backward) {
    if (event.is_of_tensor()) order.emplace_back(event.index, event.frees());
    if (event.frees()) CHECK(event.of_weights);
  }
  const std::vector<std::pair<Tensor, bool>> expected{
      {weight, false}, {bias, false}, {input, false}, {weight, true},
      {bias, true},    {last, false}, {last, true}};
  CHECK(order == expected);
}

TEST_CASE("a block in the storage of another one is the block that it would be in its own") {
  const auto written = [](int tensors) {
    BlockWriter w(Bytes{512}, Bytes{1024});
    for (int i = 0; i < tensors; ++i) w.free(w.save("kept", Bytes{512 * (i + 1)}));
    w.call("tp", Collective::all_reduce, Bytes{512 * tensors});
    w.begin_backward();
    w.allocate(Block::input_grad);
    return w.finish();
  };
  const Block own = written(3);
  reuse(written(9));
  const Block again = written(3);
  CHECK(again.tensors == own.tensors);
  CHECK(again.forward.size() == own.forward.size());
  CHECK(again.backward.size() == own.backward.size());
  REQUIRE(again.calls.size() == 1);
  CHECK(again.calls.front().is_like(own.calls.front()));
  CHECK(again.tensors.capacity() > own.tensors.capacity());
}
