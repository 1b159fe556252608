"""Tiny fast tokenizers trained on the spot."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

SENTENCES = [
    "The lighthouse stood on the cliff above the harbour, and its lamp turned through the night.",
    "In the morning the keeper climbed down the stairs and wrote the weather into his book.",
    "Ships passed far out; some answered the light with a flag, others with nothing at all.",
]


def tiny_tokenizer(bos: str | None = "<s>", adds_bos: bool = False) -> PreTrainedTokenizerFast:
    """A byte-level BPE of at most 400 tokens; ``adds_bos`` makes BOS its own convention."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(
        SENTENCES,
        trainers.BpeTrainer(
            vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        ),
    )
    if adds_bos:
        core.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(tokenizer_object=core, bos_token=bos, eos_token="</s>")
