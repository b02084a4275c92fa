/* octavo.h - octavo's engine in your own process, as a C library.
 *
 * Pure C, no exceptions, opaque handles. What is asked for is the JSON body `octavo serve` takes,
 * read by the same code: the same names, defaults, checks and errors.
 *
 * Threads: every function may be called from any thread at any time, also on the same handle,
 * except that nothing may use a handle while or after it is freed. Blocking calls say so.
 *
 * Processes: after fork() the child has none of the threads that compute. There, handles of the
 * parent give OCTAVO_ERROR_FORKED and no engine can be opened once the parent had one; freeing does
 * nothing. Start children with spawn or exec.
 *
 * Strings are UTF-8 and end with a zero byte. Those handed out are the caller's:
 * octavo_string_free(). An `error` may be NULL; else it is set to NULL or, with a status below
 * zero, to an error to be freed. */
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

/* Grows when something is added. What a version has stays as it is. */
#define OCTAVO_API_VERSION 1

typedef struct octavo_engine octavo_engine; /* one loaded model */
typedef struct octavo_stream octavo_stream; /* the answer to one request */
typedef struct octavo_error octavo_error;

typedef int32_t octavo_status;
#define OCTAVO_OK 0
#define OCTAVO_END 1     /* the stream has said all */
#define OCTAVO_TIMEOUT 2 /* nothing came in time */
#define OCTAVO_ERROR_REQUEST \
  -1 /* the request cannot be served as asked: octavo_error_code() is its HTTP status */
#define OCTAVO_ERROR_SETUP -2    /* the files, an option or this machine does not allow it */
#define OCTAVO_ERROR_INTERNAL -3 /* a fault of octavo's own, or no memory */
#define OCTAVO_ERROR_FORKED -4   /* the handle belongs to the parent process */

/* What the library has; the header's is OCTAVO_API_VERSION. */
OCTAVO_API uint32_t octavo_api_version(void) OCTAVO_NOEXCEPT;
/* Octavo's own, like "0.1.0". Not to be freed. */
OCTAVO_API const char* octavo_version(void) OCTAVO_NOEXCEPT;

/* Bytes downloaded so far and in all while a model is fetched; then those of its files read. Called
 * on a thread of the library's; must return soon. */
typedef void (*octavo_progress)(uint64_t done, uint64_t total, void* user);

/* Loads a model. Blocks until it is ready.
 *   model         a .gguf file, a folder with config.json and safetensors, or a name as `octavo
 *                 pull` takes it: it is downloaded when it is not on this machine
 *   options_json  NULL, or an object under the names of `octavo serve`'s flags, with underscores:
 *                 {"max_model_len": 4096, "kv_memory": "2GiB"}. One that is not known is an error
 *                 that names it
 *   progress      or NULL */
OCTAVO_API octavo_status octavo_open(const char* model, const char* options_json,
                                     octavo_progress progress, void* user, octavo_engine** engine,
                                     octavo_error** error) OCTAVO_NOEXCEPT;
/* Ends every open stream (finish_reason "abort") and gives the model's memory back. Blocks until
 * steps that run are done. The handle stays: what is asked of it from now on is refused. Again:
 * does nothing. */
OCTAVO_API void octavo_close(octavo_engine* engine) OCTAVO_NOEXCEPT;
/* Closes, and frees the handle. Streams have handles of their own and may be freed later. NULL:
 * does nothing. */
OCTAVO_API void octavo_engine_free(octavo_engine* engine) OCTAVO_NOEXCEPT;

/* {"version", "model", "max_model_len", "vocab_size", "can_chat", "pooling", "system_fingerprint",
 * "memory", "running", ...} */
OCTAVO_API octavo_status octavo_engine_info(octavo_engine* engine, char** info_json,
                                            octavo_error** error) OCTAVO_NOEXCEPT;

/* Asks. Tokenizes on the calling thread, and returns before anything is computed.
 *   kind       "completion", "chat" or "embedding"
 *   body_json  as POST /v1/completions, /v1/chat/completions or /v1/embeddings takes it. With
 * "stream": true the answer comes piece by piece, else whole; "stream_options" and
 * "return_token_ids" change nothing. */
OCTAVO_API octavo_status octavo_submit(octavo_engine* engine, const char* kind,
                                       const char* body_json, octavo_stream** stream,
                                       octavo_error** error) OCTAVO_NOEXCEPT;

/* The stream's next event. Blocks for at most `timeout_ms` milliseconds; below zero: until there is
 * one.
 *   {"type": "begin", "id", "prompt_token_ids": [[...]], "ignored": [fields that change nothing]}
 *   {"type": "answer", "choices": [{"index", "text", "token_ids": [...], "finish_reason",
 * "stop_reason", "logprobs": [{"<token id>": {"logprob", "rank", "decoded_token"}}],   when asked
 * for "prompt_logprobs": [null, {...}],                                     when asked for
 *       "reasoning", "tool_calls": [{"index", "id", "name", "arguments"}]}]}  of a chat, where
 * there are any
 *   {"type": "embedding", "data": [{"index", "embedding"}]}
 *   {"type": "end", "usage": {"prompt_tokens", "completion_tokens", "total_tokens",
 * "prompt_tokens_details"}} `index` is prompt * n + choice. Of a stream an answer has what is new
 * of each choice: texts, ids and arguments are to be joined. After the end: OCTAVO_END, always.
 * Events wait for as long as nobody takes them; the engine waits for nobody. */
OCTAVO_API octavo_status octavo_next(octavo_stream* stream, int64_t timeout_ms, char** event_json,
                                     octavo_error** error) OCTAVO_NOEXCEPT;
/* Waits until octavo_next() would not block for one of the streams, all of one engine, and gives
 * its place. Blocks as octavo_next(). */
OCTAVO_API octavo_status octavo_wait_any(octavo_stream* const* streams, size_t count,
                                         int64_t timeout_ms, size_t* ready,
                                         octavo_error** error) OCTAVO_NOEXCEPT;
/* Ends the answer soon: its choices finish with "abort". Harmless when it has ended. */
OCTAVO_API void octavo_cancel(octavo_stream* stream) OCTAVO_NOEXCEPT;
/* Cancels, and forgets what was not taken. NULL: does nothing. */
OCTAVO_API void octavo_stream_free(octavo_stream* stream) OCTAVO_NOEXCEPT;

/* As POST /tokenize and /detokenize, on the calling thread. */
OCTAVO_API octavo_status octavo_tokenize(octavo_engine* engine, const char* body_json,
                                         char** answer_json, octavo_error** error) OCTAVO_NOEXCEPT;
OCTAVO_API octavo_status octavo_detokenize(octavo_engine* engine, const char* body_json,
                                           char** answer_json,
                                           octavo_error** error) OCTAVO_NOEXCEPT;

/* For people. Lives as long as the error. */
OCTAVO_API const char* octavo_error_message(const octavo_error* error) OCTAVO_NOEXCEPT;
/* The field at fault, or "". */
OCTAVO_API const char* octavo_error_param(const octavo_error* error) OCTAVO_NOEXCEPT;
/* The HTTP status `octavo serve` would have answered with. */
OCTAVO_API int32_t octavo_error_code(const octavo_error* error) OCTAVO_NOEXCEPT;
OCTAVO_API void octavo_error_free(octavo_error* error) OCTAVO_NOEXCEPT;
OCTAVO_API void octavo_string_free(char* string) OCTAVO_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
