#pragma once
// Memory of one rank: each tensor is on the device and in the ledger, or in neither.

#include <utility>

#include "validator/device/device.hpp"
#include "validator/device/ledger.hpp"

namespace zeroplan::engine {

class Memory;

/// A tensor, owned by its scope; move only.
template <class Value>
class Tensor {
 public:
  Tensor() = default;
  Tensor(Tensor&& other) noexcept { swap(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    Tensor taken(std::move(other));
    swap(taken);
    return *this;
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() { free(); }

  void free() noexcept;
  explicit operator bool() const { return memory_ != nullptr; }
  View<Value> view() const { return view_; }
  operator View<Value>() const { return view_; }        // NOLINT: stands for its contents
  operator View<const Value>() const { return view_; }  // NOLINT

 private:
  friend class Memory;
  Tensor(Memory& memory, Ledger::Entry entry, View<Value> view)
      : memory_(&memory), entry_(entry), view_(view) {}
  void swap(Tensor& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(entry_, other.entry_);
    std::swap(view_, other.view_);
  }

  Memory* memory_ = nullptr;
  Ledger::Entry entry_ = 0;
  View<Value> view_;
};

class Memory {
 public:
  Memory(Device& device, Bytes capacity) : device_(device), ledger_(capacity) {}

  /// A tensor of unset values. Throws OutOfMemory.
  template <class Value>
  Tensor<Value> make(std::string_view name,
                     Category category,
                     std::int64_t rows,
                     std::int64_t columns = 1) {
    const std::int64_t bytes = rows * columns * static_cast<std::int64_t>(sizeof(Value));
    if (bytes == 0) return {};
    const Ledger::Entry entry = ledger_.add(name, category, Bytes{bytes});
    auto* data = static_cast<Value*>(device_.allocate(bytes));
    return Tensor<Value>(*this, entry, {data, rows, columns});
  }

  Ledger& ledger() { return ledger_; }
  Device& device() { return device_; }

 private:
  Device& device_;
  Ledger ledger_;
};

template <class Value>
void Tensor<Value>::free() noexcept {
  if (memory_ == nullptr) return;
  memory_->device().release(view_.data);
  memory_->ledger().remove(entry_);
  memory_ = nullptr;
  view_ = {};
}

}  // namespace zeroplan::engine
