import json
import os
import types

import pytest
import tensorflow as tf
from ganlab_builtin.strategies import tpus
from ganlab_builtin.strategies.workers import check_cluster

import ganlab
from ganlab import ConfigError, IncompatibleError
from ganlab.config import load, render
from ganlab.errors import NotNamedError
from ganlab.runs import confirmed

TWO_WORKERS = {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}


def make(name, **arguments):
    return ganlab.component("strategies", name)(**arguments)


def total(strategy):
    """The sum over replicas of 1, 2, 3, ..., as each replica has it."""

    @tf.function
    def replicas():
        def one():
            context = tf.distribute.get_replica_context()
            return context.all_reduce("sum", tf.cast(context.replica_id_in_sync_group + 1, tf.float32))

        return strategy.experimental_local_results(strategy.run(one))

    return [float(value) for value in replicas()]


@pytest.mark.parametrize(("count", "sums"), [(1, [1.0]), (2, [3.0] * 2), (4, [10.0] * 4), (3, [6.0] * 3)])
def test_virtual_replicas_of_any_count_follow_one_another_in_one_process(count, sums, cpus):
    strategy = make("mirrored", virtual_replicas=count)
    assert strategy.num_replicas_in_sync == count
    assert total(strategy) == sums


def test_devices_are_taken_as_named_in_any_spelling(cpus):
    strategy = make("mirrored", devices=["/device:CPU:3", "cpu:1"])
    assert [device[-5:] for device in strategy.extended.worker_devices] == ["CPU:3", "CPU:1"]
    assert total(strategy) == [3.0, 3.0]


def test_without_a_gpu_the_defaults_are_one_cpu(cpus, monkeypatch):
    real = tf.config.list_logical_devices
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: real(kind) if kind == "CPU" else [])
    assert make("mirrored").extended.worker_devices == ("/job:localhost/replica:0/task:0/device:CPU:0",)
    assert make("one_device").extended.worker_devices[0].endswith("CPU:0")


def test_one_replica_is_not_told_of_the_collectives_that_xla_makes_of_its_sums(cpus, caplog):
    ganlab.component("strategies", "mirrored")()
    tf.get_logger().warning("Under XLA context, MirroredStrategy uses CollectiveAllReduce op. Although %r is ...", 1)
    tf.get_logger().warning("Another")
    assert set(caplog.messages) == {"Another"}


def test_one_device_is_one_replica_on_it(cpus):
    strategy = make("one_device", device="CPU:2")
    assert isinstance(strategy, tf.distribute.OneDeviceStrategy)
    assert strategy.num_replicas_in_sync == 1
    assert strategy.run(lambda: tf.constant(1.0) + 1.0).device.endswith("CPU:2")


@pytest.mark.parametrize(
    ("name", "arguments", "error", "message"),
    [
        ("one_device", {"device": "gpu0"}, ConfigError, r"device: 'gpu0' is not the name of a device"),
        ("one_device", {"device": "CPU:9"}, IncompatibleError, r"no CPU:9; TensorFlow sees CPU:0, CPU:1.*Name"),
        ("mirrored", {"devices": ["GPU:77"]}, IncompatibleError, r"mirrored\.devices: this machine has no GPU:77"),
        ("mirrored", {"devices": []}, ConfigError, r"mirrored\.devices = \[\] names no device"),
        ("mirrored", {"devices": ["CPU:0", "cpu:0"]}, ConfigError, r"names a device twice\. Name each once"),
        ("mirrored", {"devices": ["CPU:0"], "virtual_replicas": 2}, ConfigError, r"Give one of them"),
        (
            "mirrored",
            {"virtual_replicas": 5},
            IncompatibleError,
            r"virtual_replicas = 5 needs 5 logical CPUs, and TensorFlow has started with 4 .* in a fresh process",
        ),
        ("multi_worker", {"communication": "mpi"}, ConfigError, r"'mpi' must be one of 'auto', 'ring', 'nccl'"),
        ("tpu", {"connect_attempts": 0}, ConfigError, r"connect_attempts = 0 must be a whole number of at least 1"),
    ],
)
def test_parameters_that_cannot_be_used_are_named(name, arguments, error, message, cpus):
    with pytest.raises(error, match=message):
        make(name, **arguments)


def test_devices_of_two_types_are_refused(cpus, monkeypatch):
    real = tf.config.list_logical_devices
    gpu = types.SimpleNamespace(name="/device:GPU:0")
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: real(kind) if kind == "CPU" else [gpu])
    with pytest.raises(ConfigError, match="mixes CPUs and GPUs"):
        make("mirrored", devices=["CPU:0", "GPU:0"])


@pytest.mark.parametrize(
    "config", [TWO_WORKERS, {"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": "chief", "index": 0}}]
)
def test_cluster_that_names_this_process_is_used(config):
    check_cluster(json.dumps(config))


BAD = ("localhost", "a:", ":1", "a:0", "a:65536", "a:1/x", "http://a:1", "a b:1")


def _two_at(*hosts):
    return json.dumps({"cluster": {"worker": hosts}, "task": {"type": "worker", "index": 0}})


@pytest.mark.parametrize("host", ["192.0.2.7:1", "[2001:db8::1]:65535", "node-1.example:12345"])
def test_every_kind_of_address_is_taken(host):
    assert check_cluster(_two_at("a:1", host)) == ["a:1", host]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"TF_CONFIG, which is not set\. Set it to \{\"cluster\""),
        ("{'cluster'}", r"is not JSON \(line 1, column 2: .*strategies\.mirrored on one machine"),
        ("[]", r"has no object 'cluster'"),
        (json.dumps({"cluster": {"worker": ["a:1"]}}), r"has no object 'task'"),
        (json.dumps({"cluster": {"ps": ["a:1"]}, "task": {}}), r"has no cluster\.worker"),
        (json.dumps({"cluster": {"worker": "a:1"}, "task": {}}), r"cluster\.worker = 'a:1', which must be a list"),
        *((_two_at("a:1", bad), rf"has {bad!r} in cluster\.worker, which must be 'host:port'") for bad in BAD),
        (_two_at("a:1", "a:1"), r"has 'a:1' more than once"),
        (json.dumps({**TWO_WORKERS, "task": {"type": "ps", "index": 0}}), r"task\.type = 'ps', .* one of 'worker'"),
        (json.dumps({**TWO_WORKERS, "task": {"type": "worker", "index": 2}}), r"index = 2, which must be from 0 to 1"),
        (json.dumps({**TWO_WORKERS, "task": {"type": "worker", "index": "0"}}), r"task\.index = '0', which must be"),
    ],
)
def test_unusable_cluster_is_refused_with_a_reason(text, message, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ConfigError, match=message):
        make("multi_worker")


@pytest.mark.parametrize("name", ["mirrored", "one_device"])
def test_a_strategy_for_one_machine_warns_where_there_are_several_workers(name, monkeypatch, recwarn):
    for text in ("{}", json.dumps({**TWO_WORKERS, "cluster": {"worker": ["a:1", "b:1"][:1]}})):
        monkeypatch.setenv("TF_CONFIG", text)
        make(name)
    assert not recwarn
    monkeypatch.setenv("TF_CONFIG", json.dumps(TWO_WORKERS))
    with pytest.warns(UserWarning, match=rf"TF_CONFIG names 2 workers, and strategies\.{name} trains on this machine"):
        make(name)


def test_workers_sum_gradients_in_the_buckets_that_were_asked_for(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps({**TWO_WORKERS, "task": {"type": "worker", "index": 0}}))
    monkeypatch.setattr(
        tf.distribute, "MultiWorkerMirroredStrategy", lambda communication_options: communication_options
    )
    assert make("multi_worker").bytes_per_pack == 0
    options = make("multi_worker", communication="ring", bucket_bytes=1 << 20)
    assert options.bytes_per_pack == 1 << 20
    assert options.implementation is tf.distribute.experimental.CommunicationImplementation.RING


def test_workers_must_come_before_all_else(cpus, monkeypatch):
    tf.constant(0)
    monkeypatch.setenv("TF_CONFIG", json.dumps({**TWO_WORKERS, "task": {"type": "worker", "index": 0}}))
    with pytest.raises(IncompatibleError, match="must be made before anything else uses TensorFlow"):
        make("multi_worker")


class FakeTPU:
    """Replaces TensorFlow's functions; raises the given failures before it connects."""

    def __init__(self, monkeypatch, failures=()):
        self.failures, self.connected, self.waits = list(failures), [], []
        monkeypatch.setattr(tpus, "_connect", self.connect)
        monkeypatch.setattr(tpus.time, "sleep", self.waits.append)
        monkeypatch.setattr(tf.distribute, "TPUStrategy", lambda resolver: ("strategy", resolver))

    def connect(self, address):
        self.connected.append(address)
        if self.failures:
            raise self.failures.pop(0)
        return f"resolver of {address}"


@pytest.fixture
def no_tpu(monkeypatch):
    for variable in ("TPU_NAME", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(tpus.glob, "glob", lambda pattern: [])


def unavailable():
    return tf.errors.UnavailableError(None, None, "worker is starting\nand more")


def test_a_tpu_that_starts_late_is_waited_for_twice_as_long_each_time(monkeypatch):
    fake = FakeTPU(monkeypatch, [unavailable(), ConnectionRefusedError("refused"), TimeoutError("late")])
    assert make("tpu", address="my-tpu") == ("strategy", "resolver of my-tpu")
    assert fake.connected == ["my-tpu"] * 4
    assert fake.waits == [1.0, 2.0, 4.0]


def test_waits_stop_growing_at_a_minute():
    waits, failures = [], [ConnectionError()] * 8

    def attempt():
        if failures:
            raise failures.pop()
        return "connected"

    found = tpus.retry(attempt, attempts=9, transient=(ConnectionError,), sleep=waits.append)
    assert found == "connected"
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_tpu_that_never_answers_is_given_up_after_the_attempts(monkeypatch):
    fake = FakeTPU(monkeypatch, [unavailable()] * 9)
    with pytest.raises(IncompatibleError, match=r"could not reach the TPU 'my-tpu' in 3 attempts: worker is start"):
        make("tpu", address="my-tpu", connect_attempts=3)
    assert len(fake.connected) == 3
    assert len(fake.waits) == 2


def test_permanent_failures_are_not_retried(monkeypatch):
    fake = FakeTPU(monkeypatch, [tf.errors.NotFoundError(None, None, "TPUs not found in the cluster.")])
    with pytest.raises(IncompatibleError, match=r"found no TPU at 'local': TPUs not found in the cluster\. Check"):
        make("tpu", address="local")
    assert len(fake.connected) == 1


def test_refusing_host_is_detected_before_tensorflow_waits_for_it(monkeypatch):
    monkeypatch.setattr(tpus.time, "sleep", lambda seconds: None)
    with pytest.raises(IncompatibleError, match=r"could not reach the TPU 'grpc://127\.0\.0\.1:1' in 2 attempts"):
        make("tpu", address="grpc://127.0.0.1:1", connect_attempts=2)


def test_without_a_tpu_the_error_comes_at_once(monkeypatch, no_tpu):
    fake = FakeTPU(monkeypatch)
    with pytest.raises(IncompatibleError, match=r"found no TPU: this machine has no TPU chips.* strategies\.one_dev"):
        make("tpu")
    assert fake.connected == []


def test_the_environment_names_the_tpu(monkeypatch, no_tpu):
    monkeypatch.setenv("TPU_NAME", "from-the-environment")
    fake = FakeTPU(monkeypatch)
    make("tpu")
    make("tpu", address="mine")
    assert fake.connected == ["from-the-environment", "mine"]


def test_chips_of_this_machine_are_local_and_need_their_own_tensorflow(monkeypatch, no_tpu):
    monkeypatch.setattr(tpus.glob, "glob", lambda pattern: ["/dev/accel0"])
    fake = FakeTPU(monkeypatch)
    monkeypatch.setattr(tpus.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(IncompatibleError, match=r"pip install -e '\.\[tpu\]'"):
        make("tpu")
    monkeypatch.setattr(tpus.importlib.util, "find_spec", lambda name: object())
    make("tpu")
    assert fake.connected == ["local"]


def test_tpu_that_is_being_created_is_tried_again(monkeypatch):
    states = [RuntimeError('TPU "t" is not yet ready; state: "CREATING"'), None]

    def connect(resolver):
        if state := states.pop(0):
            raise state

    fake = types.SimpleNamespace(
        distribute=types.SimpleNamespace(
            cluster_resolver=types.SimpleNamespace(TPUClusterResolver=lambda tpu: f"resolver of {tpu}"),
            TPUStrategy=lambda resolver: resolver,
        ),
        config=types.SimpleNamespace(experimental_connect_to_cluster=connect),
        tpu=types.SimpleNamespace(experimental=types.SimpleNamespace(initialize_tpu_system=lambda resolver: None)),
        errors=tf.errors,
    )
    monkeypatch.setattr(tpus, "tf", fake)
    monkeypatch.setattr(tpus.time, "sleep", lambda seconds: None)
    assert make("tpu", address="t") == "resolver of t"
    assert states == []


@pytest.mark.parametrize("mark", ["run.json", "sweep.json"])
def test_a_machine_that_only_a_folder_names_is_refused(tmp_path, monkeypatch, mark):
    monkeypatch.setenv("GANLAB_MACHINES", "")
    (trials := tmp_path / "s" / "trials").mkdir(parents=True)
    lines = "include 'quickstart'\nexperiment.strategy = @strategies.tpu()\nstrategies.tpu.address = %host\n"
    (own := tmp_path / "own.gin").write_text(f"{lines}host = 'grpc://tpu-host:8470'\n")
    (tmp_path / "s" / mark).touch()
    (file := trials / "base.gin").write_text(render(load([own])))
    # What the user names once, processes that are started may connect to: the trials of a sweep.
    assert os.environ["GANLAB_MACHINES"] == "grpc://tpu-host:8470"
    assert load([file]).arguments["strategy"].arguments["address"] == "grpc://tpu-host:8470"
    monkeypatch.setenv("GANLAB_MACHINES", "")
    with pytest.raises(NotNamedError, match=r"names a machine.* set GANLAB_MACHINES=grpc://tpu-host") as caught:
        load([file])
    assert caught.value.options == ["--param", "strategies.tpu.address='grpc://tpu-host:8470'"]
    assert "strategy" not in load([file], only=["dataset", "architecture"]).arguments
    assert load([file], ["strategies.tpu.address=local"])
    assert load([file], caught.value.options[1:])
    assert load([file])
    # Of a sweep or a benchmark that is resumed, the folder decides which files and parameters are read.
    monkeypatch.setenv("GANLAB_MACHINES", "")
    confirmed("sweep", None, None, None)
    with pytest.raises(NotNamedError, match="one that only a folder names"):
        load([own], caught.value.options[1:])
