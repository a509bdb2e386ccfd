#!/usr/bin/env python3
"""The longest run of training text that a model's stories repeat, character for character.

  verbatim.py --setun target/release/setun --text stories.txt [--count 200]

Samples one story for each seed 0, 1, 2, … with the model's own sampling defaults and the prompt "Once upon a time", and
prints the longest substring that they share with the training text. Runs of white space count as one space.
"""
import argparse
import pathlib
import re
import subprocess


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


def shared_run(stories, corpus, length):
    """A substring of `length` characters that a story shares with the corpus, or None."""
    pieces = {story[i : i + length] for story in stories for i in range(len(story) - length + 1)}
    for i in range(len(corpus) - length + 1):
        piece = corpus[i : i + length]
        if piece in pieces:
            return piece
    return None


def longest_shared_run(stories, corpus):
    """Binary search: whatever shares a run of some length shares all shorter ones."""
    low, high, best = 0, max(map(len, stories)) + 1, ""
    while high - low > 1:
        length = (low + high) // 2
        found = shared_run(stories, corpus, length)
        if found is None:
            high = length
        else:
            low, best = length, found
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--setun", required=True)
    parser.add_argument("--text", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    arguments = parser.parse_args()
    prompt = "Once upon a time"
    stories = []
    for seed in range(arguments.count):
        command = [arguments.setun, "run", "--seed", str(seed), prompt]
        stories.append(squeeze(prompt + subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    run = longest_shared_run(stories, squeeze(arguments.text.read_text(encoding="utf-8")))
    print(f"{len(stories)} stories, {sum(map(len, stories))} characters")
    print(f"longest run shared with the training text: {len(run)} characters, {len(run.split())} words")
    print(run)


if __name__ == "__main__":
    main()
