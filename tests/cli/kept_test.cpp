// Documents that an older zeroplan wrote are read by this one: they mean what they meant, and the
// answer says that they are older. tests/reference/kept is never written anew, only added to.
#include <algorithm>

#include "tests/catch.hpp"
#include "tests/cli/fit.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan;
using tests::Json;

namespace {

const std::string kept = source_dir() + "/tests/reference/kept/";

Json document(const std::string& name) {
  return Json::parse(tests::shell("cat " + kept + name).output);
}

void require_same_question(const Json& old, const Json& now) {
  for (const auto& [field, value] : old.at("layout").items()) {
    CAPTURE(field);
    REQUIRE(now.at("layout").at(field) == value);
  }
  REQUIRE(now.at("runtime") == old.at("runtime"));
  REQUIRE(now.at("cluster").at("gpus") == old.at("cluster").at("gpus"));
  REQUIRE(now.at("model").at("parameters") == old.at("model").at("parameters"));
}

bool says_it_is_older(const Json& answer) {
  return std::ranges::any_of(answer.at("assumptions"), [](const Json& line) {
    return line.get<std::string>().find("was made by another version") != std::string::npos;
  });
}

}  // namespace

TEST_CASE("a plan of an older version is read, and told to be older") {
  const Json now = tests::fit(kept + "fit.json");
  require_same_question(document("fit.json"), now);
  REQUIRE(says_it_is_older(now));
  // Whoever reads answers finds every field of then, with a value of the same kind; but what a
  // layout that is given in full has no need of.
  const Json old = document("fit.json").flatten();
  const Json all = now.flatten();
  const auto is_list = [](const std::string& path) {
    return std::ranges::any_of(path, [](char c) { return c >= '0' && c <= '9'; });
  };
  for (const auto& [path, value] : old.items()) {
    if (is_list(path) || value.is_null() || path.starts_with("/fastest")) continue;
    CAPTURE(path);
    REQUIRE(all.contains(path));
    REQUIRE(all.at(path).is_number() == value.is_number());
    REQUIRE(all.at(path).is_string() == value.is_string());
  }
}

TEST_CASE("each plan of an older sweep is read, and told to be older") {
  const Json swept = document("sweep.json");
  REQUIRE(swept.at("plans").size() == 2);
  for (std::size_t i = 0; i < swept.at("plans").size(); ++i) {
    const Json now = tests::fit(kept + "sweep.json#" + std::to_string(i + 1));
    require_same_question(swept.at("plans").at(i), now);
    REQUIRE(says_it_is_older(now));
  }
}
