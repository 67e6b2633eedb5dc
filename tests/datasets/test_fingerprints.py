"""Fingerprints of data: the changes that they detect, their cost, and the changes that sampling may miss."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

import ganlab
from ganlab import fingerprints
from ganlab.runs.origins import data_changes, data_of


class Table(ganlab.Dataset):
    """Rows that count how many of them were read."""

    def __init__(self, size, *, labels=None, changed=None, broken=None):
        self.sample_shape, self.size, self.asked = (3,), size, 0
        self._changed, self._broken, self._labels = changed, broken, labels
        self.classes = None if labels is None else 10

    def examples(self, numbers, seed):
        self.asked += len(numbers)
        numbers = np.asarray(numbers)
        if self._broken is not None and self._broken in numbers:
            raise ValueError("broken")
        rows = np.repeat(numbers[:, None], 3, axis=1).astype(np.float32)
        rows[numbers == self._changed] += 0.5
        return tf.constant(rows)

    def labels(self, numbers):
        return tf.gather(self._labels, numbers)


def changes(before, after):
    return data_changes(data_of(before), data_of(after))


def test_numbers_are_spread_and_each_comes_once():
    for size in (1, 2, 3, 10, 97, 4096):
        assert sorted(fingerprints.spread(size, size)) == list(range(size))
    first = np.sort(fingerprints.spread(10**6, 100))
    assert np.diff(first).max() < 3 * 10**4
    assert fingerprints.spread(2**40, 50).max() > 2**39


@pytest.mark.parametrize("row", [0, 500, 999])
def test_one_row_of_a_set_that_is_not_large_is_seen(row):
    (line,) = changes(Table(1000), Table(1000, changed=row))
    assert line.startswith("data of Table, rows: content ")
    assert changes(Table(1000), Table(1000)) == []


def test_a_million_rows_are_sampled():
    large = Table(10**6)
    begun = data_of(large)
    assert large.asked <= 4096
    assert changes(large, Table(10**6 + 1))[0] == "data of Table, size: 1000000, and now 1000001"
    assert data_changes(begun, data_of(Table(10**6))) == []
    seen = int(fingerprints.spread(10**6, 10)[-1])
    assert changes(large, Table(10**6, changed=seen))
    unseen = int(fingerprints.spread(10**6, 5000)[-1])
    assert not changes(large, Table(10**6, changed=unseen))  # what sampling misses


def test_labels_count():
    labels = np.arange(50) % 10
    other = labels.copy()
    other[25] = 3
    (line,) = changes(Table(50, labels=labels), Table(50, labels=other))
    assert line.startswith("data of Table, labels: content ")


def test_unreadable_rows_do_not_affect_those_before_them():
    found = data_of(Table(1000, broken=int(fingerprints.spread(1000, 40)[-1])))
    assert 0 < len(found["rows"]) < len(data_of(Table(1000))["rows"])
    assert data_changes(found, data_of(Table(1000))) == []


def test_an_infinite_set_is_sampled_from_its_start():
    endless = Table(None)
    data_of(endless)
    assert endless.asked == 256


def test_time_is_bounded(monkeypatch):
    clock = iter(range(0, 1000))
    monkeypatch.setattr(fingerprints.time, "monotonic", lambda: next(clock))
    slow = Table(1000)
    found = data_of(slow)
    assert slow.asked < 50
    monkeypatch.undo()
    assert data_changes(found, data_of(Table(1000))) == []
    assert data_changes(data_of(Table(1000)), found) == []


def test_a_datasets_fingerprint_must_be_plain_data():
    class Odd(Table):
        said = None

        def fingerprint(self):
            return self.said

    odd = Odd(3)
    for odd.said in (3, None, {"a": object()}, {"a": float("nan")}, {1: 2}):
        with pytest.raises(ganlab.ContractError, match=r"Odd\.fingerprint\(\) must return plain values"):
            data_of(odd)
    odd.said = {"version": 3, "of": "mine", "files": ["a"]}
    assert data_of(odd)["version"] == 3
    assert data_changes({"version": 2}, data_of(odd))[0].endswith("version: 2, and now 3")


FORGED = ["x", 1, None, [1, None], {"a": 1}, "\x1b[2J", ["\x1b"], [["a"]], "a" * 10**5, float("inf")]


@pytest.mark.parametrize("value", FORGED, ids=range(len(FORGED)))
def test_a_forged_record_is_shown_as_data(value):
    now = data_of(Table(10))
    lines = data_changes(dict.fromkeys(now, value), now)
    assert lines
    assert all(line.isprintable() and len(line) < 300 for line in lines)


def save(path, rows, **more):
    np.savez(path, rows=rows, **more)
    return ganlab.component("datasets", "arrays")(path=str(path), key="rows", labels="y" if "y" in more else None)


def test_arrays_see_one_value_and_one_label(tmp_path):
    rows, y = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32), np.arange(300) % 7
    before = data_of(save(tmp_path / "a.npz", rows, y=y))
    assert data_changes(before, data_of(save(tmp_path / "b.npz", rows, y=y))) == []
    other, y2 = rows.copy(), y.copy()
    other[150, 2] += 1e-6
    y2[7] = 5
    names = [line.partition(":")[0] for line in data_changes(before, data_of(save(tmp_path / "a.npz", other, y=y2)))]
    assert names == ["data of datasets.arrays, rows", "data of datasets.arrays, labels"]
    assert "dtype" in data_changes(before, data_of(save(tmp_path / "a.npz", rows.astype(np.float64), y=y)))[0]


def test_a_memory_mapped_array_is_sampled(tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprints, "_BYTES", 1 << 12)
    path = tmp_path / "a.npy"
    rows = np.zeros((5000, 16), np.uint8)
    np.save(path, rows)
    make = ganlab.component("datasets", "arrays")
    before = data_of(make(path=str(path)))
    rows[int(fingerprints.spread(5000, 100)[-1]), 3] = 1
    np.save(path, rows)
    assert data_changes(before, data_of(make(path=str(path))))


@pytest.fixture
def pictures(tmp_path):
    rng = np.random.default_rng(0)
    for name in "abcdef":
        picture = tf.io.encode_png(rng.integers(0, 255, (6, 6, 3)).astype(np.uint8)).numpy()
        (tmp_path / f"{name}.png").write_bytes(picture)
    return tmp_path


def folder(path):
    return ganlab.component("datasets", "image_folder")(path=str(path), size=6)


def test_a_folder_sees_a_replaced_a_renamed_and_a_further_file(pictures):
    before = data_of(folder(pictures))
    assert data_changes(before, data_of(folder(pictures))) == []
    kept = (pictures / "c.png").read_bytes()
    other = tf.io.encode_png(np.full((6, 6, 3), 7, np.uint8)).numpy()
    (pictures / "c.png").write_bytes(other)
    assert "bytes" in "".join(data_changes(before, data_of(folder(pictures))))
    (pictures / "c.png").write_bytes(kept)
    (pictures / "c.png").rename(pictures / "g.png")
    assert "names" in "".join(data_changes(before, data_of(folder(pictures))))
    (pictures / "c.png").write_bytes(kept)
    assert "files: 6, and now 7" in "".join(data_changes(before, data_of(folder(pictures))))


def test_a_copied_folder_is_the_same(pictures, tmp_path_factory):
    copied = shutil.copytree(pictures, tmp_path_factory.mktemp("copied"), dirs_exist_ok=True)
    assert data_changes(data_of(folder(pictures)), data_of(folder(copied))) == []


def test_large_files_are_read_in_parts(tmp_path):
    path = tmp_path / "large"
    data = bytearray(5 << 20)
    path.write_bytes(data)
    before = fingerprints.of_files(str(tmp_path), ["large"])
    data[-1] = 1
    path.write_bytes(data)
    assert fingerprints.of_files(str(tmp_path), ["large"]) != before
    assert fingerprints.of_files(str(tmp_path), ["gone"])["sizes"] != before["sizes"]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("digits", {"labels": [1, 2]}),
        ("gaussian_ring", {"radius": 3.0}),
        ("gaussian_grid", {"std": 0.1}),
        ("min_funnels", {"funnels_seed": 1}),
        ("swiss_roll", {"noise": 0.5}),
        ("translated_gaussians", {"distance": 1.0}),
        ("two_images", {"bright": 0.5}),
    ],
)
def test_first_party_sets_have_a_fingerprint_of_their_settings(name, changes):
    made = ganlab.component("datasets", name)
    found = data_of(made())
    assert json.loads(json.dumps(found)) == found == data_of(made())
    assert len(json.dumps(found)) < 1000
    assert data_changes(found, data_of(made(**changes)))
