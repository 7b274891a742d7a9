// What a failed call means: try again, give up, or the context is full.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "worker/llm/chat_answer.h"
#include "worker/llm/llm_client.h"

namespace fixit {

// Of an HTTP status other than 2xx, or of an error inside an answer (`http_status` 200).
//   400, 413, 422 with words about the context's length, whatever the status with code
//   context_length_exceeded
//     -> kContextExhausted
//   408, 409, 425, 429, 5xx, and errors inside an answer with none of the above -> kLlmTransient
//   everything else -> kLlmFatal
TurnStatus classify_fault(int http_status, const ProviderError& error);

// "HTTP 429: words", one line of at most 400 bytes with every occurrence of `key` taken out.
std::string describe_fault(int http_status, const ProviderError& error, const std::string& key);

// `text` without `key`.
std::string redact(std::string text, const std::string& key);

// How long to wait before attempt `next_attempt` (2 is the first retry): `retry_after_ms` and a little more
// where the provider named it, else full jitter: uniform in [0, min(cap, base * 2^(next_attempt - 2))].
// `uniform` is a random number in [0, 1).
int64_t retry_delay_ms(int next_attempt, std::optional<int64_t> retry_after_ms, double uniform);

}  // namespace fixit
