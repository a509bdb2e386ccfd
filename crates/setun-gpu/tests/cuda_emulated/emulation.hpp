// A device played by one thread of the host: a kernel's own source is compiled behind this file. Threads of a
// block are fibers; a barrier that not all of them reach ends the program with a message.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __shared__ static
#define __launch_bounds__(...)

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) float4 { float x, y, z, w; };
struct dim3 { unsigned x, y, z; };

inline uint2 make_uint2(unsigned x, unsigned y) { return uint2{x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return uint4{x, y, z, w}; }
inline float2 make_float2(float x, float y) { return float2{x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return float4{x, y, z, w}; }

template <class To, class From> To bits_as(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

inline float __uint_as_float(unsigned bits) { return bits_as<float>(bits); }
inline unsigned __float_as_uint(float value) { return bits_as<unsigned>(value); }

namespace emulation {

const unsigned WARP = 32;
const size_t STACK_BYTES = 1 << 17;
const unsigned WORDS_EXCHANGED = 16;

enum class State { Runs, WaitsForBlock, WaitsForWarp, Finished };

struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(STACK_BYTES);
    State state = State::Finished;
    unsigned exchanges = 0;
    uint32_t words[2][WORDS_EXCHANGED];     // what its warp may read, of this exchange and the one before
};

inline std::vector<Fiber> fibers;
inline ucontext_t scheduler;
inline unsigned current;

[[noreturn]] inline void fail(const char* what)
{
    std::fprintf(stderr, "emulation: thread %u: %s\n", current, what);
    std::abort();
}

inline void wait(State state)
{
    fibers[current].state = state;
    swapcontext(&fibers[current].context, &scheduler);
}

// All that have not finished wait alike: they go on.
inline bool release(size_t first, size_t end, State state)
{
    bool any = false;
    for (size_t i = first; i < end; i += 1) {
        if (fibers[i].state != State::Finished && fibers[i].state != state) {
            return false;
        }
        any |= fibers[i].state == state;
    }
    for (size_t i = first; any && i < end; i += 1) {
        if (fibers[i].state == state) {
            fibers[i].state = State::Runs;
        }
    }
    return any;
}

// Words of each thread, for all threads of the warp.
inline unsigned exchange(const uint32_t* words, unsigned count)
{
    Fiber& own = fibers[current];
    const unsigned place = own.exchanges % 2;
    own.exchanges += 1;
    std::memcpy(own.words[place], words, count * sizeof *words);
    wait(State::WaitsForWarp);
    return place;
}

inline const uint32_t* words_of(unsigned place, unsigned thread)
{
    const size_t index = current / WARP * WARP + thread;
    const Fiber& other = fibers[index < fibers.size() ? index : current];
    if (other.exchanges < fibers[current].exchanges) {
        fail("asks a thread that takes no part for its words");
    }
    return other.words[place];
}

template <class T> T from_thread(T value, unsigned thread)
{
    const uint32_t word = bits_as<uint32_t>(value);
    const unsigned place = exchange(&word, 1);
    return bits_as<T>(*words_of(place, thread));
}

template <class Body> void run_block(unsigned threads, Body& body)
{
    if (fibers.size() < threads) {
        fibers = std::vector<Fiber>(threads);
    }
    static Body* running;
    running = &body;
    for (unsigned i = 0; i < threads; i += 1) {
        Fiber& fiber = fibers[i];
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = &scheduler;
        fiber.state = State::Runs;
        fiber.exchanges = 0;
        makecontext(&fiber.context, +[] {
            (*running)();
            fibers[current].state = State::Finished;
        }, 0);
    }
    // Between barriers no order is promised, so each time there is another, the same in each run: an odd factor
    // and a power of two have no divisor in common.
    unsigned places = WARP;
    while (places < threads) {
        places *= 2;
    }
    unsigned factor = 1;
    for (bool any = true; any;) {
        any = false;
        for (unsigned at = 0; at < places; at += 1) {
            const unsigned i = (at * factor + factor / 8) % places;
            if (i < threads && fibers[i].state == State::Runs) {
                current = i;
                swapcontext(&scheduler, &fibers[i].context);
                any = true;
            }
        }
        for (unsigned first = 0; first < threads; first += WARP) {
            any |= release(first, first + WARP < threads ? first + WARP : threads, State::WaitsForWarp);
        }
        any |= release(0, threads, State::WaitsForBlock);
        factor = factor * 1664525u + 1013904222u;
    }
    for (unsigned i = 0; i < threads; i += 1) {
        if (fibers[i].state != State::Finished) {
            current = i;
            fail("waits for others that never come");
        }
    }
}

}  // namespace emulation

// Where a thread is, as a kernel asks for it.
inline dim3 blockIdx;
struct ThreadIndex {
    struct X { operator unsigned() const { return emulation::current; } } x;
};
inline ThreadIndex threadIdx;

inline void __syncthreads() { emulation::wait(emulation::State::WaitsForBlock); }

template <class T> T __shfl_sync(unsigned, T value, unsigned lane, unsigned width = 32)
{
    const unsigned own = emulation::current % 32;
    return emulation::from_thread(value, own / width * width + lane % width);
}

template <class T> T __shfl_xor_sync(unsigned, T value, unsigned mask, unsigned width = 32)
{
    const unsigned own = emulation::current % 32;
    return emulation::from_thread(value, (own ^ mask) / width == own / width ? own ^ mask : own);
}

template <class T> T __shfl_down_sync(unsigned, T value, unsigned by, unsigned width = 32)
{
    const unsigned own = emulation::current % 32;
    return emulation::from_thread(value, own % width + by < width ? own + by : own);
}

inline unsigned atomicAdd(unsigned* at, unsigned by)
{
    const unsigned before = *at;
    *at += by;
    return before;
}

// What parts/device.cuh has by single instructions.
inline int dot4(unsigned codes, unsigned activations, int sum)
{
    for (unsigned shift = 0; shift < 32; shift += 8) {
        sum += (int)(codes >> shift & 0xffu) * (int)(int8_t)(activations >> shift & 0xffu);
    }
    return sum;
}

inline float widen_f16(unsigned half)
{
    const unsigned magnitude = half & 0x7fffu, sign = (half & 0x8000u) << 16;
    if (magnitude >= 0x7c00u) {
        return __uint_as_float(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    }
    if (magnitude < 0x400u) {
        return __uint_as_float(__float_as_uint((float)magnitude * 5.9604644775390625e-8f) | sign);
    }
    return __uint_as_float(((magnitude << 13) + 0x38000000u) | sign);
}

// What parts/mma.cuh has.
inline void add_tile(int (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    const uint32_t words[6] = {a[0], a[1], a[2], a[3], b0, b1};
    const unsigned place = emulation::exchange(words, 6);
    const unsigned g = emulation::current % 32 / 4, t = emulation::current % 4;
    for (unsigned i = 0; i < 4; i += 1) {
        const unsigned column = 2 * t + i % 2;
        for (unsigned k = 0; k < 4; k += 1) {
            const uint32_t* row_words = emulation::words_of(place, 4 * g + k);
            const uint32_t* column_words = emulation::words_of(place, 4 * column + k);
            sums[i] = dot4(row_words[i / 2], column_words[4], sums[i]);
            sums[i] = dot4(row_words[2 + i / 2], column_words[5], sums[i]);
        }
    }
}

inline void begin_copy(uint4* to, const uint4* from) { *to = *from; }
inline void finish_copies() {}

// Plays a launch: the kernel's arguments are its shape and the buffers, in order.
template <class Shape, class... Arguments, size_t... I>
void call(void (*kernel)(Shape, Arguments...), const void* shape, void* const* buffers, std::index_sequence<I...>)
{
    kernel(*(const Shape*)shape, (Arguments)buffers[I]...);
}

template <class Shape, class... Arguments>
int play(
    void (*kernel)(Shape, Arguments...), unsigned threads, const void* shape, unsigned shape_words,
    void* const* buffers, unsigned count, const unsigned* grid)
{
    if (sizeof(Shape) > shape_words * sizeof(unsigned) || count != sizeof...(Arguments)) {
        return 1;
    }
    auto body = [&] { call(kernel, shape, buffers, std::index_sequence_for<Arguments...>()); };
    for (unsigned y = 0; y < grid[1]; y += 1) {
        for (unsigned x = 0; x < grid[0]; x += 1) {
            blockIdx = dim3{x, y, 0};
            emulation::run_block(threads, body);
        }
    }
    return 0;
}
