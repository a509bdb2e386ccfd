"""BitNet b1.58 language models: ternary weights, int8 activations, the same bits on every processor.

    from setun import LLM

    llm = LLM()
    for text in llm.generate(["Once upon a time", "The cat sat"], max_tokens=60, seed=1):
        print(text.text)
"""

from setun._native import SetunError, __version__, pull
from setun.llm import LLM
from setun.results import Completion, Delta, RowError, Score, columns

__all__ = [
    "LLM",
    "Completion",
    "Delta",
    "RowError",
    "Score",
    "SetunError",
    "__version__",
    "columns",
    "pull",
]
