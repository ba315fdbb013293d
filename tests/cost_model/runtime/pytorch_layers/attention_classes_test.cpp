// Transformers' classes attend by what they have.
#include "cost_model/runtime/pytorch_layers/attention_classes.hpp"

#include <vector>

#include "planner/request.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

const std::vector<Override> package{{"attn_implementation", "flash_attention_2"}};

Request asked(Runtime runtime, std::string_view model, const std::vector<Override>& set = {}) {
  Request r{.model = find_model(model).spec,
            .cluster = cluster_of("H100-80GB", 8),
            .runtime = load_runtime(runtime, set)};
  r.sequence_length = 2048;
  return r;
}

AttentionKernel taken(const Request& r) {
  return complete(r, {}).training.attention;
}

}  // namespace

TEST_CASE("a class without SDPA attends eagerly, where Transformers runs the layers") {
  using enum AttentionKernel;
  for (const std::string_view model : {"gpt-oss-20b", "gemma2-2b", "bloom-560m"}) {
    CAPTURE(model);
    CHECK(taken(asked(Runtime::ddp, model)) == unfused);
    CHECK(taken(asked(Runtime::deepspeed, model)) == unfused);
    CHECK(taken(asked(Runtime::fsdp2, model, {{"layers", "huggingface"}})) == unfused);
    CHECK(taken(asked(Runtime::fsdp2, model)) == flash);
    CHECK(taken(asked(Runtime::megatron, model)) == flash);
  }
  CHECK(taken(asked(Runtime::ddp, "gpt-oss-20b", package)) == flash);
  CHECK(taken(asked(Runtime::ddp, "llama3-8b")) == flash);
  CHECK(taken(asked(Runtime::ddp, "llama4-scout")) == flash);
}

TEST_CASE("what is asked for is answered, and said to be what no class has") {
  Request r = asked(Runtime::ddp, "gemma2-2b");
  CHECK_FALSE(lacks_sdpa(complete(r, {})));
  r.attention = AttentionKernel::flash;
  const Problem p = complete(r, {});
  CHECK(p.training.attention == AttentionKernel::flash);
  CHECK(lacks_sdpa(p));
  r.runtime = load_runtime(Runtime::ddp, package);
  CHECK_FALSE(lacks_sdpa(complete(r, {})));
}

TEST_CASE("flash-attn is refused to the classes that have it not, and to no others") {
  const auto refused = [](std::string_view model) {
    return legality::flash_attention_package(complete(asked(Runtime::ddp, model, package), {}));
  };
  for (const std::string_view model : {"gpt-oss-20b", "gemma2-2b", "llama3-8b"}) {
    CAPTURE(model);
    CHECK_FALSE(refused(model));
  }
  CHECK(
      refused("llama4-scout") ==
      "Transformers has no flash_attention_2 for Llama 4: leave attn_implementation to its class");
  CHECK(refused("bloom-560m"));
}
