// Errors as values. Every fallible function of the project returns Status or Result<T>; exceptions of
// libraries are caught where the library is called.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/base/enum_names.h"

namespace fixit {

// The closed set of error classes. A caller branches on these, never on message text.
enum class ErrorCode {
  kOk,
  kInvalid,      // the input is wrong and stays wrong: say what, where, and what to do
  kNotFound,     // the named thing does not exist
  kConflict,     // exists already with other content
  kStale,        // the attempt token no longer owns the job
  kUnavailable,  // a peer cannot be reached now; trying again may help
  kTimeout,      // a deadline passed
  kFull,         // a disk, queue or budget is full
  kCorrupt,      // stored or received bytes are not what they claim to be
  kDenied,       // not permitted
  kUnsupported,  // understood, but this build or version does not do it
  kCancelled,    // asked to stop
  kInternal,     // a fault of ours
};

template <>
struct EnumNames<ErrorCode> {
  static constexpr std::pair<ErrorCode, std::string_view> values[] = {
      {ErrorCode::kOk, "ok"},
      {ErrorCode::kInvalid, "invalid"},
      {ErrorCode::kNotFound, "not_found"},
      {ErrorCode::kConflict, "conflict"},
      {ErrorCode::kStale, "stale"},
      {ErrorCode::kUnavailable, "unavailable"},
      {ErrorCode::kTimeout, "timeout"},
      {ErrorCode::kFull, "full"},
      {ErrorCode::kCorrupt, "corrupt"},
      {ErrorCode::kDenied, "denied"},
      {ErrorCode::kUnsupported, "unsupported"},
      {ErrorCode::kCancelled, "cancelled"},
      {ErrorCode::kInternal, "internal"},
  };
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == ErrorCode::kOk; }
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // "not_found: no definition named x", for people.
  std::string to_string() const;
  // The same error with `context + ": "` before its message: where it happened, outermost first.
  Status with_context(std::string_view context) const;

 private:
  ErrorCode code_ = ErrorCode::kOk;
  std::string message_;
};

// A value or the Status that explains its absence. REQUIRES for value(): ok().
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}         // NOLINT: implicit on purpose
  Result(Status status) : state_(std::move(status)) {}  // NOLINT: implicit on purpose

  bool ok() const { return std::holds_alternative<T>(state_); }
  const Status& status() const {
    static const Status kOk;
    return ok() ? kOk : std::get<Status>(state_);
  }
  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::get<T>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace fixit

// Leaves the function with the error of `expression`, a Status.
#define FIXIT_RETURN_IF_ERROR(expression)                                                        \
  do {                                                                                           \
    if (::fixit::Status fixit_status_ = (expression); !fixit_status_.ok()) return fixit_status_; \
  } while (false)

#define FIXIT_CONCAT_INNER_(a, b) a##b
#define FIXIT_CONCAT_(a, b) FIXIT_CONCAT_INNER_(a, b)
// FIXIT_ASSIGN_OR_RETURN(auto x, f()): x takes f()'s value, or the function leaves with its error.
#define FIXIT_ASSIGN_OR_RETURN(declaration, expression) \
  FIXIT_ASSIGN_OR_RETURN_IMPL_(FIXIT_CONCAT_(fixit_result_, __LINE__), declaration, expression)
#define FIXIT_ASSIGN_OR_RETURN_IMPL_(result, declaration, expression) \
  auto result = (expression);                                         \
  if (!result.ok()) return result.status();                           \
  declaration = std::move(result).value()
