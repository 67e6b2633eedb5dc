"""A conditional architecture, losses, constraints and an augmentation that use everything contract 2 added."""

import keras
import tensorflow as tf

import ganlab


class Conditional(ganlab.Architecture):
    """Two hidden layers; labels by an embedding, the critic's also as a projection and as logits."""

    conditional = True
    latent_dim = 3

    def generator(self, sample_shape, classes):
        z, y = keras.Input((3,)), keras.Input((), dtype="int64")
        h = keras.layers.Concatenate()([z, keras.layers.Embedding(classes, 4, name="label")(y)])
        return keras.Model([z, y], keras.layers.Dense(2)(keras.layers.Dense(8, activation="tanh")(h)))

    def critic(self, sample_shape, classes):
        x, y = keras.Input(sample_shape), keras.Input((), dtype="int64")
        h = keras.layers.Dense(8, activation="tanh")(keras.layers.Dense(8, activation="tanh")(x))
        e = keras.layers.Embedding(classes, 8, name="label")(y)
        score = keras.layers.Add()([keras.layers.Dense(1)(h), keras.layers.Dot(1)([h, e])])
        return keras.Model([x, y], {"score": score, "logits": keras.layers.Dense(classes)(h), "embedding": h})


class Everything(ganlab.Loss):
    """Paired and relative to the global batch's mean, with a classifier, logged, with an average of scores as state."""

    pairs, labels, outputs = True, True, ("logits", "embedding")

    def initial_state(self):
        return {"real": tf.zeros([]), "gap": tf.ones([])}

    def advance(self, state, real_scores, fake_scores, batch, replica, networks):
        gap = replica.max(tf.reduce_max(tf.abs(networks["critic"](batch.real) - real_scores)))
        return {"real": 0.9 * state["real"] + 0.1 * replica.mean(tf.reduce_mean(real_scores)), "gap": gap}

    def critic(self, real_scores, fake_scores, batch, replica, state):
        middle = replica.mean(tf.reduce_mean(fake_scores)) + 0.1 * state["real"]
        hardest = replica.max(tf.reduce_max(fake_scores))
        replica.log("hardest", hardest, reduce="max")
        logits = batch.real_outputs["logits"]
        classified = tf.nn.sparse_softmax_cross_entropy_with_logits(batch.labels, logits)
        noise = 0.01 * replica.normal(real_scores.shape)
        return tf.nn.softplus(middle - real_scores + noise) + tf.nn.softplus(fake_scores) + classified + 0.1 * hardest

    def generator(self, fake_scores, real_scores, batch, replica):
        whole = replica.gather(batch.fake_outputs["embedding"])
        spread = tf.reduce_mean(tf.abs(batch.fake_outputs["embedding"][:, None] - whole[None]), axis=[1, 2])
        logits = batch.fake_outputs["logits"]
        classified = tf.nn.sparse_softmax_cross_entropy_with_logits(batch.labels, logits)
        return tf.nn.softplus(real_scores - fake_scores) + classified - 0.1 * spread


class Local(ganlab.Loss):
    """Of each example alone, so that microbatches are possible."""

    pairs = True

    def critic(self, real_scores, fake_scores, batch):
        logits = batch.real_outputs["logits"]
        return fake_scores - real_scores + tf.nn.sparse_softmax_cross_entropy_with_logits(batch.labels, logits)

    def generator(self, fake_scores, real_scores):
        return tf.nn.softplus(real_scores - fake_scores)


class DualSlope(ganlab.Constraint):
    """A multiplier that follows the critic's slopes, as in Sobolev GAN, and a penalty with it."""

    def initial_state(self, weights):
        return {"multiplier": tf.ones([])}

    def advance(self, weights, state, batch, replica, critic):
        slope = replica.mean(tf.reduce_mean(ganlab.functional.slopes(critic, batch.real)))
        replica.log("slope", slope)
        return {"multiplier": state["multiplier"] - 0.1 * (1.0 - slope)}

    def penalty(self, critic, batch, state, replica, generator):
        other = generator(batch.latent + 0.1 * replica.normal(batch.latent.shape))
        return state["multiplier"] * ganlab.functional.slopes(critic, other) ** 2

    def weight_penalty(self, weights, state):
        return 0.01 * state["multiplier"] * sum(tf.reduce_sum(w**2) for w in weights.values())


class Moving(ganlab.Constraint):
    """On the generator: latent vectors moved along the critic's slope, a penalty on samples, trained gains, a state."""

    def __init__(self, *, every: int = 1):
        self.every = every

    def parameters(self, weights):
        return {"gain": tf.ones([])}

    def initial_state(self, weights):
        return {"length": tf.zeros([])}

    def advance(self, weights, state, batch, replica, generator, critic):
        length = replica.mean(tf.reduce_mean(ganlab.functional.example_norm(generator(batch.latent))))
        return {"length": 0.9 * state["length"] + 0.1 * length + 0.0 * state["gain"]}

    def reparameterize(self, weights, state):
        return {name: w * state["gain"] if name.endswith("kernel") else w for name, w in weights.items()}

    def transform(self, generator, critic):
        def moved(latent):
            with tf.GradientTape() as tape:
                tape.watch(latent)
                scores = critic(generator(latent))
            return generator(latent + 0.1 * tape.gradient(scores, latent))

        return moved

    def generator_penalty(self, generator, critic, batch, state, replica):
        near = generator(batch.latent + 0.1 * replica.normal(batch.latent.shape))
        replica.log("apart", ganlab.functional.example_norm(near - batch.fake))
        return (ganlab.functional.example_norm(near - batch.fake) - state["length"]) ** 2

    def weight_penalty(self, weights):
        return 0.01 * sum(tf.reduce_sum(w**2) for w in weights.values())

    def project(self, weights):
        return {name: tf.clip_by_value(w, -2.0, 2.0) for name, w in weights.items()}


def parts():
    """A network, constraints and an augmentation of these, beside any of the losses."""
    kinds = {"constraints": DualSlope, "generator_constraints": Moving, "augmentations": Adaptive}
    return {"architecture": Conditional(), **{part: [kind()] for part, kind in kinds.items()}, "ema_half_life": 50.0}


class Adaptive(ganlab.Augmentation):
    """Noise whose size follows the sign of the scores of real examples."""

    def initial_state(self):
        return {"size": tf.constant(0.1)}

    def apply(self, x, state, replica):
        return x + state["size"] * replica.normal(x.shape)

    def advance(self, state, scores, replica):
        sign = replica.mean(tf.reduce_mean(tf.sign(scores)))
        replica.log("sign", sign)
        return {"size": tf.clip_by_value(state["size"] + 0.01 * sign, 0.0, 1.0)}
