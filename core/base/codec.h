// msgpack and JSON for the project's structs. A struct lists its fields once with FIXIT_FIELDS and gets both
// encodings: maps keyed by field name, unknown keys ignored, missing keys left at their default, so fields
// can be added without a new version. Enums travel as their names.
#pragma once

#include <algorithm>
#include <array>
#include <msgpack.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/enum_names.h"
#include "core/base/status.h"

// Lists a struct's fields, each once: FIXIT_FIELDS(name, size, parts);
// msgpack's own macro would instantiate its templates in every file that includes the struct.
#define FIXIT_FIELDS(...)                                       \
  static constexpr std::string_view kFieldNames = #__VA_ARGS__; \
  template <typename Visit>                                     \
  void each_field(Visit&& visit) {                              \
    visit(__VA_ARGS__);                                         \
  }                                                             \
  template <typename Visit>                                     \
  void each_field(Visit&& visit) const {                        \
    visit(__VA_ARGS__);                                         \
  }

namespace fixit {

template <typename T>
concept HasFields = requires {
  T::kFieldNames;
};

// "name, size" -> {"name", "size"}.
template <size_t N>
constexpr std::array<std::string_view, N> split_field_names(std::string_view list) {
  std::array<std::string_view, N> names;
  for (size_t i = 0; i < N; ++i) {
    const size_t end = std::min(list.find(','), list.size());
    names[i] = list.substr(0, end);
    list.remove_prefix(end);
    while (!list.empty() && (list.front() == ',' || list.front() == ' ')) list.remove_prefix(1);
  }
  return names;
}

// The value under a key of a map; null if there is none.
const msgpack::object* find_field(const msgpack::object& map, std::string_view name);

}  // namespace fixit

namespace msgpack {
MSGPACK_API_VERSION_NAMESPACE(MSGPACK_DEFAULT_API_NS) {
  namespace adaptor {

  template <fixit::NamedEnum E>
  struct pack<E> {
    template <typename Stream>
    packer<Stream>& operator()(packer<Stream>& out, E value) const {
      const std::string_view name = fixit::name_of(value);
      out.pack_str(static_cast<uint32_t>(name.size()));
      out.pack_str_body(name.data(), static_cast<uint32_t>(name.size()));
      return out;
    }
  };

  template <fixit::NamedEnum E>
  struct convert<E> {
    const msgpack::object& operator()(const msgpack::object& in, E& value) const {
      if (in.type != type::STR) throw type_error();
      const auto parsed = fixit::parse_enum<E>(std::string_view(in.via.str.ptr, in.via.str.size));
      if (!parsed) throw type_error();
      value = *parsed;
      return in;
    }
  };

  template <fixit::HasFields T>
  struct pack<T> {
    template <typename Stream>
    packer<Stream>& operator()(packer<Stream>& out, const T& value) const {
      value.each_field([&](const auto&... fields) {
        static constexpr auto kNames = fixit::split_field_names<sizeof...(fields)>(T::kFieldNames);
        out.pack_map(static_cast<uint32_t>(sizeof...(fields)));
        size_t next = 0;
        const auto one = [&](const auto& field) {
          const std::string_view name = kNames[next++];
          out.pack_str(static_cast<uint32_t>(name.size()));
          out.pack_str_body(name.data(), static_cast<uint32_t>(name.size()));
          out.pack(field);
        };
        (one(fields), ...);
      });
      return out;
    }
  };

  template <fixit::HasFields T>
  struct convert<T> {
    const msgpack::object& operator()(const msgpack::object& in, T& value) const {
      if (in.type != type::MAP) throw type_error();
      value.each_field([&](auto&... fields) {
        static constexpr auto kNames = fixit::split_field_names<sizeof...(fields)>(T::kFieldNames);
        size_t next = 0;
        const auto one = [&](auto& field) {
          if (const msgpack::object* found = fixit::find_field(in, kNames[next++])) found->convert(field);
        };
        (one(fields), ...);
      });
      return in;
    }
  };

  }  // namespace adaptor
}
}  // namespace msgpack

namespace fixit {

using Json = nlohmann::ordered_json;  // keeps the order of keys: in a definition it is the ABI

template <typename T>
std::string encode(const T& value) {
  msgpack::sbuffer buffer;
  msgpack::pack(buffer, value);
  return std::string(buffer.data(), buffer.size());
}

// Decodes untrusted bytes: sizes and depth are limited, trailing bytes are an error. kCorrupt on any fault.
Result<msgpack::object_handle> decode_object(std::string_view bytes);

template <typename T>
Result<T> decode(std::string_view bytes) {
  auto handle = decode_object(bytes);
  if (!handle.ok()) return handle.status();
  try {
    T value;
    handle->get().convert(value);
    return value;
  } catch (const std::exception& error) {
    return Status(ErrorCode::kCorrupt,
                  std::string("msgpack: a field has the wrong type (") + error.what() + ")");
  }
}

// NaN and infinities become the strings "NaN", "Infinity", "-Infinity" (as FlashInfer-Trace files have
// them); byte strings that are not UTF-8 become {"base64": ...}.
Json object_to_json(const msgpack::object& object);
// The inverse, on a zone. Numbers keep their kind (unsigned, signed, double).
std::string json_to_msgpack(const Json& json);

template <typename T>
Json to_json(const T& value) {
  const std::string bytes = encode(value);
  auto handle = decode_object(bytes);
  return handle.ok() ? object_to_json(handle->get()) : Json();
}

template <typename T>
Result<T> from_json(const Json& json) {
  return decode<T>(json_to_msgpack(json));
}

// In a header, after a struct with many nested fields: its encode() and decode() are compiled once, where
// FIXIT_CODEC(Struct) stands, not in every file that uses them.
#define FIXIT_EXTERN_CODEC(Struct)                                 \
  extern template std::string encode<Struct>(const Struct& value); \
  extern template Result<Struct> decode<Struct>(std::string_view bytes);
#define FIXIT_CODEC(Struct)                                 \
  template std::string encode<Struct>(const Struct& value); \
  template Result<Struct> decode<Struct>(std::string_view bytes);

// Parses untrusted JSON text. kInvalid with line and column on a fault; duplicate keys are a fault.
Result<Json> parse_json(std::string_view text, std::string_view where);

}  // namespace fixit
