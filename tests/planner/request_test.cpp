#include "planner/request.hpp"

#include <algorithm>
#include <variant>

#include "planner/fit.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Request request_of(std::string_view model, const std::vector<Override>& settings) {
  Request r{.model = find_model(model).spec,
            .cluster = cluster_of("H100-80GB", 128),
            .runtime = load_runtime(Runtime::megatron, settings)};
  for (const auto& [key, value] : settings) r.given_settings.push_back(key);
  return r;
}

}  // namespace

TEST_CASE("the ends of the model count as layers where that alone divides them") {
  Request r = request_of("llama3.1-405b", {});  // 126 layers
  r.vpp = 8;
  const Problem p = complete(r, {.pp = 16});
  CHECK(p.runtime.megatron.account_for_embedding_in_pipeline_split);
  CHECK(p.runtime.megatron.account_for_loss_in_pipeline_split);
  CHECK_FALSE(first_violation(p));
}

TEST_CASE(
    "where nothing divides the layers, the stages between the ends are as full as they can be") {
  Request r = request_of("llama3.1-405b", {});
  r.model.layers = 11;
  const MegatronSettings set = complete(r, {.pp = 5}).runtime.megatron;
  CHECK(set.decoder_first_pipeline_num_layers == 1);  // 1, 3, 3, 3, 1
  CHECK(set.decoder_last_pipeline_num_layers == 1);
}

TEST_CASE("a split into stages that is given stays, even where it is off") {
  Request r = request_of("llama3.1-405b", {{"account_for_loss_in_pipeline_split", "false"}});
  const Problem p = complete(r, {.pp = 16});
  CHECK_FALSE(p.runtime.megatron.account_for_embedding_in_pipeline_split);
  CHECK_FALSE(p.runtime.megatron.account_for_loss_in_pipeline_split);
  CHECK(first_violation(p)->rule == "M-split");
}

TEST_CASE("a layout of the pipeline says how many chunks a rank has") {
  const Request r =
      request_of("llama3-8b", {{"pipeline_model_parallel_layout", "Et*3|(t*4|)*6t*5L"}});
  const Problem p = complete(r, {.pp = 4});
  CHECK(p.layout.vpp == 2);
  CHECK(p.layout.schedule == Schedule::interleaved);
  CHECK_FALSE(first_violation(p));
}

TEST_CASE("a loss kernel that Megatron-LM came to refuse is said to need an older one") {
  const auto said = [](std::string_view kernel) {
    const Request r = request_of("llama3-8b", {{"cross_entropy_loss_fusion", "true"},
                                               {"cross_entropy_fusion_impl", std::string(kernel)}});
    std::string all;
    for (const std::string& line : assumptions(r, complete(r, {}))) all += line + '\n';
    return all;
  };
  CHECK_THAT(said("te"), ContainsSubstring("since then it refuses cross_entropy_fusion_impl=te"));
  CHECK_THAT(said("native"), !ContainsSubstring("refuses"));
}

TEST_CASE("stages that a given list of layers does not make are refused, two of them too") {
  Request r = request_of("llama3-8b", {{"pipeline_model_parallel_layout", "Et*10|t*10|t*12L"}});
  r.pp = 2;
  CHECK_FALSE(has_stages(complete(r, {.pp = 2})));
  REQUIRE(std::holds_alternative<Refusal>(fit(r)));
}

TEST_CASE("an answer says which micro-batch it took, and how a module would be trained") {
  Request r = request_of("deepseek-v3", {});
  r.vpp = 2;
  r.pp = 2;
  std::string all;
  for (const std::string& line : assumptions(r, complete(r, {.pp = 2}))) all += line + '\n';
  CHECK_THAT(all, ContainsSubstring("micro-batch 1 (--micro-batch)"));
  CHECK_THAT(all, ContainsSubstring("is not trained (--set mtp_num_layers=1)"));
}

TEST_CASE("a degree that is given is all that is tried of it, and of no other") {
  Request r = request_of("mixtral-8x7b", {});
  const LayoutSpace open = layout_space(r);
  using Degree = std::optional<std::int64_t> Request::*;
  using Tried = std::vector<std::int64_t> LayoutSpace::*;
  const std::pair<Degree, Tried> degrees[] = {{&Request::tp, &LayoutSpace::tp},
                                              {&Request::pp, &LayoutSpace::pp},
                                              {&Request::cp, &LayoutSpace::cp},
                                              {&Request::ep, &LayoutSpace::ep}};
  for (const auto& [given, tried] : degrees) {
    Request one = r;
    one.*given = 2;
    const LayoutSpace space = layout_space(one);
    for (const auto& [other, all] : degrees) {
      CHECK(space.*all == (other == given ? std::vector<std::int64_t>{2} : open.*all));
    }
  }
  r.etp = 1;
  CHECK(layout_space(r).ep == open.ep);
  CHECK(layout_space(r).whole_experts == std::vector<bool>{true});
}

TEST_CASE("an answer says where Transformers' code costs what other kernels would not") {
  const auto said = [](Runtime runtime, std::string_view model, std::int64_t tokens,
                       const std::vector<Override>& settings = {}) {
    Request r{.model = find_model(model).spec,
              .cluster = cluster_of("H100-80GB", 8),
              .runtime = load_runtime(runtime, settings)};
    r.sequence_length = tokens;
    std::string all;
    for (const std::string& line : assumptions(r, complete(r, {}))) all += line + '\n';
    return all;
  };
  CHECK_THAT(said(Runtime::ddp, "gemma3-1b", 2048),
             ContainsSubstring("SDPA takes windows of 512 keys as masks, 0.01 GiB"));
  CHECK_THAT(said(Runtime::ddp, "gemma3-1b", 256), !ContainsSubstring("SDPA"));
  CHECK_THAT(said(Runtime::megatron, "gemma3-1b", 2048), !ContainsSubstring("SDPA"));
  const std::vector<Override> package{{"attn_implementation", "flash_attention_2"}};
  CHECK_THAT(said(Runtime::ddp, "gemma3-1b", 2048, package), !ContainsSubstring("SDPA"));
  CHECK_THAT(said(Runtime::ddp, "gemma2-2b", 2048), ContainsSubstring("unfused attention"));
  CHECK_THAT(said(Runtime::fsdp2, "gemma2-2b", 2048), !ContainsSubstring("SDPA"));
  CHECK_THAT(said(Runtime::ddp, "llama4-scout", 2048), ContainsSubstring("works on all tokens"));
  const auto of_norms = ContainsSubstring("norms stand before attention and MLP");
  CHECK_THAT(said(Runtime::megatron, "olmo2-7b", 2048), of_norms);
  CHECK_THAT(said(Runtime::ddp, "olmo2-7b", 2048), !of_norms);
  CHECK_THAT(said(Runtime::megatron, "llama3-8b", 2048), !of_norms);
  CHECK_THAT(said(Runtime::ddp, "mixtral-8x7b", 2048), !ContainsSubstring("works on all tokens"));
  CHECK_THAT(said(Runtime::ddp, "mixtral-8x7b", 2048), ContainsSubstring("multiply in fp32"));
  CHECK_THAT(said(Runtime::ddp, "llama3-8b", 2048), !ContainsSubstring("multiply in fp32"));
  CHECK_THAT(said(Runtime::ddp, "llama4-scout", 2048), !ContainsSubstring("multiply in fp32"));
  CHECK_THAT(said(Runtime::deepspeed, "mixtral-8x7b", 2048), !ContainsSubstring("in fp32"));
  const auto of_kernels = ContainsSubstring("timed by what they move: no run was measured");
  CHECK_THAT(said(Runtime::deepspeed, "qwen3.5-9b", 2048), of_kernels);
  CHECK_THAT(said(Runtime::deepspeed, "llama3-8b", 2048), !of_kernels);
}

// core/transformer/dot_product_attention.py has no other; legacy models had, for those who ask.
TEST_CASE("Megatron's own layers store their scores, which a search may recompute") {
  Request r = request_of("llama3.2-1b", {{"transformer_engine", "local"}});
  const Problem p = complete(r, {});
  CHECK(p.training.attention == AttentionKernel::unfused);
  CHECK_FALSE(first_violation(p));
  const std::vector<Recompute> tried = recompute_choices(r);
  CHECK(std::ranges::count(tried, Recompute::selective) == 1);
  CHECK(complete(request_of("llama3.2-1b", {}), {}).training.attention == AttentionKernel::flash);
  r.attention = AttentionKernel::flash;
  CHECK(first_violation(complete(r, {}))->rule == "M-own-attention");
}
