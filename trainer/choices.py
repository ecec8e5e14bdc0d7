"""The settings that are a choice between named ways: one enumeration each."""

from enum import StrEnum


class Preset(StrEnum):
    """The two starting points that a person chooses between."""

    RECIPE = "recipe"
    STANDARD = "standard"


class Rendering(StrEnum):
    """How a conversation becomes token ids."""

    PLAIN = "plain"
    TEMPLATE = "template"


class CreditMode(StrEnum):
    """How per-turn rewards become per-turn advantages."""

    RECIPE = "recipe"
    IMMEDIATE = "immediate"
    RETURN_TO_GO = "return_to_go"
    OUTCOME = "outcome"


class LossName(StrEnum):
    """The training objective."""

    PPO = "ppo"
    IMPORTANCE_SAMPLING = "importance_sampling"
    CROSS_ENTROPY = "cross_entropy"


class OldLogprobs(StrEnum):
    """Where the behaviour policy's log-probabilities come from."""

    CONSTANT = "constant"
    STORED_OR_RECOMPUTED = "stored_or_recomputed"


class LossScale(StrEnum):
    """What the gradient of a step is the gradient of."""

    SUM = "sum"
    TRAINED_TOKENS = "trained_tokens"


class Guard(StrEnum):
    """What protects the model from replies that no known policy sampled."""

    NONE = "none"
    TRUNCATE = "truncate"
    POSITIVE_ONLY = "positive_only"
    EXP_WEIGHTED = "exp_weighted"


class Schedule(StrEnum):
    """How the learning rate goes on after the warm-up."""

    CONSTANT = "constant"
    COSINE = "cosine"


class Device(StrEnum):
    """Where a run computes."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class BasePrecision(StrEnum):
    """How the base model's frozen weights are held; adapter and loss are fp32 in any case."""

    AUTO = "auto"
    FP32 = "fp32"
    BF16 = "bf16"
    FOUR_BIT = "4bit"
