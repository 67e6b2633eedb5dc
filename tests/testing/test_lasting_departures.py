"""Two trainings depart if they do from every start, not from one where a rectifier chose."""

import pytest

pytestmark = pytest.mark.usefixtures("cpus")

ITERATIONS = 3


def training(**settings):
    from ganlab_verify.lab import Training, experiment

    return Training(experiment(**settings))


@pytest.fixture
def one():
    return training().train(ITERATIONS)


def test_a_departure_from_one_start_alone_is_none(one):
    from ganlab_verify.lab import departures, lasting_departure

    other = training()
    other.assign({name: value * 1.01 if "/weights/" in name else value for name, value in other.start.items()})
    other.train(ITERATIONS)
    assert next(departures(one, other), None) is not None
    assert lasting_departure(one, other) is None


def test_a_percent_in_a_learning_rate_departs_from_every_start(one):
    from ganlab_verify.lab import departures, lasting_departure

    other = training(rates=(0.0101, 0.01)).train(ITERATIONS)
    assert lasting_departure(one, other) == next(departures(one, other))


def test_trained_again_it_starts_elsewhere_and_its_record_stays(one):
    rows = one.rows.copy()
    again, same = one.again(ITERATIONS, moved=0), one.again(ITERATIONS, moved=0)
    assert again.rows.tobytes() == same.rows.tobytes() != rows.tobytes()
    assert one.rows.tobytes() == rows.tobytes()
