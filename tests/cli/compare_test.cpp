// Two layouts side by side, from option strings and from plans.
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using Json = nlohmann::json;

namespace {

const std::string question = "llama3-70b --gpus 64xH100-80GB ";

Json fit(const std::string& options) {
  return Json::parse(tests::zeroplan("fit " + question + options + " --json").output);
}

Json compare(const std::string& arguments, int exit_code = 0) {
  const tests::Run run = tests::zeroplan("compare " + arguments + " --json");
  CAPTURE(arguments, run.errors);
  REQUIRE(run.exit_code == exit_code);
  return Json::parse(run.output);
}

const Json* row(const Json& answer, const std::string& name) {
  for (const Json& r : answer.at("rows")) {
    if (r.at("name") == name) return &r;
  }
  return nullptr;
}

void require_refused(const std::string& arguments, const std::string& words) {
  const tests::Run run = tests::zeroplan("compare " + arguments);
  CAPTURE(arguments, run.errors);
  REQUIRE(run.exit_code == 2);
  REQUIRE(run.output.empty());
  REQUIRE_THAT(run.errors, ContainsSubstring(words));
}

}  // namespace

TEST_CASE("each side is what fit answers, and rows are their differences") {
  const Json both = compare(question + "--seq 8192 --each --a \"--tp 4 --pp 2\" --b \"--tp 8\"");
  for (const auto& [side, options] :
       {std::pair{"a", "--seq 8192 --tp 4 --pp 2"}, {"b", "--seq 8192 --tp 8"}}) {
    Json alone = fit(options);
    alone.erase("schema");
    REQUIRE(both.at(side) == alone);
  }
  const Json& tp = *row(both, "tp");
  REQUIRE(tp.at("section") == "layout");
  REQUIRE(tp.at("a") == 4);
  REQUIRE(tp.at("b") == 8);
  REQUIRE(row(both, "sequence_length") == nullptr);  // alike
  std::int64_t needed[2] = {0, 0};
  for (const Json& r : both.at("rows")) {
    if (r.at("section") != "memory" || r.at("unit") != "bytes" || r.at("name") == "needed") {
      if (r.at("name") != "needed") continue;
      REQUIRE(r.at("a") == needed[0]);
      REQUIRE(r.at("b") == needed[1]);
      REQUIRE(r.at("difference") == needed[1] - needed[0]);
      break;
    }
    needed[0] += r.at("a").get<std::int64_t>();
    needed[1] += r.at("b").get<std::int64_t>();
  }
  REQUIRE(needed[0] > 0);
}

TEST_CASE("what neither side gives is chosen once, and said") {
  for (const std::string asked :
       {"llama3-70b --gpus 64xH100-80GB --a \"--zero 1\" --b \"--zero 3\"",
        "llama2-7b --gpus 8xA100-40GB --runtime deepspeed --a \"--zero 2\" --b \"--zero 3\"",
        "llama3-8b --gpus 8xH100-80GB --a \"\" --b \"--recompute full\""}) {
    CAPTURE(asked);
    const Json both = compare(asked);
    const std::string base = both.at("chosen_for");
    REQUIRE(base != "each");
    REQUIRE(!both.at("shared").empty());
    std::vector<std::string> differing;
    for (const Json& r : both.at("rows")) {
      if (r.at("section") == "layout") differing.push_back(r.at("name"));
    }
    const bool zero = asked.find("--zero") != std::string::npos;
    REQUIRE(differing == std::vector<std::string>{zero ? "zero" : "recompute"});
    // Side for side the same fields count as chosen.
    REQUIRE(both.at("a").at("chosen").size() + (zero ? 0 : -1) == both.at("b").at("chosen").size());
    const tests::Run text = tests::zeroplan("compare " + asked);
    REQUIRE_THAT(text.output, ContainsSubstring("chosen for " + base + ", and taken for "));
  }
  // Of two kinds of GPU each has its own best.
  const Json both = compare("llama3-8b --a \"--gpus 8xH100-80GB\" --b \"--gpus 8xA100-40GB\"");
  REQUIRE(both.at("chosen_for") == "each");
}

TEST_CASE("a plan is the layout it was printed for") {
  const TemporaryFolder folder;
  for (const std::string& options : {std::string("--tp 4 --pp 2 --micro-batch 2"),
                                     std::string("--runtime fsdp2 --hsdp 8 --set loss_chunks=1"),
                                     std::string("--runtime deepspeed --zero 2 --set "
                                                 "data_types.grad_accum_dtype=fp32")}) {
    const std::string plan =
        folder.write("plan.json", tests::zeroplan("fit " + question + options + " --json").output);
    const Json both = compare(plan + " " + plan);
    CAPTURE(options);
    for (const Json& r : both.at("rows")) REQUIRE(r.at("section") != "layout");
    REQUIRE(both.at("a").at("layout") == fit(options).at("layout"));
    REQUIRE(both.at("a").at("stages") == fit(options).at("stages"));
    REQUIRE(both.at("a").at("settings") == fit(options).at("settings"));
  }
}

TEST_CASE("one side that fits is a yes, none is a no") {
  compare(
      "llama3-70b --gpus 8xA100-80GB --runtime deepspeed --zero 3 --a \"--offload none\" "
      "--b \"--offload parameters\"");
  compare("llama3-70b --gpus 8xA100-80GB --tp 8 --a \"\" --b \"--micro-batch 2\"", 1);
}

TEST_CASE("text leads with both verdicts, and its rows add up as shown") {
  const tests::Run run =
      tests::zeroplan("compare " + question + "--a \"--tp 4 --pp 2\" --b \"--tp 8\"");
  REQUIRE(run.output.find("a fits: ") == 0);
  const std::regex number_row(
      "    (=? ?[a-z -]+?) +(-?[0-9]+\\.[0-9]{2}) +(-?[0-9]+\\.[0-9]{2}) .*\\n");
  const std::string memory = run.output.substr(run.output.find("memory of the worst"));
  long sums[2] = {0, 0};
  bool total = false;
  for (std::sregex_iterator it(memory.begin(), memory.end(), number_row), end; it != end; ++it) {
    const long a = std::lround(std::stod((*it)[2]) * 100);
    const long b = std::lround(std::stod((*it)[3]) * 100);
    if ((*it)[1] == "= needed") {
      REQUIRE(a == sums[0]);
      REQUIRE(b == sums[1]);
      total = true;
      break;
    }
    sums[0] += a;
    sums[1] += b;
  }
  REQUIRE(total);
}

TEST_CASE("csv has every row, quiet the verdicts alone") {
  const std::string sides = "--a \"--tp 4\" --b \"--tp 8\"";
  const tests::Run csv = tests::zeroplan("compare " + question + sides + " --csv");
  REQUIRE(csv.output.find("section,name,unit,a,b,difference\n") == 0);
  const Json rows = compare(question + sides).at("rows");
  REQUIRE(static_cast<std::size_t>(std::count(csv.output.begin(), csv.output.end(), '\n')) ==
          rows.size() + 1);
  const tests::Run quiet = tests::zeroplan("compare " + question + sides + " --quiet");
  REQUIRE(std::count(quiet.output.begin(), quiet.output.end(), '\n') == 2);
}

TEST_CASE("what compare cannot use is refused, with the side it is about") {
  const TemporaryFolder folder;
  require_refused(question, "two sides");
  require_refused(question + "--a \"--tp 4\"", "two sides");
  require_refused(question + "--tp 2 --a \"--tp 4\" --b \"\"", "--tp is '2' for both sides");
  require_refused(question + "--a \"--tpp 4\" --b \"\"", "--tpp");
  require_refused(question + "--a \"--tp 4 --tp 8\" --b \"\"", "--a");
  require_refused(question + "--a \"--tp 7\" --b \"\"", "--a: ");
  require_refused("--a \"\" --b \"\"", "MODEL is missing");
  require_refused("nowhere.json nothing.json", "no such file");
  const std::string other = folder.write("other.json", R"({"schema": "other"})");
  require_refused(other + " " + other, "not a plan");
  const std::string broken = folder.write("broken.json", "{");
  require_refused(broken + " " + broken, "not JSON");
}
