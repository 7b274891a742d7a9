#include "worker/llm/chat_answer.h"

#include <algorithm>
#include <exception>

namespace fixit {
namespace {

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

int64_t count_of(const Json& object, const char* key) {
  const Json* value = member(object, key);
  if (value == nullptr || !value->is_number()) return 0;
  const double number = value->get<double>();
  return number > 0 && number < 1e15 ? static_cast<int64_t>(number) : 0;
}

std::string text_of(const Json* value) {
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

// `content` is a string, or a list of parts of which those of type text hold text.
void append_content(const Json* content, std::string& text) {
  if (content == nullptr) return;
  if (content->is_string()) text += content->get_ref<const std::string&>();
  if (!content->is_array()) return;
  for (const Json& part : *content) text += text_of(member(part, "text"));
}

std::optional<ProviderError> error_of(const Json& document) {
  const Json* error = member(document, "error");
  if (error == nullptr) return std::nullopt;
  ProviderError result;
  if (error->is_string()) {
    result.message = error->get<std::string>();
    return result;
  }
  result.message = text_of(member(*error, "message"));
  const Json* code = member(*error, "code");
  result.code = text_of(code);
  if (code != nullptr && code->is_number())
    result.status = static_cast<int>(std::min<int64_t>(count_of(*error, "code"), 999));
  if (result.code.empty()) result.code = text_of(member(*error, "type"));
  return result;
}

// Json, or discarded where the text is none.
Json parse(std::string_view text) {
  return Json::parse(text, nullptr, false);
}

int64_t tokens_of(size_t bytes) {
  return static_cast<int64_t>((bytes + 3) / 4);
}

}  // namespace

void ChatAnswer::add_event(std::string_view data) {
  if (data != "[DONE]") add(parse(data), "delta");
}

void ChatAnswer::add_document(std::string_view body) {
  add(parse(body), "message");
}

void ChatAnswer::add(const Json& document, const char* part) {
  if (!document.is_object()) {
    malformed_ = true;
    return;
  }
  if (auto error = error_of(document)) error_ = std::move(error);
  if (const Json* usage = member(document, "usage")) add_usage(*usage);
  const Json* choices = member(document, "choices");
  if (choices == nullptr || !choices->is_array()) return;
  for (const Json& choice : *choices) {
    if (count_of(choice, "index") != 0) continue;
    if (const Json* delta = member(choice, part)) {
      append_content(member(*delta, "content"), text_);
      // some providers send the same reasoning in both fields
      const std::string reasoning = text_of(member(*delta, "reasoning_content"));
      reasoning_ += reasoning.empty() ? text_of(member(*delta, "reasoning")) : reasoning;
    }
    const std::string reason = text_of(member(choice, "finish_reason"));
    if (!reason.empty()) finish_reason_ = reason;
  }
}

void ChatAnswer::add_usage(const Json& usage) {
  if (!usage.is_object()) return;
  TokenUsage found;
  found.prompt = count_of(usage, "prompt_tokens");
  found.completion = count_of(usage, "completion_tokens");
  if (const Json* details = member(usage, "prompt_tokens_details"))
    found.cached = std::min(found.prompt, count_of(*details, "cached_tokens"));
  if (const Json* details = member(usage, "completion_tokens_details"))
    found.reasoning = std::min(found.completion, count_of(*details, "reasoning_tokens"));
  if (found.prompt > 0 || found.completion > 0) usage_ = found;
}

ChatReply ChatAnswer::take_reply(const ChatRequest& request) {
  ChatReply reply;
  reply.text = std::move(text_);
  reply.reasoning = std::move(reasoning_);
  reply.finish_reason = finish_reason_;
  separate_thinking(reply);
  reply.usage = usage_ ? *usage_ : estimate_usage(request, reply);
  reply.cost_usd = cost_usd(request.model, reply.usage);
  return reply;
}

std::optional<ProviderError> parse_provider_error(std::string_view body) {
  const Json document = parse(body);
  if (!document.is_object()) return std::nullopt;
  if (auto error = error_of(document)) return error;
  ProviderError plain;  // vLLM's older form: the error is the document
  plain.message = text_of(member(document, "message"));
  plain.code = text_of(member(document, "type"));
  if (plain.message.empty()) return std::nullopt;
  return plain;
}

void separate_thinking(ChatReply& reply) {
  constexpr std::string_view kOpen = "<think>";
  constexpr std::string_view kClose = "</think>";
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = reply.text.find_first_not_of(kSpace);
  if (begin == std::string::npos || reply.text.compare(begin, kOpen.size(), kOpen) != 0) return;
  const size_t inside = begin + kOpen.size();
  const size_t end = reply.text.find(kClose, inside);
  if (!reply.reasoning.empty()) reply.reasoning += "\n";
  reply.reasoning += reply.text.substr(inside, end == std::string::npos ? end : end - inside);
  const size_t rest =
      end == std::string::npos ? end : reply.text.find_first_not_of(kSpace, end + kClose.size());
  reply.text.erase(0, rest);
}

TokenUsage estimate_usage(const ChatRequest& request, const ChatReply& reply) {
  size_t prompt = 0;
  for (const ChatMessage& message : request.messages) prompt += message.content.size();
  TokenUsage usage;
  usage.prompt = tokens_of(prompt);
  usage.reasoning = tokens_of(reply.reasoning.size());
  usage.completion = tokens_of(reply.text.size()) + usage.reasoning;
  return usage;
}

double cost_usd(const ModelConfig& model, const TokenUsage& usage) {
  const auto price = [](int64_t tokens, double usd_per_million) {
    return static_cast<double>(tokens) * usd_per_million / 1e6;
  };
  return price(usage.prompt - usage.cached, model.usd_per_million_prompt) +
         price(usage.cached, model.usd_per_million_cached) +
         price(usage.completion, model.usd_per_million_completion);
}

}  // namespace fixit
