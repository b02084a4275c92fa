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

    def values(self, name: str, shape: tuple[int, ...], mean: float = 0.0, std: float = 1.0) -> None:
        self.append(Tensor(name, shape, mean, std))
