#include "core/config/yaml_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>

#include "core/config/config_files.h"

namespace fixit {
namespace {

constexpr int kMaxFaults = 20;
constexpr size_t kMaxTextBytes = 4096;

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// For messages: long or strange values are cut.
std::string shown(std::string_view text) {
  if (text.size() <= 60) return "`" + std::string(text) + "`";
  size_t cut = 57;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
  return "`" + std::string(text.substr(0, cut)) + "...`";
}

template <typename T>
std::optional<T> convert(const std::string& text) {
  try {
    return YAML::Node(text).as<T>();
  } catch (const YAML::Exception&) {
    return std::nullopt;
  }
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::string nearest_name(std::string_view wrong, const std::vector<std::string>& known) {
  if (wrong.size() > 200) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(2, wrong.size() / 3) + 1;
  for (const auto& name : known) {
    const size_t distance = name.size() > 200 ? best_distance : edit_distance(wrong, name);
    if (distance >= best_distance || distance >= name.size()) continue;
    best = name;
    best_distance = distance;
  }
  return best;
}

std::string suggestion(std::string_view wrong, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(wrong, known);
  return nearest.empty() ? "" : "; did you mean `" + nearest + "`?";
}

void YamlFaults::add(int line, std::string_view key, std::string_view what) {
  if (++count_ > kMaxFaults) return;
  if (!text_.empty()) text_ += "\n";
  text_ += fmt::format("{}:{}: {}{}{}", file_, line, key, key.empty() ? "" : ": ", what);
}

Status YamlFaults::status() const {
  if (count_ == 0) return {};
  if (count_ <= kMaxFaults) return Status(ErrorCode::kInvalid, text_);
  return Status(ErrorCode::kInvalid, fmt::format("{}\nand {} more faults", text_, count_ - kMaxFaults));
}

YamlMap::YamlMap(YamlFaults& faults, const YamlNode& node, std::string path)
    : faults_(faults), path_(std::move(path)), line_(node.line) {
  if (node.kind != YamlNode::Kind::kMap) {
    faults_.add(line_, path_,
                fmt::format("is {}; accepted: a mapping (`key: value` lines)", node.kind_name()));
    return;
  }
  for (const auto& [key, value] : node.entries) {
    if (key->kind != YamlNode::Kind::kScalar) {
      faults_.add(key->line, path_, "a key must be a plain name");
      continue;
    }
    const auto [known, added] = entries_.emplace(key->text, std::pair(key->line, value.get()));
    if (!added)
      faults_.add(key->line, path_of(shown(key->text)),
                  fmt::format("appears twice, first at line {}", known->second.first));
  }
}

std::string YamlMap::path_of(std::string_view key) const {
  if (key.empty()) return path_;
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

int YamlMap::line_of(std::string_view key) const {
  const auto found = entries_.find(std::string(key));
  return found == entries_.end() ? line_ : found->second.first;
}

void YamlMap::require(std::string_view key, std::string_view accepted) {
  if (!has(key)) fault(key, fmt::format("is missing; accepted: {}", accepted));
}

const YamlNode* YamlMap::value(std::string_view key) {
  asked_.emplace_back(key);
  const auto found = entries_.find(std::string(key));
  if (found == entries_.end()) return nullptr;
  const YamlNode* node = found->second.second;
  if (node->kind != YamlNode::Kind::kNull) return node;
  fault(key, "has no value; leave the key out for its default");
  return nullptr;
}

const YamlNode* YamlMap::scalar(std::string_view key, std::string_view accepted) {
  const YamlNode* node = value(key);
  if (node == nullptr || node->kind == YamlNode::Kind::kScalar) return node;
  fault(key, fmt::format("is {}; accepted: {}", node->kind_name(), accepted));
  return nullptr;
}

bool YamlMap::text(std::string_view key, std::string& out, const TextRule& rule) {
  const YamlNode* node = scalar(key, "a text");
  if (node == nullptr) return false;
  if (node->text.empty() && !rule.may_be_empty) {
    fault(key, "is empty");
    return false;
  }
  if (node->text.size() > rule.most_bytes) {
    fault(key, fmt::format("is longer than {} bytes", rule.most_bytes));
    return false;
  }
  out = node->text;
  return true;
}

bool YamlMap::flag(std::string_view key, bool& out) {
  const YamlNode* node = scalar(key, "true or false");
  if (node == nullptr) return false;
  const auto parsed = node->quoted ? std::nullopt : convert<bool>(node->text);
  if (!parsed) {
    fault(key, fmt::format("is {}; accepted: true or false", shown(node->text)));
    return false;
  }
  out = *parsed;
  return true;
}

bool YamlMap::integer(std::string_view key, int64_t& out, int64_t least, int64_t most) {
  const std::string accepted = fmt::format("a whole number from {} to {}", least, most);
  const YamlNode* node = scalar(key, accepted);
  if (node == nullptr) return false;
  const auto parsed = node->quoted ? std::nullopt : convert<int64_t>(node->text);
  if (!parsed || *parsed < least || *parsed > most) {
    fault(key, fmt::format("is {}; accepted: {}", shown(node->text), accepted));
    return false;
  }
  out = *parsed;
  return true;
}

bool YamlMap::integer(std::string_view key, int& out, int least, int most) {
  int64_t wide = 0;
  if (!integer(key, wide, least, most)) return false;
  out = static_cast<int>(wide);
  return true;
}

bool YamlMap::number(std::string_view key, double& out, const Range& range) {
  const std::string accepted = fmt::format("a number {} {} and at most {}",
                                           range.above ? "above" : "of at least", range.least, range.most);
  const YamlNode* node = scalar(key, accepted);
  if (node == nullptr) return false;
  const auto parsed = node->quoted ? std::nullopt : convert<double>(node->text);
  const bool inside = parsed && std::isfinite(*parsed) && *parsed <= range.most &&
                      (range.above ? *parsed > range.least : *parsed >= range.least);
  if (!inside) {
    fault(key, fmt::format("is {}; accepted: {}", shown(node->text), accepted));
    return false;
  }
  out = *parsed;
  return true;
}

bool YamlMap::choice(std::string_view key, std::string& out, const std::vector<std::string>& accepted) {
  const YamlNode* node = scalar(key, joined(accepted));
  if (node == nullptr) return false;
  if (std::find(accepted.begin(), accepted.end(), node->text) == accepted.end()) {
    fault(key, fmt::format("is {}; accepted: {}{}", shown(node->text), joined(accepted),
                           suggestion(node->text, accepted)));
    return false;
  }
  out = node->text;
  return true;
}

bool YamlMap::texts(std::string_view key, std::vector<std::string>& out) {
  const YamlNode* node = value(key);
  if (node == nullptr) return false;
  out.clear();
  read_texts(faults_, *node, path_of(key), out);
  return true;
}

void YamlMap::finish(const std::map<std::string, std::string>& absent) {
  for (const auto& [key, entry] : entries_) {
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    const auto told = absent.find(key);
    if (told != absent.end()) {
      faults_.add(entry.first, path_of(key), told->second);
      continue;
    }
    const std::string near = suggestion(key, asked_);
    const std::string help = near.empty() ? "; accepted: " + joined(asked_) : near;
    faults_.add(entry.first, path_of(shown(key)), "unknown key" + help);
  }
}

void read_texts(YamlFaults& faults, const YamlNode& node, const std::string& path,
                std::vector<std::string>& out, std::map<std::string, int>* lines) {
  const auto add = [&](const YamlNode& item, const std::string& name) {
    if (item.kind != YamlNode::Kind::kScalar || item.text.empty() || item.text.size() > kMaxTextBytes) {
      faults.add(item.line, name, fmt::format("is {}; accepted: a text that is not empty", item.kind_name()));
      return;
    }
    if (lines != nullptr) (*lines)[fmt::format("{}[{}]", path, out.size())] = item.line;
    out.push_back(item.text);
  };
  if (node.kind == YamlNode::Kind::kScalar) return add(node, path);
  if (node.kind != YamlNode::Kind::kSequence) {
    faults.add(node.line, path, fmt::format("is {}; accepted: a list", node.kind_name()));
    return;
  }
  for (size_t i = 0; i < node.items.size(); ++i) add(*node.items[i], fmt::format("{}[{}]", path, i));
}

}  // namespace fixit
