// Server-sent events, as they arrive (format: the WHATWG HTML standard, "Server-sent events").
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace fixit {

// Cuts a byte stream into events, whatever the pieces it comes in. Lines end in LF, CR or CRLF; comments and
// fields other than `data` are skipped; several data lines of one event are joined by LF.
class SseParser {
 public:
  explicit SseParser(size_t event_limit = 16u << 20) : limit_(event_limit) {}

  // Calls `on_data` with the data of each event that is complete. False, and from then on, where a line or an
  // event is longer than the limit.
  bool feed(std::string_view bytes, const std::function<void(std::string_view)>& on_data);

 private:
  void end_line(const std::function<void(std::string_view)>& on_data);

  const size_t limit_;
  std::string line_;
  std::string data_;
  bool has_data_ = false;
  bool after_cr_ = false;   // an LF now belongs to the CR before it
  bool first_line_ = true;  // may begin with a byte order mark
  bool too_long_ = false;
};

}  // namespace fixit
