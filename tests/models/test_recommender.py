"""The recommender: its formula, its initialization, and recovery of known factors."""

import torch
from small_models import random

from tfviz.models.recommender import Recommender


def recommender(users=5, movies=7, dim=3, mean=0.0):
    model = Recommender(users, movies, dim, mean)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(random(*parameter.shape))
    return model


def every_rating(model, users=5, movies=7):
    cells = torch.cartesian_prod(torch.arange(users), torch.arange(movies))
    return model(*cells.T).view(users, movies)


def test_ratings_match_formula():
    model = recommender(mean=2.0)
    biases = model.user_biases.weight + model.movie_biases.weight.T
    expected = 2.0 + biases + model.user_factors.weight @ model.movie_factors.weight.T
    torch.testing.assert_close(every_rating(model), expected)


def test_initial_ratings_are_near_the_constant_mean():
    model = Recommender(users=5, movies=7, dim=3, mean=3.5)
    assert {name: tuple(p.shape) for name, p in model.named_parameters()} == {
        "user_biases.weight": (5, 1),
        "movie_biases.weight": (7, 1),
        "user_factors.weight": (5, 3),
        "movie_factors.weight": (7, 3),
    }
    assert model.state_dict()["mean"] == 3.5
    assert (every_rating(model) - 3.5).abs().max() < 0.5
    assert all(factors.weight.abs().min() > 0 for factors in (model.user_factors, model.movie_factors))


def test_training_recovers_known_factors():
    torch.manual_seed(13)
    planted = recommender(users=60, movies=50, dim=2, mean=3.0)
    truth = every_rating(planted, 60, 50).detach()
    told = torch.rand(60, 50) < 0.5
    users, movies = told.nonzero().T
    ratings = truth[told] + 0.1 * torch.randn(len(users))
    model = Recommender(60, 50, dim=2, mean=ratings.mean().item())
    before = (every_rating(model, 60, 50) - truth)[~told].square().mean().sqrt()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(300):
        loss = (model(users, movies) - ratings).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = (every_rating(model, 60, 50) - truth)[~told].square().mean().sqrt()
    assert before > 1
    assert after < 0.1  # stars: less than the noise of a single rating
    assert model.mean == ratings.mean()
