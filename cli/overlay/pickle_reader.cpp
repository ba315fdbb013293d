// How is a pickle read without running it? Front door: Pickle.
#include "cli/overlay/pickle_reader.hpp"

#include <fmt/format.h>

#include <bit>
#include <unordered_map>

#include "presets/input_error.hpp"

namespace zeroplan {

// The stack machine that a pickle is a program of.
class PickleMachine {
 public:
  using Kind = PickleValue::Kind;

  PickleMachine(Pickle& out, std::string_view where) : out_(out), where_(where) {}

  void run() {
    if (byte() != 0x80) fail("is no pickle of protocol 2 to 5");
    const int protocol = byte();
    if (protocol < 2 || protocol > 5) fail("is no pickle of protocol 2 to 5");
    while (step(byte())) {
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("ends with values left over");
    out_.root_ = stack_.back();
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw InputError(fmt::format("{}: {}, at byte {}", where_, what, at_));
  }

  int byte() {
    if (at_ >= out_.bytes_.size()) fail("is cut off");
    return static_cast<unsigned char>(out_.bytes_[at_++]);
  }
  std::uint64_t little_endian(int count) {
    std::uint64_t value = 0;
    for (int i = 0; i < count; ++i) value |= static_cast<std::uint64_t>(byte()) << (8 * i);
    return value;
  }

  void push(PickleValue value) {
    constexpr std::size_t most = 50'000'000;
    if (++values_ > most) fail("holds more than 50 million values");
    stack_.push_back(value);
  }
  PickleValue pop() {
    if (stack_.size() <= floor()) fail("takes a value where there is none");
    const PickleValue value = stack_.back();
    stack_.pop_back();
    return value;
  }
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  PickleValue& top() {
    if (stack_.size() <= floor()) fail("takes a value where there is none");
    return stack_.back();
  }

  std::vector<PickleValue> since_mark() {
    if (marks_.empty()) fail("takes values since a mark where there is none");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleValue> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  void push_integer(std::int64_t number) { push({.kind = Kind::integer, .number = number}); }
  void push_boolean(bool value) { push({.kind = Kind::boolean, .number = value ? 1 : 0}); }
  void push_text(std::uint64_t size) {
    if (size > out_.bytes_.size() - at_) fail("is cut off within a text");
    push({.kind = Kind::text,
          .size = static_cast<std::uint32_t>(std::min<std::uint64_t>(size, 0xffffffff)),
          .number = static_cast<std::int64_t>(at_)});
    at_ += size;
  }
  void push_long(std::uint64_t size) {
    if (size > 8) fail("has an integer of more than 64 bits");
    const std::uint64_t value = little_endian(static_cast<int>(size));
    const auto unused = static_cast<int>(64 - 8 * size);
    push_integer(size == 0 ? 0 : static_cast<std::int64_t>(value << unused) >> unused);
  }
  void push_real() {
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | static_cast<std::uint64_t>(byte());
    push({.kind = Kind::real, .real = std::bit_cast<double>(bits)});
  }
  void push_container(Kind kind, std::vector<PickleValue> items) {
    out_.containers_.push_back(std::move(items));
    push({.kind = kind, .number = static_cast<std::int64_t>(out_.containers_.size() - 1)});
  }
  void push_tuple(std::size_t size) {
    std::vector<PickleValue> items(size);
    for (std::size_t i = size; i-- > 0;) items[i] = pop();
    push_container(Kind::list, std::move(items));
  }

  void extend(Kind kind, const std::vector<PickleValue>& items) {
    const PickleValue& into = top();
    if (into.kind != kind) fail("adds to what is no list or dictionary");
    if (kind == Kind::dictionary && items.size() % 2 != 0) fail("has a key without a value");
    std::vector<PickleValue>& list = out_.containers_[static_cast<std::size_t>(into.number)];
    list.insert(list.end(), items.begin(), items.end());
  }
  void extend_one(Kind kind) {
    std::vector<PickleValue> items{pop()};
    if (kind == Kind::dictionary) items.insert(items.begin(), pop());
    extend(kind, items);
  }

  void remember(std::uint64_t place) { memo_[place] = top(); }
  void recall(std::uint64_t place) {
    const auto known = memo_.find(place);
    if (known == memo_.end()) fail("names a value that it has not made");
    push(known->second);
  }

  // Reads one opcode, given by its number; false at the end of the pickle.
  bool step(int opcode) {
    switch (opcode) {
      case 0x95:  // FRAME
        little_endian(8);
        break;
      case '(':
        marks_.push_back(stack_.size());
        break;
      case '.':
        return false;
      case '0':
        pop();
        break;
      case 'N':
        push({});
        break;
      case 0x88:
        push_boolean(true);
        break;
      case 0x89:
        push_boolean(false);
        break;
      case 'K':
        push_integer(byte());
        break;
      case 'M':
        push_integer(static_cast<std::int64_t>(little_endian(2)));
        break;
      case 'J':
        push_integer(static_cast<std::int32_t>(little_endian(4)));
        break;
      case 0x8a:
        push_long(static_cast<std::uint64_t>(byte()));
        break;
      case 0x8b:
        push_long(little_endian(4));
        break;
      case 'G':
        push_real();
        break;
      case 0x8c:  // of texts and bytes
      case 'U':
      case 'C':
        push_text(static_cast<std::uint64_t>(byte()));
        break;
      case 'X':
      case 'T':
      case 'B':
        push_text(little_endian(4));
        break;
      case 0x8d:
      case 0x8e:
        push_text(little_endian(8));
        break;
      case ']':
        push_container(Kind::list, {});
        break;
      case ')':
        push_tuple(0);
        break;
      case '}':
        push_container(Kind::dictionary, {});
        break;
      default:
        combine(opcode);
    }
    return true;
  }

  void combine(int opcode) {
    switch (opcode) {
      case 0x85:
      case 0x86:
      case 0x87:
        push_tuple(static_cast<std::size_t>(opcode - 0x84));
        break;
      case 't':
        push_container(Kind::list, since_mark());
        break;
      case 'a':
        extend_one(Kind::list);
        break;
      case 's':
        extend_one(Kind::dictionary);
        break;
      case 'e': {
        const std::vector<PickleValue> items = since_mark();
        extend(Kind::list, items);
        break;
      }
      case 'u': {
        const std::vector<PickleValue> items = since_mark();
        extend(Kind::dictionary, items);
        break;
      }
      case 0x94:  // MEMOIZE
        remember(memo_.size());
        break;
      case 'q':
        remember(static_cast<std::uint64_t>(byte()));
        break;
      case 'r':
        remember(little_endian(4));
        break;
      case 'h':
        recall(static_cast<std::uint64_t>(byte()));
        break;
      case 'j':
        recall(little_endian(4));
        break;
      default:
        fail(fmt::format("has opcode 0x{:02x}, which plain data does not need and is not run",
                         opcode));
    }
  }

  Pickle& out_;
  std::string_view where_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
  std::vector<PickleValue> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleValue> memo_;
};

Pickle::Pickle(std::string bytes, std::string_view where) : bytes_(std::move(bytes)) {
  PickleMachine(*this, where).run();
}

std::string_view Pickle::text(const PickleValue& value) const {
  if (value.kind != PickleValue::Kind::text) return {};
  return std::string_view(bytes_).substr(static_cast<std::size_t>(value.number), value.size);
}

const std::vector<PickleValue>& Pickle::items(const PickleValue& value) const {
  static const std::vector<PickleValue> none;
  const bool holds =
      value.kind == PickleValue::Kind::list || value.kind == PickleValue::Kind::dictionary;
  return holds ? containers_[static_cast<std::size_t>(value.number)] : none;
}

const PickleValue* Pickle::find(const PickleValue& dictionary, std::string_view key) const {
  if (dictionary.kind != PickleValue::Kind::dictionary) return nullptr;
  const std::vector<PickleValue>& list = items(dictionary);
  for (std::size_t i = 0; i + 1 < list.size(); i += 2) {
    if (list[i].kind == PickleValue::Kind::text && text(list[i]) == key) return &list[i + 1];
  }
  return nullptr;
}

}  // namespace zeroplan
