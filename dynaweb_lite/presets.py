"""Where things lie, and the settings of a whole run. A preset changes numbers, never the code path."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from dynaweb_lite.rl import RLSettings
from dynaweb_lite.sft import SFTSettings

ASSETS = Path(__file__).resolve().parent.parent / "assets"
RESULTS = ASSETS / "results"


@dataclass(frozen=True)
class Preset:
    """All settings of the loop, from collecting to scoring."""

    name: str
    model: str  # a folder or a Hugging Face id
    explorations: int = 240  # real episodes of random exploration; what they cost is reported
    exploration_steps: int = 10
    held_out_share: float = 0.15  # of the explorations, kept from the world model to measure it
    max_steps: int = 8  # actions that a scored episode may take; experts need at most 6
    contexts: int = 8  # browser contexts side by side
    world_model: SFTSettings = field(default_factory=SFTSettings)
    cloning: tuple[SFTSettings, ...] = (SFTSettings(),)  # tried one by one; validation chooses
    rl: RLSettings = field(default_factory=RLSettings)
    seeds: tuple[int, ...] = (0, 1, 2)
    test_tasks: int = 0  # a sample of the test split, spread over the kinds; 0: all
    recorded: bool = False  # add the transitions that ship in assets/ to those collected

    def __post_init__(self) -> None:
        if not self.seeds or not self.cloning:
            raise ValueError("a preset needs at least one seed and one setting for cloning")
        if not 0 < self.held_out_share < 1:
            raise ValueError("held_out_share must lie between 0 and 1: the world model is measured on it")


_CLONING = tuple(
    SFTSettings(learning_rate=rate, epochs=epochs, batch_size=8)
    for rate, epochs in ((1e-3, 5), (1e-3, 12), (1e-3, 25), (3e-3, 5), (3e-3, 12), (3e-3, 25), (1e-3, 50), (3e-3, 50))
)
TINY = Preset(
    name="tiny",
    model=str(ASSETS / "tiny-base"),
    world_model=SFTSettings(learning_rate=3e-3, epochs=8, batch_size=32, lora_rank=32, lora_alpha=64),
    cloning=_CLONING,
    rl=RLSettings(updates=20, max_dream_steps=6, eval_every=5),
)
TINY_QUICK = replace(
    TINY,
    name="tiny, quick",
    explorations=24,
    world_model=replace(TINY.world_model, epochs=4),
    cloning=_CLONING[4:5],
    seeds=(0,),
    test_tasks=60,
    recorded=True,
)
