// copying_prompts.h - prompts for models that repeat text they have seen: a passage and its copy,
// then another passage to copy.
#pragma once

#include <algorithm>
#include <array>
#include <random>
#include <string>

namespace octavo {

inline std::string random_passage(std::mt19937& random, int sentences) {
  static constexpr std::array<const char*, 16> kSentences = {
      "The harbour master wrote every ship's name into a green ledger.",
      "Rain fell on the tin roof from noon until the lamps were lit.",
      "A box of seven brass keys stood on the shelf beside the clock.",
      "Nobody in the village had ever seen the northern road in winter.",
      "She counted the coins twice and put two of them back.",
      "The recipe asks for flour, salt, warm water and a little patience.",
      "His brother sold the farm and bought a boat with a blue sail.",
      "Trains to the coast leave at nine, at noon and at six.",
      "The library closed early because the boiler had failed again.",
      "Three foxes crossed the frozen pond without a sound.",
      "Every letter in the drawer was tied with the same red string.",
      "The teacher drew a circle and asked what was missing.",
      "They painted the gate white and the window frames dark green.",
      "A long crack ran from the door to the foot of the stairs.",
      "The old map showed a bridge where there is none today.",
      "By morning the wind had turned and the fog was gone."};
  std::string text;
  for (int i = 0; i < sentences; ++i) {
    text += kSentences[random() % kSentences.size()];
    text += i + 1 < sentences ? " " : "\n";
  }
  return text;
}

inline std::string copying_prompt(std::mt19937& random, int sentences) {
  const std::string first = random_passage(random, 3);
  const std::string second = random_passage(random, sentences);
  return "Text:\n" + first + "\nThe same text again:\n" + first + "\nText:\n" + second +
         "\nThe same text again:\n";
}

inline std::string story_prompt(std::mt19937& random) {
  return random_passage(random, 2) + "\nWrite a story that begins here.\n";
}

}  // namespace octavo
