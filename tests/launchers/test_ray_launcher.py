"""Ray: the resources that a trial gets, waiting for them, and losing them."""

import sys
import time

import pytest
from jobs import status, until

import ganlab

SLEEPS = "import os, time; print('process', os.getpid(), os.getppid(), 'is training', flush=True); time.sleep(60)"


def on_ray(**arguments):
    return ganlab.component("launchers", "ray")(**arguments)


@pytest.fixture
def ray():
    """Ray, which ends with the test."""
    ray = pytest.importorskip("ray", reason="Ray is of the extra [ray], which is too large for every test environment")
    yield ray
    ray.shutdown()


@pytest.mark.slow
def test_a_trial_has_its_gpus_and_an_existing_cluster_stays(ray, tried, tmp_path):
    ray.init(num_cpus=2, num_gpus=2, include_dashboard=False, log_to_driver=False)
    launcher = on_ray(num_cpus=0, num_gpus=1)
    code = "import os, time; time.sleep(1); print(os.environ['CUDA_VISIBLE_DEVICES'])"
    jobs = [tried(launcher, code, CUDA_VISIBLE_DEVICES="7") for _ in range(2)]
    assert [status(job) for job in jobs] == [0, 0]
    assert sorted((tmp_path / "log.txt").read_text().split()) == ["0", "1"]
    launcher.close()
    assert ray.is_initialized()


@pytest.mark.slow
def test_trials_wait_for_cores_and_leave_the_queue_when_stopped(ray, tried, wait_for_log):
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    launcher = on_ray(num_cpus=1)
    first = tried(launcher, SLEEPS)
    wait_for_log("is training")
    second, third = tried(launcher, "print('second')"), tried(launcher, "print('third')")
    time.sleep(1)
    assert [job.poll() for job in (first, second, third)] == [None] * 3
    second.stop()
    assert status(second) == 143
    first.stop()
    assert [status(job) for job in (first, third)] == [143, 0]
    assert wait_for_log("third").splitlines()[1:] == ["third"]


@pytest.mark.slow
def test_a_lost_node_ends_its_trial_alone(ray, tried):
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1, resources={name: 1}) for name in ("first", "second")]
    launcher = on_ray(address=cluster.address, resources={"second": 0.1}, num_cpus=0.1)
    try:
        lost = tried(launcher, SLEEPS)
        kept = tried(on_ray(address=cluster.address, resources={"first": 0.1}), "import time; time.sleep(20)")
        until(lambda: lost._is_there(lost._begun))
        cluster.remove_node(nodes[1], allow_graceful=False)
        assert [status(lost), status(kept)] == [137, 0]
    finally:
        launcher.close()
        cluster.shutdown()


@pytest.mark.slow
def test_impossible_requests_are_refused(ray, tried):
    with pytest.raises(ganlab.ConfigError, match=r"a trial requests 9999 CPU, and this machine has \d+\. Request less"):
        tried(on_ray(num_cpus=9999), "")


@pytest.mark.slow
def test_an_unreachable_cluster_is_named(ray, tried):
    with pytest.raises(ganlab.ConfigError, match=r"launchers.ray.address = 'auto' cannot be used: "):
        tried(on_ray(address="auto"), "")
    with pytest.raises(ganlab.ConfigError, match=r"'127.0.0.1:9' cannot be used: .*Connection refused\. Leave it out"):
        tried(on_ray(address="127.0.0.1:9"), "")


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ganlab.MissingDependencyError, match=r"pip install -e '\.\[ray\]'"):
        on_ray()
