"""Networks of adversarially learned inference: a generator, an encoder, and a critic of pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import ganlab
from ganlab.bounds import Ge, Le
from ganlab.lazy import keras
from ganlab_builtin.architectures.mlp import MLP
from ganlab_builtin.architectures.parts import to_score

if TYPE_CHECKING:
    from collections.abc import Mapping


class ALI(ganlab.Architecture):
    """A generator, an encoder and a critic of examples and their latent vectors, fully connected, for vectors.

    Dumoulin et al., "Adversarially Learned Inference" (2017). The encoder, of the generator's side, gives the mean and
    the log of the deviation of an example's latent vector. losses.ali trains them.
    """

    def __init__(
        self,
        *,
        latent_dim: Annotated[int, Ge(1)] = 2,
        depth: Annotated[int, Ge(1), Le(1000)] = 2,
        width: Annotated[int, Ge(1)] = 256,
    ) -> None:
        """Sets the sizes of the networks.

        Args:
            latent_dim: The length of a latent vector.
            depth: Hidden layers of each network.
            width: Units of each hidden layer.
        """
        self.latent_dim, self.depth, self.width = latent_dim, depth, width
        self._mlp = MLP(latent_dim=latent_dim, depth=depth, width=width, activation="leaky_relu")

    def generator(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, latent_dim) -> (n, *sample_shape)`, float32."""
        if len(sample_shape) != 1:
            raise ganlab.IncompatibleError(f"architectures.ali makes vectors, and the dataset has {sample_shape}.")
        return self._mlp.generator(sample_shape)

    def critic(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `[(n, *sample_shape), (n, latent_dim)] -> (n, 1)`, float32."""
        pair = [keras.Input(sample_shape, name="sample"), keras.Input((self.latent_dim,), name="latent")]
        features = self._hidden(keras.layers.Concatenate(name="pair")(pair))
        return keras.Model(pair, to_score(features), name="critic")

    def networks(self, sample_shape: tuple[int, ...]) -> Mapping[str, Mapping[str, keras.Model]]:
        """The encoder: `(n, *sample_shape)` to a dict of `mean` and `log_deviation`, `(n, latent_dim)` float32 each."""
        sample = keras.Input(sample_shape, name="sample")
        features = self._hidden(sample)
        code = {
            name: keras.layers.Dense(self.latent_dim, dtype="float32", name=name)(features)
            for name in ("mean", "log_deviation")
        }
        return {"generator": {"encoder": keras.Model(sample, code, name="encoder")}}

    def _hidden(self, x: Any) -> Any:
        for i in range(1, self.depth + 1):
            x = keras.layers.Dense(self.width, kernel_initializer="he_uniform", name=f"hidden_{i}")(x)
            x = keras.layers.LeakyReLU(negative_slope=0.2, name=f"activation_{i}")(x)
        return x
