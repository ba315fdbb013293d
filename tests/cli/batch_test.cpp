// Many questions, a line each: answers in their order, each what is answered alone.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/cli/answer.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using nlohmann::json;
using tests::answer;
using tests::require_refused;
using tests::Run;

namespace {

std::vector<json> lines_of(const Run& run) {
  std::vector<json> lines;
  std::istringstream text(run.output);
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

json without_clock(json document) {
  document.erase("line");
  for (const char* key : {"seconds", "threads", "evaluations_per_second_per_core"}) {
    document.erase(key);
  }
  return document;
}

}  // namespace

TEST_CASE("lines are answered in their order, each as it is alone, whatever is asked at once",
          "[release]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("questions.txt",
                                        "# a slow one first\n"
                                        "llama3-70b --gpus 64xH100-80GB --seq 8192\n"
                                        "\n"
                                        "  llama3-8b --gpus 8xH100-80GB --set loss_chunks=1\r\n"
                                        R"({"model": "llama3-8b", "gpus": "8xA100-80GB", "top": 2,)"
                                        R"( "max_memory": "60GiB", "tp": null, "front": true,)"
                                        R"( "all": false, "set": {"loss_chunks": 1}})"
                                        "\n"
                                        "llama3-70b --gpus 2xH100-80GB");
  const std::string common = " --runtime fsdp2 --top 1";
  const Run one = tests::zeroplan("sweep --batch " + file + common + " --threads 1");
  const Run four = tests::zeroplan("sweep --batch - --threads 4 < " + file + common);
  CHECK(one.exit_code == 0);
  CHECK(four.exit_code == 0);
  const std::vector<json> answers = lines_of(one);
  REQUIRE(answers.size() == 4);
  REQUIRE(lines_of(four).size() == 4);
  const std::vector<std::string> alone{
      "llama3-70b --gpus 64xH100-80GB --seq 8192 --top 1",
      "llama3-8b --gpus 8xH100-80GB --set loss_chunks=1 --top 1",
      "llama3-8b --gpus 8xA100-80GB --max-memory 60GiB --front --set loss_chunks=1 --top 2",
      "llama3-70b --gpus 2xH100-80GB --top 1"};
  for (std::size_t i = 0; i < alone.size(); ++i) {
    INFO(alone[i]);
    const json document =
        without_clock(answer("sweep " + alone[i] + " --runtime fsdp2 --threads 1"));
    CHECK(without_clock(answers[i]) == document);
    CHECK(without_clock(lines_of(four)[i]) == document);
  }
  CHECK(answers[0].at("line") == 2);
  CHECK(answers[2].at("line") == 5);
  CHECK(answers[3].at("plans").empty());
}

TEST_CASE("a line that cannot be read is answered with why, and the others are answered") {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> refused{
      {"llama3-8b --gpus 8xH100 --tpp 2", "fit has no option '--tpp'; nearest is --tp"},
      {R"({"model": "llama3-8b", "tpp": 2})", "fit has no option 'tpp'"},
      {R"({"model": "llama3-8b", "model": "x"})", "'model' is said twice"},
      {R"({"model": "llama3-8b", "tp": [1, 2]})", "'tp': must be a text, a number, true or false"},
      {R"({"model": "llama3-8b")", "must be a JSON object"},
      {"llama3-8b --gpus 8xH100 --tp 1,2", "lists are several questions"},
      {"- --gpus 8xH100", "cannot read standard input"},
      {"llama3-8b --gpus 8xH100 --batch more.txt", "a --batch of its own"},
      {"llama3-8b --gpus 8xH100 --html page.html", "a page is of one question"},
      {"llama3-8b --gpus 8xH100 --tp 3", "--tp"}};
  std::string questions;
  for (const auto& [line, why] : refused) questions += line + "\n";
  const std::string file = folder.write("questions", questions + "llama3-8b --gpus 8xH100\n");
  const Run run = tests::zeroplan("fit --batch " + file);
  CHECK(run.exit_code == 2);
  CHECK(run.errors.empty());
  const std::vector<json> answers = lines_of(run);
  REQUIRE(answers.size() == refused.size() + 1);
  for (std::size_t i = 0; i < refused.size(); ++i) {
    CHECK(answers[i].at("schema") == "zeroplan.refused/1");
    CHECK(answers[i].at("line") == i + 1);
    CHECK(answers[i].at("exit_code") == 2);
    CHECK_THAT(answers[i].at("error").get<std::string>(), ContainsSubstring(refused[i].second));
  }
  CHECK(answers.back().at("verdict") == "fits");
  const Run none =
      tests::shell("echo llama3-70b --gpus 1xH100 | '" ZEROPLAN_BINARY "' fit --batch -");
  CHECK(none.exit_code == 1);
}

TEST_CASE("what is typed beside --batch belongs there, or is refused") {
  require_refused("fit --batch /dev/null", "no line asks anything");
  require_refused("fit --batch no-such-file", "cannot read 'no-such-file'");
  require_refused("sweep --batch - --csv </dev/null", "leave out --csv");
  require_refused("sweep --batch - --save x </dev/null", "--save is of one question");
  require_refused("fit --batch - --html x </dev/null", "a page is of one question");
}

TEST_CASE("a reader that goes away ends a batch") {
  const Run run = tests::shell(
      "for i in $(seq 1 50); do echo llama3-8b --gpus 8xH100; done | "
      "( '" ZEROPLAN_BINARY "' fit --batch -; echo $? >&2 ) | head -n 1");
  CHECK(run.errors == "zeroplan: error: cannot write to standard output: Broken pipe\n3\n");
}

TEST_CASE("a sweep over lists has a row for each question, with what it would take") {
  const json table =
      answer("sweep llama3-8b,llama3-70b --gpus 8xH100-80GB,2xH100-80GB --max-memory 70GiB");
  REQUIRE(table.at("schema") == "zeroplan.table/1");
  REQUIRE(table.at("rows").size() == 4);
  const json found = answer("sweep llama3-8b --gpus 8xH100-80GB --max-memory 70GiB");
  const json alone = found.at("plans").at(found.at("recommended").get<std::size_t>());
  CHECK(table.at("rows").at(0).at("options").at(0) ==
        json{{"flag", "MODEL"}, {"value", "llama3-8b"}});
  CHECK(table.at("rows").at(0).at("layout") == alone.at("layout"));
  CHECK(table.at("rows").at(0).at("step") == alone.at("step"));
  CHECK(table.at("rows").at(3).at("refused") == "nothing fits");
  const Run text = tests::zeroplan("sweep llama3-8b --gpus 8xH100,8xA100");
  CHECK(text.exit_code == 0);
  CHECK_THAT(text.output, ContainsSubstring("8xA100     fits"));
  require_refused("sweep llama3-8b --gpus 8xH100,8xA100 --save x", "are of one question, these");
}
