"""Tensors of a random model, with standard deviations that keep its logits at about one."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Tensor:
    name: str  # HF name
    shape: tuple[int, ...]
    mean: float
    std: float

    @property
    def module(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def is_matrix(self) -> bool:
        """Whether quantisation applies: a matrix, or a stack of experts' matrices."""
        stacked = len(self.shape) == 3 and self.module.endswith(("_proj", "embed_q", "unembed_out", "fc1", "fc2"))
        return self.name.endswith(".weight") and (len(self.shape) == 2 or stacked)

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class TensorList(list[Tensor]):
    """A list of tensors in file order, with methods for the usual kinds."""

    def linear(self, name: str, rows: int, columns: int, bias: float = 0.0, gain: float = 1.0) -> None:
        """Adds [rows, columns] whose products have the input's standard deviation times `gain`, and optionally a bias."""
        self.append(Tensor(f"{name}.weight", (rows, columns), 0.0, gain / math.sqrt(columns)))
        if bias:
            self.append(Tensor(f"{name}.bias", (rows,), 0.0, bias))

    def norm(self, name: str, width: int, mean: float = 1.0) -> None:
        """Adds weights around one, or around `mean` zero if the family adds the one itself."""
        self.append(Tensor(f"{name}.weight", (width,), mean, 0.2))

    def mlp(self, name: str, hidden: int, ffn: int) -> None:
        """Adds a gated MLP. A layer adds little to the residual, so that quantisation does not change the output too much."""
        self.linear(f"{name}.gate_proj", ffn, hidden)
        self.linear(f"{name}.up_proj", ffn, hidden)
        self.linear(f"{name}.down_proj", hidden, ffn, gain=0.2)

    def experts(self, name: str, count: int, hidden: int, ffn: int, stacked: bool,
                names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")) -> None:
        """Adds `count` gated MLPs: one module each, or one tensor for each of the three matrices, as in mlx-lm's conversion."""
        shapes = ((ffn, hidden, 1.0), (ffn, hidden, 1.0), (hidden, ffn, 0.2))
        if stacked:
            for each, (rows, columns, gain) in zip(("gate_proj", "up_proj", "down_proj"), shapes):
                self.append(Tensor(f"{name}.switch_mlp.{each}.weight", (count, rows, columns), 0.0, gain / math.sqrt(columns)))
            return
        for expert in range(count):
            for each, (rows, columns, gain) in zip(names, shapes):
                self.linear(f"{name}.experts.{expert}.{each}", rows, columns, gain=gain)

    def mxfp4_blocks(self, name: str, shape: tuple[int, int, int], std: float) -> None:
        """Adds a stack of matrices that is written as gpt-oss's "_blocks" and "_scales"."""
        self.append(Tensor(f"{name}_blocks", shape, 0.0, std))

    def values(self, name: str, shape: tuple[int, ...], mean: float = 0.0, std: float = 1.0) -> None:
        self.append(Tensor(name, shape, mean, std))
