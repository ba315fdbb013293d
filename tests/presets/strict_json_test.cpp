#include "presets/strict_json.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"

using namespace zeroplan;
using nlohmann::json;

namespace {

std::string parse_error(const std::string& text) {
  return error_text([&] { parse_json(text, "file"); });
}

std::string integer_error(const std::string& value) {
  const json document = parse_json("{\"layers\": " + value + "}", "file");
  return error_text([&] { JsonObject(document, "file").integer("layers", {1, 100}); });
}

}  // namespace

TEST_CASE("invalid JSON is refused with its line and column") {
  CHECK(says(parse_error("{\n  \"a\": 1,\n  b\n}"), "file: line 3, column 3: not JSON: "));
  CHECK(says(parse_error("{\"a\": 1"), "line 1, column "));
  CHECK(says(parse_error("{\"a\": \"\xff\"}"), "not JSON"));
  CHECK(says(parse_error("{} {}"), "not JSON"));
  CHECK(says(parse_error("NaN"), "not JSON"));
  CHECK(says(parse_error("{\"a\": 1,}"), "not JSON"));
}

TEST_CASE("what JSON allows but a configuration never means is refused") {
  CHECK(says(parse_error(R"({"a": 1, "b": {"a": 2, "a": 3}})"), "key 'a' is given twice"));
  CHECK(parse_error(R"({"a": {"a": [{"a": 1}, {"a": 2}]}})").empty());
  CHECK(says(parse_error("{\"a\": 1e999}"), "too large"));
  CHECK(says(parse_error(std::string(65, '[') + std::string(65, ']')), "nested deeper than 64"));
  CHECK(parse_error(std::string(64, '[') + std::string(64, ']')).empty());
  CHECK(says(parse_error(std::string(1'000'000, '[')), "nested deeper than 64"));
}

TEST_CASE("an integer is written as one and lies in its range") {
  CHECK(integer_error("7").empty());
  CHECK(says(integer_error("3.7"), "'layers' must be an integer from 1 to 100, found 3.7"));
  CHECK(says(integer_error("4.0"), "found 4.0"));
  CHECK(says(integer_error("\"12\""), "found \"12\""));
  CHECK(says(integer_error("true"), "found true"));
  CHECK(says(integer_error("[1]"), "found a list"));
  CHECK(says(integer_error("-1"), "found -1"));
  CHECK(says(integer_error("101"), "found 101"));
  CHECK(says(integer_error("18446744073709551615"), "found 18446744073709551615"));
  CHECK(says(integer_error("1" + std::string(30, '0')), "found 1e+30"));
  CHECK(says(integer_error("null"), "'layers' is missing"));
}

TEST_CASE("other values are read by type, and null counts as absent") {
  const json document = parse_json(
      R"({"n": 2, "x": 1.5, "b": true, "s": "text", "o": {"k": 1}, "l": ["p"], "i": [1], "z": null})",
      "file");
  const JsonObject object(document, "file");
  CHECK(object.number("n", 0) == 2.0);
  CHECK(object.number("x", 0) == 1.5);
  CHECK(object.boolean("b"));
  CHECK(object.string("s") == "text");
  CHECK(object.object("o").integer("k", {0, 9}) == 1);
  CHECK(object.strings("l") == std::vector<std::string>{"p"});
  CHECK(object.integers("i", {0, 9}) == std::vector<std::int64_t>{1});
  CHECK_FALSE(object.has("z"));
  CHECK_FALSE(object.find_boolean("z"));
  CHECK(object.strings("z").empty());
}

TEST_CASE("a value of the wrong type is refused") {
  const json document = parse_json(R"({"s": "text", "n": 2, "l": [1, "a"]})", "file");
  const JsonObject object(document, "file");
  CHECK(says(error_text([&] { (void)object.number("s", 0); }), "'s' must be a number"));
  CHECK(says(error_text([&] { (void)object.number("n", 3); }), "at least 3, found 2"));
  CHECK(says(error_text([&] { (void)object.boolean("n"); }), "'n' must be true or false, found 2"));
  CHECK(says(error_text([&] { (void)object.string("n"); }), "'n' must be a string"));
  CHECK(says(error_text([&] { (void)object.object("n"); }), "'n' must be an object"));
  CHECK(says(error_text([&] { (void)object.object("q"); }), "'q' is missing"));
  CHECK(says(error_text([&] { (void)object.strings("l"); }), "a list of strings, found 1"));
  CHECK(says(error_text([&] { (void)object.integers("l", {0, 9}); }), "found \"a\""));
  CHECK(says(error_text([&] { (void)object.integers("n", {0, 9}); }), "a list of integers"));
  const json list = parse_json("[]", "file");
  CHECK(
      says(error_text([&] { JsonObject(list, "file"); }), "expected a JSON object, found a list"));
}

TEST_CASE("an unknown key is refused with the nearest known one") {
  const json document = parse_json(R"({"gpus_per_nod": 8})", "file");
  const auto message = error_text([&] {
    JsonObject(document, "file").allow_only({"gpu", "gpus_per_node", "name"});
  });
  CHECK(says(message, "unknown key 'gpus_per_nod', nearest is 'gpus_per_node'"));
}
