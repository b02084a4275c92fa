"""A tensor to draw, and the spreads that keep a random model's logits at about one."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Tensor:
    name: str  # as in HF checkpoints
    shape: tuple[int, ...]
    mean: float
    std: float

    @property
    def module(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def is_matrix(self) -> bool:
        """Or a stack of experts' matrices: what quantisation takes."""
        stacked = len(self.shape) == 3 and self.module.endswith(("_proj", "embed_q", "unembed_out"))
        return self.name.endswith(".weight") and (len(self.shape) == 2 or stacked)

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class TensorList(list[Tensor]):
    """Tensors in file order, with words for the usual ones."""

    def linear(self, name: str, rows: int, columns: int, bias: float = 0.0, gain: float = 1.0) -> None:
        """[rows, columns] whose products keep the input's spread, times `gain`; a bias of that spread if given."""
        self.append(Tensor(f"{name}.weight", (rows, columns), 0.0, gain / math.sqrt(columns)))
        if bias:
            self.append(Tensor(f"{name}.bias", (rows,), 0.0, bias))

    def norm(self, name: str, width: int, mean: float = 1.0) -> None:
        """Weights around one, or around `mean` zero where the family adds the one itself."""
        self.append(Tensor(f"{name}.weight", (width,), mean, 0.2))

    def mlp(self, name: str, hidden: int, ffn: int) -> None:
        """The gated one; what a layer adds is small, for quantisation to leave the answer recognisable."""
        self.linear(f"{name}.gate_proj", ffn, hidden)
        self.linear(f"{name}.up_proj", ffn, hidden)
        self.linear(f"{name}.down_proj", hidden, ffn, gain=0.2)

    def experts(self, name: str, count: int, hidden: int, ffn: int, stacked: bool,
                names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")) -> None:
        """`count` gated MLPs: a module each, or, as mlx-lm converts them, one tensor for each of the three."""
        shapes = ((ffn, hidden, 1.0), (ffn, hidden, 1.0), (hidden, ffn, 0.2))
        if stacked:
            for each, (rows, columns, gain) in zip(("gate_proj", "up_proj", "down_proj"), shapes):
                self.append(Tensor(f"{name}.switch_mlp.{each}.weight", (count, rows, columns), 0.0, gain / math.sqrt(columns)))
            return
        for expert in range(count):
            for each, (rows, columns, gain) in zip(names, shapes):
                self.linear(f"{name}.experts.{expert}.{each}", rows, columns, gain=gain)

    def mxfp4_blocks(self, name: str, shape: tuple[int, int, int], std: float) -> None:
        """A stack of matrices that is written as gpt-oss's "_blocks" and "_scales"."""
        self.append(Tensor(f"{name}_blocks", shape, 0.0, std))

    def values(self, name: str, shape: tuple[int, ...], mean: float = 0.0, std: float = 1.0) -> None:
        self.append(Tensor(name, shape, mean, std))
