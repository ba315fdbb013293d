#include "presets/pipeline_layout.hpp"

#include <random>

#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

std::vector<std::int64_t> layers_of(std::string_view text) {
  const auto layout = parse_pipeline_layout(text);
  return layout ? layout->layers : std::vector<std::int64_t>{};
}

using Layers = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a layout of the pipeline is read as Megatron-Core reads it") {
  CHECK(layers_of("Ettt|tt|tL") == Layers{3, 2, 1});
  CHECK(layers_of("Et*3|(tt|)*3,L") == Layers{3, 2, 2, 2, 0});
  CHECK(layers_of("E|(t*4|)*2t*12L") == Layers{0, 4, 4, 12});
  CHECK(layers_of("Et(t|t)*2||tL") == Layers{2, 2, 1, 0, 1});
  CHECK(layers_of("E|*3L") == Layers{0, 0, 0, 0});
  CHECK(layers_of("EL") == Layers{0});
  const auto layout = parse_pipeline_layout("Et|(tt|)*30mL");
  REQUIRE(layout);
  CHECK(layout->layers.size() == 32);
  CHECK(layout->mtp_modules == 1);
}

TEST_CASE("what is no layout of the pipeline is refused") {
  for (const std::string_view text :
       {"", "E", "L", "tt|tt", "tE|tL", "Et|Lt", "EEt|L", "Et|xL", "Et*|L", "Et*-1|L", "(Et|tL",
        "Et|m|L", "Et|mtL", "Et*99999999999999999999L", "E(t*60000)*60000L", "((t)*2|)*2L"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_pipeline_layout(text));
  }
}

TEST_CASE("a layout of the pipeline is said shortly, and read back") {
  CHECK(pipeline_layout_text({.layers = {3, 2, 2, 2, 0}}) == "Et*3|(tt|)*3L");
  CHECK(pipeline_layout_text({.layers = {0, 0, 0}, .mtp_modules = 1}) == "E||mL");
  CHECK(pipeline_layout_text({.layers = {5}}) == "Et*5L");
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    PipelineLayout layout{.mtp_modules = static_cast<std::int64_t>(random() % 3)};
    for (unsigned c = 0; c <= random() % 9; ++c) {
      layout.layers.push_back(static_cast<std::int64_t>(random() % 5));
    }
    const std::string text = pipeline_layout_text(layout);
    CAPTURE(text);
    REQUIRE(parse_pipeline_layout(text) == layout);
  }
}
