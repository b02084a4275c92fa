/* octavo.h - C API of the Octavo inference engine.
 *
 * Runs a model inside the calling process, without a server. Requests are the JSON bodies that
 * `octavo serve` accepts and are parsed by the same code, so fields, defaults, validation and error
 * messages are the same.
 *
 * A minimal caller:
 *
 *   octavo_engine* engine = NULL;
 *   octavo_stream* stream = NULL;
 *   char* event = NULL;
 *   octavo_open("model.gguf", NULL, NULL, NULL, &engine, NULL);
 *   octavo_submit(engine, "completion", "{\"prompt\": \"Hello\"}", &stream, NULL);
 *   while (octavo_next(stream, -1, &event, NULL) == OCTAVO_OK) {
 *     puts(event);
 *     octavo_string_free(event);
 *   }
 *   octavo_stream_free(stream);
 *   octavo_engine_free(engine);
 *
 * Threads: all functions are thread-safe, including concurrent calls on the same handle. The one
 * exception is freeing: no other call may use a handle while it is being freed or afterwards.
 * Functions that block say so.
 *
 * Fork: a forked child does not inherit the engine's threads. In the child, calls on the parent's
 * handles return OCTAVO_ERROR_FORKED, octavo_open() fails if the parent had called it before the
 * fork, and the free functions of engines and streams do nothing. Start child processes with spawn
 * or exec instead.
 *
 * Strings: UTF-8, terminated by a zero byte. The caller owns every `char*` it receives through an
 * output parameter and must release it with octavo_string_free().
 *
 * Errors: functions return a negative status on failure. `error` may be NULL. Otherwise *error is
 * set to NULL on success and, on failure, to an object that the caller must release with
 * octavo_error_free(). */
#ifndef OCTAVO_H
#define OCTAVO_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define OCTAVO_API __attribute__((visibility("default")))
#else
#define OCTAVO_API
#endif

#ifdef __cplusplus
#define OCTAVO_NOEXCEPT noexcept
extern "C" {
#else
#define OCTAVO_NOEXCEPT
#endif

/* Incremented when the API gains a function or a field. Existing ones do not change. */
#define OCTAVO_API_VERSION 1

typedef struct octavo_engine octavo_engine; /* a loaded model */
typedef struct octavo_stream octavo_stream; /* the response to one request */
typedef struct octavo_error octavo_error;

typedef int32_t octavo_status;
#define OCTAVO_OK 0
#define OCTAVO_END 1     /* the stream has no more events */
#define OCTAVO_TIMEOUT 2 /* the timeout expired first */

/* The request is invalid or cannot be served; octavo_error_code() returns its HTTP status. */
#define OCTAVO_ERROR_REQUEST -1
#define OCTAVO_ERROR_SETUP -2    /* a problem with the model's files, an option or this machine */
#define OCTAVO_ERROR_INTERNAL -3 /* a bug in Octavo, or out of memory */
#define OCTAVO_ERROR_FORKED -4   /* the handle belongs to the parent process */

/* Returns the API version of the loaded library. OCTAVO_API_VERSION is the version of this
 * header. */
OCTAVO_API uint32_t octavo_api_version(void) OCTAVO_NOEXCEPT;

/* Returns Octavo's version, for example "0.1.0". The string is static; do not free it. */
OCTAVO_API const char* octavo_version(void) OCTAVO_NOEXCEPT;

/* Reports bytes done and bytes in total, first for the download of the model, if it has to be
 * downloaded, then for the loading of its files. May be called on a thread of the library. Must
 * return quickly. */
typedef void (*octavo_progress)(uint64_t done, uint64_t total, void* user);

/* Loads a model. Blocks until it is ready to serve requests.
 *
 *   model         A .gguf file, a folder with config.json and safetensors files, or a name that
 *                 `octavo pull` accepts. A named model that is not on this machine is downloaded.
 *   options_json  NULL, or a JSON object whose keys are the flags of `octavo serve` with
 *                 underscores: {"max_model_len": 4096, "kv_memory": "2GiB"}. An unknown key is an
 *                 error that names it.
 *   progress      NULL, or a callback.
 *   user          Passed to `progress` unchanged.
 *   engine        Receives the handle. Release it with octavo_engine_free(). */
OCTAVO_API octavo_status octavo_open(const char* model, const char* options_json,
                                     octavo_progress progress, void* user, octavo_engine** engine,
                                     octavo_error** error) OCTAVO_NOEXCEPT;

/* Ends all open streams with finish_reason "abort" and releases the model's memory. Blocks until
 * running steps have finished. The handle stays valid, but later calls on it fail with
 * OCTAVO_ERROR_REQUEST (code 503). Closing twice is safe. */
OCTAVO_API void octavo_close(octavo_engine* engine) OCTAVO_NOEXCEPT;

/* Closes the engine and frees its handle. The engine's streams stay valid and may be freed later.
 * Does nothing if `engine` is NULL. */
OCTAVO_API void octavo_engine_free(octavo_engine* engine) OCTAVO_NOEXCEPT;

/* Returns a JSON object that describes the engine:
 *   "version", "model", "root", "max_model_len", "vocab_size", "max_num_seqs", "block_size",
 *   "can_chat", "takes_images", "pooling", "hidden_size", "system_fingerprint",
 *   "memory"              bytes by purpose
 *   "running", "waiting"  requests in progress and requests in the queue */
OCTAVO_API octavo_status octavo_engine_info(octavo_engine* engine, char** info_json,
                                            octavo_error** error) OCTAVO_NOEXCEPT;

/* Submits a request. Tokenizes on the calling thread and returns before any computation.
 *
 *   kind       "completion", "chat", "embedding" or "score"
 *   body_json  The body of POST /v1/completions, /v1/chat/completions, /v1/embeddings or /v1/score.
 *              With "stream": true, text is delivered as it is generated; otherwise it is delivered in
 *              one event. Images of a chat are data: URLs, or https: URLs of the hosts in the option
 *              "allowed_media_domains", which this call fetches. "stream_options" and "return_token_ids" have no effect.
 *   stream     Receives the handle. Release it with octavo_stream_free(). */
OCTAVO_API octavo_status octavo_submit(octavo_engine* engine, const char* kind,
                                       const char* body_json, octavo_stream** stream,
                                       octavo_error** error) OCTAVO_NOEXCEPT;

/* Returns the next event of a stream. Blocks until there is one, for at most `timeout_ms`
 * milliseconds, or without a limit if `timeout_ms` is negative.
 *
 * Events, in this order. A field marked * is present only if it was requested or has a value.
 *
 *   {"type": "begin",
 *    "id",
 *    "prompt_token_ids": [[...], ...],   one list per prompt
 *    "ignored": [...]}                   request fields that have no effect
 *
 *   {"type": "answer",                   completion and chat; many if streamed, else one
 *    "choices": [
 *      {"index",                         prompt * n + choice
 *       "text",
 *       "token_ids": [...],
 *       "finish_reason",                 null until the choice has finished
 *       "stop_reason",
 *       "logprobs": [{...}, ...],        * one object per token:
 *           {"<token id>": {"logprob", "rank", "decoded_token"}, ...}
 *       "prompt_logprobs": [null, {...}, ...],   * the same for the tokens of the prompt
 *       "reasoning",                     * chat
 *       "tool_calls": [{"index", "id", "name", "arguments"}, ...]}, ...]}   * chat
 *
 *   {"type": "embedding",                embedding; one
 *    "data": [{"index", "embedding"}, ...]}
 *
 *   {"type": "score",                    score; one
 *    "scores": [...]}                    one number per pair; null if the request was cancelled
 *
 *   {"type": "end",
 *    "usage": {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"}}
 *
 * Each streamed answer holds only what is new: concatenate the texts, token ids and arguments of a
 * choice. After the last event, every call returns OCTAVO_END. If the request fails after it was
 * submitted, one call returns the error and later calls return OCTAVO_END.
 *
 * Events are queued without limit until they are read. A slow reader does not delay the engine. */
OCTAVO_API octavo_status octavo_next(octavo_stream* stream, int64_t timeout_ms, char** event_json,
                                     octavo_error** error) OCTAVO_NOEXCEPT;

/* Waits until octavo_next() would not block on at least one of the streams, and sets *ready to the
 * index of the first such stream. `timeout_ms` is as in octavo_next(). All streams must belong to
 * the same engine, and `count` must be at least 1. */
OCTAVO_API octavo_status octavo_wait_any(octavo_stream* const* streams, size_t count,
                                         int64_t timeout_ms, size_t* ready,
                                         octavo_error** error) OCTAVO_NOEXCEPT;

/* Requests an early end: unfinished choices finish soon with finish_reason "abort". Does not block.
 * Does nothing if the stream has ended. */
OCTAVO_API void octavo_cancel(octavo_stream* stream) OCTAVO_NOEXCEPT;

/* Cancels the request, discards unread events and frees the handle. Does nothing if `stream` is
 * NULL. */
OCTAVO_API void octavo_stream_free(octavo_stream* stream) OCTAVO_NOEXCEPT;

/* Equivalent to POST /tokenize and POST /detokenize. Both run on the calling thread. */
OCTAVO_API octavo_status octavo_tokenize(octavo_engine* engine, const char* body_json,
                                         char** answer_json, octavo_error** error) OCTAVO_NOEXCEPT;
OCTAVO_API octavo_status octavo_detokenize(octavo_engine* engine, const char* body_json,
                                           char** answer_json,
                                           octavo_error** error) OCTAVO_NOEXCEPT;

/* Returns the message, for display. The string belongs to the error and is freed with it. */
OCTAVO_API const char* octavo_error_message(const octavo_error* error) OCTAVO_NOEXCEPT;

/* Returns the name of the invalid request field, or "" if the error is not about one field. The
 * string belongs to the error and is freed with it. */
OCTAVO_API const char* octavo_error_param(const octavo_error* error) OCTAVO_NOEXCEPT;

/* Returns the HTTP status that `octavo serve` would send for this error. */
OCTAVO_API int32_t octavo_error_code(const octavo_error* error) OCTAVO_NOEXCEPT;

/* Release an error or a string. Both do nothing if the argument is NULL. */
OCTAVO_API void octavo_error_free(octavo_error* error) OCTAVO_NOEXCEPT;
OCTAVO_API void octavo_string_free(char* string) OCTAVO_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
