"""Which shard a tenant of the tests' stores is in, as src/cluster/placement.c says: by SipHash-2-4 of its name."""
import stores

KEY = (0x7061776C2D736861, 0x72642D6F662D3031)
BEGIN = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
MASK = (1 << 64) - 1


def rotated(v, bits):
    return (v << bits | v >> (64 - bits)) & MASK


def mixed(v0, v1, v2, v3):
    v0 = (v0 + v1) & MASK
    v1 = rotated(v1, 13) ^ v0
    v0 = rotated(v0, 32)
    v2 = (v2 + v3) & MASK
    v3 = rotated(v3, 16) ^ v2
    v0 = (v0 + v3) & MASK
    v3 = rotated(v3, 21) ^ v0
    v2 = (v2 + v1) & MASK
    v1 = rotated(v1, 17) ^ v2
    return v0, v1, rotated(v2, 32), v3


def siphash(text):
    data = text.encode()
    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 0xFF])
    v = tuple(begin ^ KEY[i % 2] for i, begin in enumerate(BEGIN))
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at:at + 8], "little")
        v = mixed(*mixed(v[0], v[1], v[2], v[3] ^ word))
        v = (v[0] ^ word, *v[1:])
    v = (v[0], v[1], v[2] ^ 0xFF, v[3])
    for _ in range(4):
        v = mixed(*v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def shard_of(tenant):
    return siphash(tenant) % stores.SHARDS
