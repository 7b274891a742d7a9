#include "core/base/codec.h"

#include <cmath>
#include <set>

namespace fixit {
namespace {

constexpr size_t kMaxElements = 4u << 20;
constexpr size_t kMaxBytes = 1u << 30;
constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxKeys =
    4096;  // of one JSON object: an ordered object finds a key by looking at all before it

struct TooManyKeys {};  // leaves the JSON parser from inside a callback

bool is_utf8(std::string_view text) {
  try {
    (void)nlohmann::json(std::string(text)).dump();  // the library's own strict check
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

Json bytes_to_json(std::string_view bytes) {
  if (is_utf8(bytes)) return std::string(bytes);
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) out += i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63];
  }
  return Json{{"base64", out}};
}

void pack_json(msgpack::packer<msgpack::sbuffer>& out, const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      out.pack(json.get<bool>());
      break;
    case Json::value_t::number_integer:
      out.pack(json.get<int64_t>());
      break;
    case Json::value_t::number_unsigned:
      out.pack(json.get<uint64_t>());
      break;
    case Json::value_t::number_float:
      out.pack(json.get<double>());
      break;
    case Json::value_t::string:
      out.pack(json.get_ref<const std::string&>());
      break;
    case Json::value_t::array:
      out.pack_array(static_cast<uint32_t>(json.size()));
      for (const auto& item : json) pack_json(out, item);
      break;
    case Json::value_t::object:
      out.pack_map(static_cast<uint32_t>(json.size()));
      for (const auto& [key, value] : json.items()) {
        out.pack(key);
        pack_json(out, value);
      }
      break;
    default:
      out.pack_nil();
  }
}

}  // namespace

const msgpack::object* find_field(const msgpack::object& map, std::string_view name) {
  for (uint32_t i = 0; i < map.via.map.size; ++i) {
    const auto& [key, value] = map.via.map.ptr[i];
    if (key.type == msgpack::type::STR && std::string_view(key.via.str.ptr, key.via.str.size) == name)
      return &value;
  }
  return nullptr;
}

Result<msgpack::object_handle> decode_object(std::string_view bytes) {
  try {
    size_t offset = 0;
    msgpack::object_handle handle = msgpack::unpack(
        bytes.data(), bytes.size(), offset, nullptr, nullptr,
        msgpack::unpack_limit(kMaxElements, kMaxElements, kMaxBytes, kMaxBytes, kMaxBytes, kMaxDepth));
    if (offset != bytes.size())
      return Status(ErrorCode::kCorrupt, "msgpack: bytes after the end of the document");
    return handle;
  } catch (const std::exception& error) {
    return Status(ErrorCode::kCorrupt, std::string("msgpack: ") + error.what());
  }
}

Json object_to_json(const msgpack::object& object) {
  switch (object.type) {
    case msgpack::type::BOOLEAN:
      return object.via.boolean;
    case msgpack::type::POSITIVE_INTEGER:
      return object.via.u64;
    case msgpack::type::NEGATIVE_INTEGER:
      return object.via.i64;
    case msgpack::type::FLOAT32:
    case msgpack::type::FLOAT64:
      if (std::isnan(object.via.f64)) return "NaN";
      if (std::isinf(object.via.f64)) return object.via.f64 > 0 ? "Infinity" : "-Infinity";
      return object.via.f64;
    case msgpack::type::STR:
      return bytes_to_json({object.via.str.ptr, object.via.str.size});
    case msgpack::type::BIN:
      return bytes_to_json({object.via.bin.ptr, object.via.bin.size});
    case msgpack::type::ARRAY: {
      Json array = Json::array();
      for (uint32_t i = 0; i < object.via.array.size; ++i)
        array.push_back(object_to_json(object.via.array.ptr[i]));
      return array;
    }
    case msgpack::type::MAP: {
      Json map = Json::object();
      for (uint32_t i = 0; i < object.via.map.size; ++i) {
        const auto& [key, value] = object.via.map.ptr[i];
        const Json name = object_to_json(key);
        map[name.is_string() ? name.get<std::string>() : name.dump()] = object_to_json(value);
      }
      return map;
    }
    default:
      return nullptr;
  }
}

std::string json_to_msgpack(const Json& json) {
  msgpack::sbuffer buffer;
  msgpack::packer<msgpack::sbuffer> out(buffer);
  pack_json(out, json);
  return std::string(buffer.data(), buffer.size());
}

Result<Json> parse_json(std::string_view text, std::string_view where) {
  // A callback sees each key as it is read; the library alone would let the last duplicate win in silence.
  std::vector<std::set<std::string>> keys;
  std::string duplicate;
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) {
      if (depth > static_cast<int>(kMaxDepth)) too_deep = true;
      keys.emplace_back();
    }
    if (event == Json::parse_event_t::array_start && depth > static_cast<int>(kMaxDepth)) too_deep = true;
    if (event == Json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.empty() && duplicate.empty() &&
        !keys.back().insert(parsed.get<std::string>()).second)
      duplicate = parsed.get<std::string>();
    if (!keys.empty() && keys.back().size() > kMaxKeys) throw TooManyKeys();
    return true;
  };
  try {
    Json json = Json::parse(text.begin(), text.end(), watch);
    if (too_deep)
      return Status(ErrorCode::kInvalid,
                    std::string(where) + ": nested deeper than " + std::to_string(kMaxDepth));
    if (!duplicate.empty())
      return Status(ErrorCode::kInvalid,
                    std::string(where) + ": key `" + duplicate + "` appears twice in one object");
    return json;
  } catch (const TooManyKeys&) {
    return Status(ErrorCode::kInvalid, std::string(where) + ": an object has more than 4096 keys");
  } catch (const nlohmann::json::exception& error) {
    return Status(ErrorCode::kInvalid, std::string(where) + ": not valid JSON: " + error.what());
  }
}

}  // namespace fixit
