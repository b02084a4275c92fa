/* Uses octavo.h from C11 for one request. Returns 0, or the line of the failed check. */
#include "octavo.h"

#include <string.h>

static void count_progress(uint64_t done, uint64_t total, void* user) {
  if (done <= total) ++*(int*)user;
}

#define CHECK(condition) \
  do {                   \
    if (!(condition)) return __LINE__; \
  } while (0)

int ask_from_c(void) {
  octavo_engine* engine = NULL;
  octavo_stream* stream = NULL;
  octavo_error* error = NULL;
  char* event = NULL;
  int calls = 0;
  int events = 0;

  CHECK(octavo_api_version() == OCTAVO_API_VERSION);
  CHECK(octavo_open("nothing", NULL, NULL, NULL, &engine, &error) == OCTAVO_ERROR_SETUP);
  CHECK(strstr(octavo_error_message(error), "model not found") != NULL);
  octavo_error_free(error);

  CHECK(octavo_open("fake", NULL, count_progress, &calls, &engine, &error) == OCTAVO_OK);
  CHECK(error == NULL && calls == 2);
  CHECK(octavo_submit(engine, "completion", "{\"prompt\": \"a\", \"max_tokens\": 3, \"seed\": 1}", &stream, &error) == OCTAVO_OK);
  while (octavo_next(stream, -1, &event, &error) == OCTAVO_OK) {
    ++events;
    octavo_string_free(event);
  }
  CHECK(error == NULL && events == 3);
  octavo_stream_free(stream);
  octavo_engine_free(engine);
  return 0;
}
