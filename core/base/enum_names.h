// Text names of closed enums: one table per enum serves logs, JSON, msgpack and parsing.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

namespace fixit {

// Specialised beside each enum with `static constexpr std::pair<E, std::string_view> values[]`.
template <typename E>
struct EnumNames;

template <typename E>
concept NamedEnum = requires {
  EnumNames<E>::values;
};

template <NamedEnum E>
constexpr std::string_view name_of(E value) {
  for (const auto& [candidate, name] : EnumNames<E>::values)
    if (candidate == value) return name;
  return "?";
}

template <NamedEnum E>
constexpr std::optional<E> parse_enum(std::string_view text) {
  for (const auto& [candidate, name] : EnumNames<E>::values)
    if (name == text) return candidate;
  return std::nullopt;
}

}  // namespace fixit
