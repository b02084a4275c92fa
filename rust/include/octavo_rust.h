/* octavo_rust.h - C functions for tokenizers, grammars, chat templates and SHA-256 in Rust.
 *
 * Every function returns a status; outputs are written only on OCTAVO_RUST_OK. Handles are
 * immutable and may be used from several threads at once, except matchers. Text is UTF-8 with a
 * size; it may contain NUL and has no terminator. The caller frees what it owns exactly once, with
 * the matching free function. `error` may be null; otherwise it receives text owned by the caller
 * if the status is not OCTAVO_RUST_OK. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum octavo_rust_status {
  OCTAVO_RUST_OK = 0,
  OCTAVO_RUST_REFUSED = 1, /* the input is invalid; `error` explains why */
  OCTAVO_RUST_RAISED = 2,  /* a template called raise_exception; `error` is its message */
  OCTAVO_RUST_LIMIT = 3,   /* a template or grammar exceeded a limit on steps or size */
  OCTAVO_RUST_BUG = 4,     /* a panic was caught */
  OCTAVO_RUST_STOPPED = 5  /* the caller's callback stopped the operation */
} octavo_rust_status;

typedef struct octavo_text {
  char* data;
  size_t size;
} octavo_text;

typedef struct octavo_ids {
  uint32_t* data;
  size_t size;
} octavo_ids;

octavo_rust_status octavo_text_free(octavo_text text);
octavo_rust_status octavo_ids_free(octavo_ids ids);

/* digest: 32 bytes. */
octavo_rust_status octavo_sha256(const uint8_t* data, size_t size, uint8_t* digest);

/* A tokenizer, from the bytes of a tokenizer.json. Its truncation and padding are ignored. */
typedef struct octavo_tokenizer octavo_tokenizer;

octavo_rust_status octavo_tokenizer_new(const char* json, size_t json_size, octavo_tokenizer** out,
                                        octavo_text* error);
octavo_rust_status octavo_tokenizer_free(octavo_tokenizer* tokenizer);
/* A tokenizer.json that gives the same tokenizer. */
octavo_rust_status octavo_tokenizer_json(const octavo_tokenizer* handle, octavo_text* out,
                                         octavo_text* error);
octavo_rust_status octavo_tokenizer_encode(const octavo_tokenizer* tokenizer, const char* text,
                                           size_t text_size, bool add_special_tokens,
                                           octavo_ids* out, octavo_text* error);
/* Encodes the text without its markers (a Unicode character). An added token with a marker inside
 * its spelling is encoded as text. */
octavo_rust_status octavo_tokenizer_encode_marked(const octavo_tokenizer* tokenizer,
                                                  const char* text, size_t text_size,
                                                  uint32_t marker, bool add_special_tokens,
                                                  octavo_ids* out, octavo_text* error);
/* Two texts with the special tokens of a pair. second_text: the index of the first token of type 1, or
 * 0. If max_tokens is not 0, the longer text is cut at its end until the pair fits, then both. */
octavo_rust_status octavo_tokenizer_encode_pair(const octavo_tokenizer* tokenizer,
                                                const char* const texts[2],
                                                const size_t text_sizes[2], size_t max_tokens,
                                                octavo_ids* out, size_t* second_text,
                                                octavo_text* error);
/* A JSON array with the spellings of the tokens marked special. */
octavo_rust_status octavo_tokenizer_special_tokens(const octavo_tokenizer* tokenizer,
                                                   octavo_text* out);
/* Ids outside the vocabulary are ignored. */
octavo_rust_status octavo_tokenizer_decode(const octavo_tokenizer* tokenizer, const uint32_t* ids,
                                           size_t count, bool skip_special_tokens, octavo_text* out,
                                           octavo_text* error);
octavo_rust_status octavo_tokenizer_token_to_id(const octavo_tokenizer* tokenizer, const char* text,
                                                size_t text_size, bool* found, uint32_t* id);
octavo_rust_status octavo_tokenizer_id_to_token(const octavo_tokenizer* tokenizer, uint32_t id,
                                                bool* found, octavo_text* out);
/* One past the largest id, added tokens included. */
octavo_rust_status octavo_tokenizer_vocab_size(const octavo_tokenizer* tokenizer, size_t* size);
octavo_rust_status octavo_tokenizer_is_special(const octavo_tokenizer* tokenizer, uint32_t id,
                                               bool* special);

/* State shared by all grammars over one vocabulary. The tokenizer need not outlive it. */
typedef struct octavo_grammar_env octavo_grammar_env;

/* vocab_size: the width of the model's logits; ids unknown to the tokenizer are never allowed. */
octavo_rust_status octavo_grammar_env_new(const octavo_tokenizer* tokenizer, size_t vocab_size,
                                          const uint32_t* stop_tokens, size_t stop_token_count,
                                          octavo_grammar_env** out, octavo_text* error);
octavo_rust_status octavo_grammar_env_free(octavo_grammar_env* env);

typedef enum octavo_grammar_kind {
  OCTAVO_JSON_SCHEMA = 0,
  OCTAVO_JSON_OBJECT = 1, /* no text */
  OCTAVO_REGEX = 2,
  OCTAVO_CHOICE = 3, /* a JSON array of strings */
  OCTAVO_LARK = 4
} octavo_grammar_kind;

typedef struct octavo_grammar_source {
  octavo_grammar_kind kind;
  const char* text;
  size_t text_size;
  /* Whitespace within JSON: none, a regex, or (size 0) the default. */
  bool no_whitespace;
  const char* whitespace;
  size_t whitespace_size;
} octavo_grammar_source;

/* A compiled grammar. OCTAVO_RUST_LIMIT: it is too large. The env need not outlive it. */
typedef struct octavo_grammar octavo_grammar;

octavo_rust_status octavo_grammar_new(const octavo_grammar_env* env,
                                      const octavo_grammar_source* source, octavo_grammar** out,
                                      octavo_text* error);
octavo_rust_status octavo_grammar_free(octavo_grammar* grammar);
/* A grammar with a lexer of its own. All matchers of a grammar share its lexer, which grows with use
 * and fails for all of them if it reaches a limit, so each request takes a copy. */
octavo_rust_status octavo_grammar_copy(const octavo_grammar* grammar, octavo_grammar** out,
                                       octavo_text* error);
/* An estimate of the memory that it and its matchers hold now. */
octavo_rust_status octavo_grammar_bytes(const octavo_grammar* grammar, size_t* out,
                                        octavo_text* error);

/* The state of one answer. One thread at a time. The grammar need not outlive it. Matchers of one
 * grammar may be used at the same time and then wait for each other. */
typedef struct octavo_matcher octavo_matcher;

octavo_rust_status octavo_matcher_new(const octavo_grammar* grammar, octavo_matcher** out,
                                      octavo_text* error);
octavo_rust_status octavo_matcher_free(octavo_matcher* matcher);
/* Sets bit t % 32 of word t / 32 if token t is allowed next; no bit is set if none is. Stop tokens
 * are allowed wherever the grammar can end. */
octavo_rust_status octavo_matcher_mask(octavo_matcher* matcher, uint32_t* words, size_t word_count,
                                       octavo_text* error);
/* A token that is not accepted leaves the state unchanged. */
octavo_rust_status octavo_matcher_accept(octavo_matcher* matcher, uint32_t token, bool* accepted,
                                         octavo_text* error);
/* Undoes the last `tokens` accepted tokens. */
octavo_rust_status octavo_matcher_take_back(octavo_matcher* matcher, size_t tokens,
                                            octavo_text* error);

/* A chat template with the filters, tests and functions that transformers provides. */
typedef struct octavo_template octavo_template;

typedef struct octavo_template_limits {
  uint64_t output_bytes; /* per rendering */
  uint64_t stack_bytes;  /* reserved, not committed, while compiling and rendering */
} octavo_template_limits;

octavo_rust_status octavo_template_new(const char* source, size_t source_size,
                                       octavo_template_limits limits, octavo_template** out,
                                       octavo_text* error);
octavo_rust_status octavo_template_free(octavo_template* handle);
/* `context` is a JSON object with the template's variables. `steps` limits the instructions.
 * Setting `stop` (may be null; an atomic flag) from another thread ends the rendering soon, with
 * OCTAVO_RUST_STOPPED. */
octavo_rust_status octavo_template_render(const octavo_template* handle, const char* context,
                                          size_t context_size, uint64_t steps, const bool* stop,
                                          octavo_text* out, octavo_text* error);

#ifdef __cplusplus
}
#endif
