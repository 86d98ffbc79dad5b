// A string that is never changed and often repeated: copies share it, and cost a pointer.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <compare>
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/records/json.h"

namespace assay {

// Empty where default-made. Reads like a std::string, and is assigned as a whole.
class SharedText {
 public:
  SharedText() = default;
  // Implicit, as a std::string's, which it stands for. NOLINTBEGIN(google-explicit-constructor)
  SharedText(std::string text) {
    if (!text.empty()) body_ = new Body{std::move(text)};
  }
  SharedText(std::string_view text) : SharedText(std::string(text)) {}
  SharedText(const char* text) : SharedText(std::string(text)) {}
  // NOLINTEND(google-explicit-constructor)
  SharedText(const SharedText& other) : body_(other.body_) {
    if (body_ != nullptr) body_->users.fetch_add(1, std::memory_order_relaxed);
  }
  SharedText(SharedText&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  SharedText& operator=(SharedText other) noexcept {
    std::swap(body_, other.body_);
    return *this;
  }
  ~SharedText() {
    if (body_ != nullptr && body_->users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete body_;
  }

  const std::string& str() const {
    static const std::string kEmpty;
    return body_ != nullptr ? body_->text : kEmpty;
  }
  // The same as str(). NOLINTNEXTLINE(google-explicit-constructor)
  operator const std::string&() const { return str(); }
  bool empty() const { return body_ == nullptr; }
  size_t size() const { return str().size(); }

  friend bool operator==(const SharedText& a, const SharedText& b) {
    return a.body_ == b.body_ || a.str() == b.str();
  }
  friend bool operator==(const SharedText& a, const std::string& b) { return a.str() == b; }
  friend bool operator==(const SharedText& a, const char* b) { return a.str() == b; }
  friend auto operator<=>(const SharedText& a, const SharedText& b) { return a.str() <=> b.str(); }
  friend void to_json(Json& json, const SharedText& text) { json = text.str(); }
  friend std::ostream& operator<<(std::ostream& out, const SharedText& text) {
    return out << text.str();
  }

 private:
  struct Body {
    std::string text;
    std::atomic<size_t> users{1};
  };
  Body* body_ = nullptr;
};

// Equal texts become one. Not for several threads at once.
class TextPool {
 public:
  // `slot`: a small number for texts that tend to come again, such as a table's column.
  SharedText share(std::string_view text, size_t slot = 0) {
    if (text.empty()) return {};
    if (slot >= last_.size()) last_.resize(slot + 1);
    SharedText& last = last_[slot];
    if (last.str() == text) return last;
    const auto found = texts_.find(text);
    last = found != texts_.end() ? *found : *texts_.emplace(text).first;
    return last;
  }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    size_t operator()(const SharedText& text) const {
      return std::hash<std::string_view>()(text.str());
    }
  };
  struct Equal {
    using is_transparent = void;
    static std::string_view view(std::string_view text) { return text; }
    static std::string_view view(const SharedText& text) { return text.str(); }
    bool operator()(const auto& a, const auto& b) const { return view(a) == view(b); }
  };
  std::unordered_set<SharedText, Hash, Equal> texts_;
  std::vector<SharedText> last_;  // by slot
};

}  // namespace assay

template <>
struct fmt::formatter<assay::SharedText> : fmt::formatter<std::string_view> {
  auto format(const assay::SharedText& text, auto& context) const {
    return fmt::formatter<std::string_view>::format(text.str(), context);
  }
};
