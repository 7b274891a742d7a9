// Random damage to a valid document, for tests that nothing crashes on it. Same seed, same damage.
#pragma once

#include <random>
#include <string>

namespace fixit {

inline std::string mutated(std::string text, std::mt19937& random) {
  static constexpr char kBytes[] = "{}[]:,\"'&*!|>-#% \n\r\t\\0123456789.eE+~?@`<=abtrue\xff\x80\x04";
  const auto pick = [&](size_t below) { return below == 0 ? 0 : random() % below; };
  const size_t edits = 1 + pick(4);
  for (size_t i = 0; i < edits; ++i) {
    const size_t at = pick(text.size());
    switch (pick(5)) {
      case 0:
        text.erase(at, 1 + pick(8));
        break;
      case 1:
        text.insert(at, 1, kBytes[pick(sizeof(kBytes) - 1)]);
        break;
      case 2:
        if (!text.empty()) text[at] = static_cast<char>(random());
        break;
      case 3:
        text.insert(pick(text.size()), text.substr(at, 1 + pick(40)));
        break;
      default:
        if (pick(10) == 0) text.resize(at);
    }
  }
  return text;
}

}  // namespace fixit
