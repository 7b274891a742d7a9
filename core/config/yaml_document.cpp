#include "core/config/yaml_document.h"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "core/base/file.h"

namespace fixit {
namespace {

constexpr size_t kMaxBytes = 1u << 20;
constexpr size_t kMaxNodes = 100000;
constexpr size_t kMaxDepth = 64;

// Leaves yaml-cpp's parser from inside an event.
struct Refusal {
  int line;
  std::string what;
};

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(int first_line) : first_line_(first_line) {}
  std::shared_ptr<const YamlNode> root() const { return root_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    place(node(YamlNode::Kind::kNull, mark), anchor, mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refusal{line_of(mark), "this alias refers to what contains it"};
    place(found->second, 0, mark);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    auto scalar = node(YamlNode::Kind::kScalar, mark);
    scalar->text = value;
    scalar->quoted = tag == "!";
    if (!tag.empty() && tag != "!" && tag != "?")
      throw Refusal{line_of(mark), "tags (" + tag + ") are not accepted"};
    place(scalar, anchor, mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kSequence, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kMap, mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    std::shared_ptr<YamlNode> node;
    YAML::anchor_t anchor;
    YAML::Mark mark;
    std::shared_ptr<const YamlNode> key;  // of a map: read, its value not yet
  };

  int line_of(const YAML::Mark& mark) const { return mark.line + first_line_; }

  std::shared_ptr<YamlNode> node(YamlNode::Kind kind, const YAML::Mark& mark) {
    auto made = std::make_shared<YamlNode>();
    made->kind = kind;
    made->line = line_of(mark);
    return made;
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (stack_.size() >= kMaxDepth) throw Refusal{line_of(mark), "nested deeper than 64 levels"};
    stack_.push_back({node(kind, mark), anchor, mark, nullptr});
  }

  void close() {
    const Open done = std::move(stack_.back());
    stack_.pop_back();
    place(done.node, done.anchor, done.mark);
  }

  void place(std::shared_ptr<const YamlNode> child, YAML::anchor_t anchor, const YAML::Mark& mark) {
    if (anchor != 0) anchors_[anchor] = child;
    if (stack_.empty()) {
      root_ = std::move(child);
      return;
    }
    Open& parent = stack_.back();
    parent.node->expanded += child->expanded;
    if (parent.node->expanded > kMaxNodes)
      throw Refusal{line_of(mark), "more than 100000 values, aliases written out"};
    if (parent.node->kind == YamlNode::Kind::kSequence) {
      parent.node->items.push_back(std::move(child));
    } else if (parent.key == nullptr) {
      parent.key = std::move(child);
    } else {
      parent.node->entries.emplace_back(std::move(parent.key), std::move(child));
      parent.key = nullptr;
    }
  }

  int first_line_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, std::shared_ptr<const YamlNode>> anchors_;
  std::shared_ptr<const YamlNode> root_;
};

Status refuse(std::string_view file, int line, const std::string& what) {
  return Status(ErrorCode::kInvalid, std::string(file) + ":" + std::to_string(line) + ": " + what);
}

// yaml-cpp takes the byte 0x04 for the end of the file and replaces what is not UTF-8 in silence.
std::optional<Status> check_bytes(std::string_view text, std::string_view file, int first_line) {
  int line = first_line;
  for (const char c : text) {
    if (c == '\n') ++line;
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f)
      return refuse(file, line, "a control character; configuration files are UTF-8 text");
  }
  try {
    (void)nlohmann::json(text).dump();  // the library's own strict check
  } catch (const nlohmann::json::exception&) {
    return refuse(file, first_line, "the file is not UTF-8 text");
  }
  return std::nullopt;
}

}  // namespace

std::string_view YamlNode::kind_name() const {
  switch (kind) {
    case Kind::kNull:
      return "empty";
    case Kind::kScalar:
      return "a single value";
    case Kind::kSequence:
      return "a list";
    case Kind::kMap:
      return "a mapping";
  }
  return "?";
}

Result<std::shared_ptr<const YamlNode>> parse_yaml(std::string_view text, std::string_view file,
                                                   int first_line) {
  if (text.size() > kMaxBytes) return refuse(file, first_line, "the file is larger than 1 MiB");
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (auto bad = check_bytes(text, file, first_line)) return *bad;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(first_line);
    if (!parser.HandleNextDocument(builder) || builder.root() == nullptr)
      return refuse(file, first_line, "the file holds no YAML document");
    TreeBuilder second(first_line);
    if (parser.HandleNextDocument(second)) {
      const int line = second.root() == nullptr ? first_line : second.root()->line;
      return refuse(file, line, "a second YAML document begins; one file holds one");
    }
    return builder.root();
  } catch (const Refusal& refusal) {
    return refuse(file, refusal.line, refusal.what);
  } catch (const YAML::Exception& error) {
    return refuse(file, error.mark.is_null() ? first_line : error.mark.line + first_line,
                  "not valid YAML: " + error.msg);
  } catch (const std::exception& error) {
    return refuse(file, first_line, std::string("not valid YAML: ") + error.what());
  }
}

Result<std::shared_ptr<const YamlNode>> load_yaml(const std::filesystem::path& file) {
  FIXIT_ASSIGN_OR_RETURN(const std::string text, read_file(file, kMaxBytes));
  return parse_yaml(text, file.string());
}

}  // namespace fixit
