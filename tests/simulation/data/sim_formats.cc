#include "tests/simulation/data/sim_formats.h"

#include <utility>

#include "common/base/check.h"

namespace satrap::simulation::formats {
namespace {

constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;  // G of docs/formats.md

// Variant 13 of Stafford's mixers of 64 bits.
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// The three nested mixes that docs/formats.md, "Random numbers", specifies, from the inside out.
uint64_t CounterBits(uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t first = Mix(a + kGoldenRatio);
  const uint64_t second = Mix(first ^ b);
  return Mix(second + kGoldenRatio * (c + 1));
}

uint64_t RotatedLeft(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

uint64_t LittleEndian(const std::string& text, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(text[at + i]);
  return value;
}

}  // namespace

// The steps of the XXH64 specification for inputs of fewer than 32 bytes, which have no stripes.
uint64_t XxHash64OfShortText(const std::string& text) {
  CHECK(text.size() < 32) << text;
  constexpr uint64_t p1 = 11400714785074694791u, p2 = 14029467366897019727u;
  constexpr uint64_t p3 = 1609587929392839161u, p4 = 9650029242287828579u;
  constexpr uint64_t p5 = 2870177450012600261u;
  uint64_t acc = p5 + text.size();
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    acc ^= RotatedLeft(LittleEndian(text, at, 8) * p2, 31) * p1;
    acc = RotatedLeft(acc, 27) * p1 + p4;
  }
  if (at + 4 <= text.size()) {
    acc ^= LittleEndian(text, at, 4) * p1;
    acc = RotatedLeft(acc, 23) * p2 + p3;
    at += 4;
  }
  for (; at < text.size(); ++at) {
    acc ^= LittleEndian(text, at, 1) * p5;
    acc = RotatedLeft(acc, 11) * p1;
  }
  acc = (acc ^ acc >> 33) * p2;
  acc = (acc ^ acc >> 29) * p3;
  return acc ^ acc >> 32;
}

uint64_t KeyOfText(const std::string& text, const std::string& space) {
  return Mix(XxHash64OfShortText(text) ^ XxHash64OfShortText(space));
}

int OwnerOfKey(uint64_t key, int num_ps) {
  const uint64_t partition = key >> 52;
  return static_cast<int>(partition * static_cast<uint64_t>(num_ps) / 4096);
}

std::vector<uint32_t> ShuffledRows(uint64_t seed, uint32_t epoch, uint32_t split, uint64_t block,
                                   uint32_t rows) {
  std::vector<uint32_t> order;
  for (uint32_t row = 0; row < rows; ++row) order.push_back(row);
  uint64_t state = CounterBits(CounterBits(seed, epoch, split), block, 0);
  for (uint32_t place = rows; place > 1; --place) {
    state += kGoldenRatio;
    // floor(draw * place / 2^64), computed from halves of 32 bits.
    const uint64_t draw = Mix(state);
    const uint64_t low = (draw & 0xffffffff) * place;
    const uint64_t chosen = ((draw >> 32) * place + (low >> 32)) >> 32;
    std::swap(order[place - 1], order[chosen]);
  }
  return order;
}

std::vector<uint64_t> UniformCandidates(uint64_t seed, const DrawnPart& of, int count,
                                        uint64_t classes) {
  const uint64_t of_candidates = Mix(seed ^ 0x43414e4449444154);  // "CANDIDAT"
  uint64_t counter = Mix(of.epoch);
  counter = Mix(counter ^ of.lane);
  counter = Mix(counter ^ of.seq);
  if (of.part.has_value()) counter = Mix(counter ^ *of.part);
  std::vector<uint64_t> drawn;
  for (int draw = 0; draw < count; ++draw) {
    // floor(bits * classes / 2^64), computed from halves of 32 bits. There are few classes, so no
    // product of a half overflows.
    const uint64_t bits = CounterBits(of_candidates, counter, draw);
    const uint64_t low = (bits & 0xffffffff) * classes;
    drawn.push_back(((bits >> 32) * classes + (low >> 32)) >> 32);
  }
  return drawn;
}

}  // namespace satrap::simulation::formats
