// prompt_image.h - an image in a prompt. No MLX.
#pragma once

#include <memory>
#include <string>

namespace octavo {

struct ImagePixels;

// The prompt has grid_h rows of grid_w placeholder tokens from `offset` on, whose embeddings are the
// image's. With `row_breaks` (Pixtral), an ordinary token follows each of these rows; the last of
// them ends the image.
struct PromptImage {
  // Equal only for equal pixels that the model sees in the same way: a digest in hexadecimal.
  std::string identifier = {};
  int offset = 0;
  int grid_h = 0;  // in image tokens
  int grid_w = 0;
  bool row_breaks = false;
  std::shared_ptr<const ImagePixels> pixels = nullptr;

  int rows() const { return grid_h * grid_w; }  // of embeddings
  int length() const { return rows() + (row_breaks ? grid_h : 0); }
  int end() const { return offset + length(); }
  // Position of the last placeholder.
  int last_row() const { return end() - (row_breaks ? 2 : 1); }
};

}  // namespace octavo
