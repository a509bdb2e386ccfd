#!/bin/bash -eu
# Builds every fuzz target with its seeds, its dictionary and its limits.
# OSS-Fuzz runs it in the container of the Dockerfile beside it, in the repository's root.

cargo fuzz build -O --debug-assertions --features hub,text,sanitized

programs=fuzz/target/x86_64-unknown-linux-gnu/release
for file in fuzz/targets/*.rs; do
  target=$(basename "$file" .rs)
  cp "$programs/$target" "$OUT/"
  if [ -d "fuzz/corpus/$target" ]; then
    zip --quiet --junk-paths --recurse-paths "$OUT/${target}_seed_corpus.zip" "fuzz/corpus/$target"
  fi
  if [ -f "fuzz/dictionaries/$target.txt" ]; then
    cp "fuzz/dictionaries/$target.txt" "$OUT/$target.dict"
  fi
  printf '[libfuzzer]\nmax_len = 100000\ntimeout = 30\n' > "$OUT/$target.options"
done
