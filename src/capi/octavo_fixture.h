// octavo_fixture.h - octavo.h with owning pointers and JSON, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/fields/json_text.h"
#include "octavo.h"

namespace octavo::capi {

using api::Json;
using EnginePtr = std::unique_ptr<octavo_engine, decltype(&octavo_engine_free)>;
using StreamPtr = std::unique_ptr<octavo_stream, decltype(&octavo_stream_free)>;

struct Failure {
  octavo_status status = OCTAVO_OK;
  int code = 0;
  std::string param = {};
  std::string message = {};
};

inline Failure taken(octavo_status status, octavo_error* error) {
  const Failure failure{status, octavo_error_code(error), octavo_error_param(error),
                        octavo_error_message(error)};
  octavo_error_free(error);
  return failure;
}

inline EnginePtr open_fake(const char* options = "{}") {
  octavo_engine* engine = nullptr;
  EXPECT_EQ(octavo_open("fake", options, nullptr, nullptr, &engine, nullptr), OCTAVO_OK);
  return {engine, octavo_engine_free};
}

inline StreamPtr submit(octavo_engine* engine, const char* kind, const Json& body,
                        Failure* failure = nullptr) {
  octavo_stream* stream = nullptr;
  octavo_error* error = nullptr;
  const octavo_status status =
      octavo_submit(engine, kind, api::dump(body).c_str(), &stream, &error);
  const Failure result = taken(status, error);
  if (failure != nullptr) *failure = result;
  return {stream, octavo_stream_free};
}

// Null after the last event.
inline Json next(octavo_stream* stream) {
  char* event = nullptr;
  if (octavo_next(stream, -1, &event, nullptr) != OCTAVO_OK) return nullptr;
  Json json = Json::parse(event);
  octavo_string_free(event);
  return json;
}

inline std::vector<Json> events_of(octavo_stream* stream) {
  std::vector<Json> events;
  for (Json event = next(stream); !event.is_null(); event = next(stream)) events.push_back(event);
  return events;
}

struct Joined {
  std::string text = {};
  std::vector<int> tokens = {};
  Json finish_reason = {};
  bool operator==(const Joined&) const = default;
};

// Of the first choice.
inline Joined joined(octavo_stream* stream) {
  Joined all;
  for (const Json& event : events_of(stream)) {
    if (event["type"] != "answer") continue;
    for (const Json& choice : event["choices"]) {
      if (choice["index"] != 0) continue;
      all.text += choice["text"].get<std::string>();
      for (const Json& token : choice["token_ids"]) all.tokens.push_back(token.get<int>());
      all.finish_reason = choice["finish_reason"];
    }
  }
  return all;
}

}  // namespace octavo::capi
