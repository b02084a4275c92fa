#include "text/gguf_pre_tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

// Oniguruma patterns, as in each family's own tokenizer.json.
#define OCTAVO_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define OCTAVO_TAIL R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define OCTAVO_SLASH_TAIL R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define OCTAVO_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define OCTAVO_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define OCTAVO_CASED_WORD(ending)                                  \
  R"([^\r\n\p{L}\p{N}]?)" OCTAVO_UPPER "*" OCTAVO_LOWER "+" ending \
  R"(|[^\r\n\p{L}\p{N}]?)" OCTAVO_UPPER "+" OCTAVO_LOWER "*" ending

constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    OCTAVO_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})" OCTAVO_TAIL;
constexpr const char* kQwen2 = OCTAVO_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" OCTAVO_TAIL;
constexpr const char* kQwen35 = OCTAVO_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kMiniCpm5 =
    OCTAVO_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+)" OCTAVO_TAIL;
constexpr const char* kTekken = OCTAVO_CASED_WORD("") R"(|\p{N})" OCTAVO_SLASH_TAIL;
constexpr const char* kGpt4o =
    OCTAVO_CASED_WORD(OCTAVO_CONTRACTIONS "?") R"(|\p{N}{1,3})" OCTAVO_SLASH_TAIL;
constexpr const char* kYoutu =
    OCTAVO_CASED_WORD(OCTAVO_CONTRACTIONS "?") R"(|\p{N})" OCTAVO_SLASH_TAIL;
constexpr const char* kYoutuScripts =
    "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-"
    "ゟ゠-"
    "ヿ]"
    "+";
constexpr const char* kTinyAyaDigits = R"(\d{1,3}(?=(?:\d{3})*\b))";
constexpr const char* kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kSeedCoder = OCTAVO_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kExaoneMoe = OCTAVO_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kJais2 = OCTAVO_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
    R"(|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
constexpr const char* kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
constexpr const char* kCjk = "[一-龥ࠀ-一가-퟿]+";
constexpr const char* kDeepSeek3Cjk = "[一-龥぀-ゟ゠-ヿ]+";
constexpr const char* kDeepSeek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kSpark =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";
// Words include the marks of scripts that join letters, and the two joiners.
constexpr const char* kK2Horizon = OCTAVO_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}\x{200C}\x{200D}]+|\p{N}{1,3})" OCTAVO_TAIL;
// Groups of three digits from the right: 1234567 is 1, 234, 567. The first alternative is tried at
// the start of a number only, so the time is linear in its length.
constexpr const char* kAfmoeDigits = R"((?<!\p{N})\p{N}{1,2}(?=(?:\p{N}{3})*+(?!\p{N}))|\p{N}{3})";
// Blocks without spaces between words: Han, Kana, Thai, Lao, Khmer, Myanmar, Hangul.
constexpr const char* kAfmoeScripts =
    R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{30FF}\x{FF65}-\x{FF9F})"
    R"(\x{2F00}-\x{2FDF}\x{0E40}-\x{0EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F})"
    R"(\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)";
#define OCTAVO_UPPER_NOT_HAN R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
#define OCTAVO_LOWER_NOT_HAN R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
constexpr const char* kKimi =
    R"([\p{Han}]+)"
    R"(|[^\r\n\p{L}\p{N}]?)" OCTAVO_UPPER_NOT_HAN "*" OCTAVO_LOWER_NOT_HAN "+" OCTAVO_CONTRACTIONS
    "?"
    R"(|[^\r\n\p{L}\p{N}]?)" OCTAVO_UPPER_NOT_HAN "+" OCTAVO_LOWER_NOT_HAN "*" OCTAVO_CONTRACTIONS
    "?"
    R"(|\p{N}{1,3})" OCTAVO_TAIL;
constexpr const char* kDeepSeekLetters =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-)"
    R"(Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK)"
    R"(-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠)"
    R"(-𑣟𞤀-𞥃]+)";
constexpr const char* kDeepSeekPunctuation = R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)";

ordered_json split(const char* pattern) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

ordered_json digits(bool individual) {
  return {{"type", "Digits"}, {"individual_digits", individual}};
}

ordered_json punctuation(const char* behavior) {
  return {{"type", "Punctuation"}, {"behavior", behavior}};
}

// use_regex: split with GPT-2's word pattern; otherwise only map bytes to characters.
ordered_json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

GgufPreTokenizer splits(std::initializer_list<const char*> patterns) {
  GgufPreTokenizer result;
  result.stages = ordered_json::array();
  for (const char* pattern : patterns) result.stages.push_back(split(pattern));
  result.stages.push_back(byte_level(false));
  return result;
}

GgufPreTokenizer stages(std::initializer_list<ordered_json> list) {
  GgufPreTokenizer result;
  result.stages = ordered_json::array();
  for (const ordered_json& stage : list) result.stages.push_back(stage);
  return result;
}

// Spaces are U+2581 by the time merges apply, so there are no words to split.
GgufPreTokenizer raw() {
  GgufPreTokenizer result;
  result.is_raw = true;
  return result;
}

GgufPreTokenizer gpt2() { return stages({byte_level(true)}); }
GgufPreTokenizer single_digits() { return stages({digits(true), byte_level(true)}); }
GgufPreTokenizer falcon() {
  return stages(
      {punctuation("Contiguous"), byte_level(true), digits(false), split("[0-9][0-9][0-9]")});
}
GgufPreTokenizer deepseek_llm() {
  return stages({split("[\r\n]"), split(kDeepSeekLetters), split(kDeepSeekPunctuation),
                 split(R"(\s+$)"), split(kCjk), digits(false), byte_level(false)});
}
GgufPreTokenizer deepseek_coder() {
  return stages({split("[\r\n]"), split(R"(\s?\p{L}+)"), split(R"(\s?\p{P}+)"), split(kCjk),
                 digits(true), byte_level(false)});
}
GgufPreTokenizer chameleon() {
  return stages({split("<sentinel:[0-9]+>"), split("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"),
                 split("([\\t\\n]|    |  )"), digits(true), punctuation("Isolated"),
                 byte_level(true)});
}

GgufPreTokenizer nfc(GgufPreTokenizer base) {
  base.normalize_nfc = true;
  return base;
}
GgufPreTokenizer whole_words(GgufPreTokenizer base) {
  base.ignore_merges = true;
  return base;
}
GgufPreTokenizer with_bos(GgufPreTokenizer base) {
  base.add_bos = true;
  return base;
}
// For families whose converted files say that BOS is not added, although the model needs it.
GgufPreTokenizer always_with_bos(GgufPreTokenizer base) {
  base.needs_bos = true;
  return base;
}

struct Family {
  std::vector<std::string_view> names;
  GgufPreTokenizer (*make)();
};

const std::vector<Family>& families() {
  static const std::vector<Family> table = {
      // llama.cpp's own; no model was trained with it.
      {{"default"},
       [] { return splits({R"([\p{P}$+<=>^~|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}); }},
      {{"falcon"}, falcon},
      {{"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en",
        "jina-v2-code", "roberta-bpe", "gigachat", "a.x-4.0", "mellum", "modern-bert", "jais",
        "trillion", "granite-docling", "exaone4"},
       gpt2},
      {{"olmo", "mpt"}, [] { return nfc(gpt2()); }},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
        "mellum2"},
       single_digits},
      {{"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "jina-v5-nano"},
       [] { return with_bos(whole_words(splits({kLlama3}))); }},
      {{"dbrx", "smaug-bpe"}, [] { return splits({kLlama3}); }},
      {{"chatglm-bpe", "glm4", "glm5"}, [] { return whole_words(splits({kLlama3})); }},
      {{"jais-2"}, [] { return splits({kJais2}); }},
      {{"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2"},
       [] { return nfc(splits({kQwen2})); }},
      {{"hunyuan", "solar-open", "grok-2", "ufakzeka"}, [] { return splits({kQwen2}); }},
      {{"laguna"}, [] { return splits({R"([^\n]+|[\n]+)", kQwen2}); }},
      {{"qwen35"}, [] { return nfc(splits({kQwen35})); }},
      {{"minicpm5"}, [] { return whole_words(splits({R"(\p{N}{1,3})", kMiniCpm5})); }},
      {{"deepseek-llm"}, deepseek_llm},
      {{"deepseek-coder"}, deepseek_coder},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
       [] { return splits({R"(\p{N}{1,3})", kDeepSeek3Cjk, kDeepSeek3}); }},
      {{"spark2_5"}, [] { return splits({R"(\p{N})", kDeepSeek3Cjk, kSpark}); }},
      {{"k2-horizon"}, [] { return splits({kK2Horizon}); }},
      {{"afmoe"}, [] { return splits({kAfmoeDigits, kAfmoeScripts, kDeepSeek3}); }},
      {{"kimi-k2"}, [] { return whole_words(splits({kKimi})); }},
      {{"gemma4", "granite-embed-multi-311m"}, [] { return always_with_bos(raw()); }},
      {{"sarvam-moe"}, raw},
      {{"tekken"}, [] { return with_bos(whole_words(splits({kTekken}))); }},
      {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, [] { return splits({kGpt4o}); }},
      {{"granite-embed-multi-97m"}, [] { return whole_words(splits({kGpt4o})); }},
      {{"tiny_aya", "cohere2moe"}, [] { return splits({kTinyAyaDigits, kGpt4o}); }},
      {{"youtu"}, [] { return whole_words(splits({kYoutuScripts, kYoutu})); }},
      {{"poro-chat", "bloom", "gpt3-finnish"}, [] { return splits({kBloom}); }},
      {{"viking"}, [] { return stages({split(kBloom), digits(true), byte_level(false)}); }},
      {{"bailingmoe", "bailingmoe2", "llada-moe"}, [] { return splits({kBailing}); }},
      {{"seed-coder"}, [] { return splits({kSeedCoder}); }},
      {{"exaone-moe"}, [] { return splits({kExaoneMoe}); }},
      {{"superbpe"}, [] { return splits({R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"}); }},
      {{"chameleon"}, [] { return with_bos(chameleon()); }},
  };
  return table;
}

}  // namespace

GgufPreTokenizer gguf_pre_tokenizer(std::string_view name) {
  if (name.empty()) name = "default";
  for (const Family& family : families()) {
    if (std::ranges::find(family.names, name) != family.names.end()) return family.make();
  }
  throw SetupError(fmt::format(
      "tokenizer.ggml.pre is \"{}\", which is not supported. Use a safetensors checkpoint of this "
      "model, whose tokenizer.json octavo reads, or a GGUF file with a supported one: {}",
      name, fmt::join(gguf_pre_tokenizer_names(), ", ")));
}

std::vector<std::string_view> gguf_pre_tokenizer_names() {
  std::vector<std::string_view> names;
  for (const Family& family : families())
    names.insert(names.end(), family.names.begin(), family.names.end());
  std::ranges::sort(names);
  return names;
}

}  // namespace octavo
