#!/usr/bin/env python3
"""Keys, partitions and shuffles of docs/formats.md, computed by a program of another language.

Prints one line for each value; formats_test.cc compares them with what the engines compute. The
golden values in common/numeric/hash_test.cc and data_loader/batch/block_test.cc come from here, too.
"""

MASK = (1 << 64) - 1
G = 0x9E3779B97F4A7C15
P1 = 0x9E3779B185EBCA87
P2 = 0xC2B2AE3D27D4EB4F
P3 = 0x165667B19E3779F9
P4 = 0x85EBCA77C2B2AE63
P5 = 0x27D4EB2F165667C5


def rotate(x, bits):
    return (x << bits | x >> (64 - bits)) & MASK


def xxh64_round(acc, lane):
    return rotate((acc + lane * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    """XXH64 with seed 0, as its specification describes it."""
    at = 0
    if len(data) >= 32:
        accs = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while at + 32 <= len(data):
            for i in range(4):
                lane = int.from_bytes(data[at + 8 * i:at + 8 * i + 8], "little")
                accs[i] = xxh64_round(accs[i], lane)
            at += 32
        acc = sum(rotate(a, bits) for a, bits in zip(accs, (1, 7, 12, 18))) & MASK
        for a in accs:
            acc = ((acc ^ xxh64_round(0, a)) * P1 + P4) & MASK
    else:
        acc = P5
    acc = (acc + len(data)) & MASK
    while at + 8 <= len(data):
        lane = int.from_bytes(data[at:at + 8], "little")
        acc = (rotate(acc ^ xxh64_round(0, lane), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= len(data):
        lane = int.from_bytes(data[at:at + 4], "little")
        acc = (rotate(acc ^ lane * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        acc = rotate(acc ^ byte * P5 & MASK, 11) * P1 & MASK
    acc = (acc ^ acc >> 33) * P2 & MASK
    acc = (acc ^ acc >> 29) * P3 & MASK
    return acc ^ acc >> 32


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def random_bits(a, b, c=0):
    return mix((mix(mix((a + G) & MASK) ^ b) + G * (c + 1)) & MASK)


def key(id_, id_space):
    return mix(id_ ^ xxh64(id_space.encode()))


def shuffle(seed, epoch, split, block, rows):
    """Fisher and Yates's shuffle, from the last place to the first."""
    order = list(range(rows))
    state = random_bits(random_bits(seed, epoch, split), block)
    for left in range(rows, 1, -1):
        state = (state + G) & MASK
        chosen = mix(state) * left >> 64
        order[left - 1], order[chosen] = order[chosen], order[left - 1]
    return order


def main():
    for space in ("C1", "user", "an id space whose name is longer than a stripe of 32 bytes"):
        for id_ in (0, 7, 42, 2**63, MASK, xxh64(b"a string of an id"), xxh64(b"x" * 100)):
            k = key(id_, space)
            print(f"key {id_} {space}: {k} partition {k >> 52} of 3 PSs: {(k >> 52) * 3 // 4096}")
    for seed, epoch, split, block, rows in (
            (1, 0, 0, 0, 8), (1, 1, 0, 0, 8), (1, 0, 1, 0, 8), (1, 0, 0, 1, 8), (2, 0, 0, 0, 8),
            (7, 3, 11, 5, 20), (MASK, 2**32 - 1, 9, 2**40, 13), (5, 0, 0, 0, 1), (5, 0, 0, 0, 0)):
        order = " ".join(str(row) for row in shuffle(seed, epoch, split, block, rows))
        print(f"shuffle {seed} {epoch} {split} {block} {rows}: {order}".rstrip())


if __name__ == "__main__":
    main()
