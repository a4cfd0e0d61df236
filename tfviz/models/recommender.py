"""A recommender by matrix factorization, whose ratings are dot products, as the scores of attention are."""

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.layers.embeddings import check_ids
from tfviz.shapes import Float, Int


class Recommender(nn.Module):
    """Matrix factorisation with biases, r = mean + b_user + b_movie + p_user . q_movie (Koren et al. 2009, equation 4).

    The factors are learned from ratings alone. The paper adds the squares of all parameters to the loss (equation 5);
    use the optimizer's weight decay instead.

    Args:
        users: number of users.
        movies: number of movies.
        dim: number of factors.
        mean: the mean of all ratings, in stars, which is not trained.

    >>> model = Recommender(users=5, movies=7, dim=2, mean=3.5)
    >>> model(torch.tensor([0, 0, 4]), torch.tensor([1, 6, 6])).shape
    torch.Size([3])
    """

    mean: Tensor

    def __init__(self, users: int, movies: int, dim: int = 8, mean: float = 0.0):
        super().__init__()
        checks.fits_memory(users=users, dim=dim)
        checks.fits_memory(movies=movies, dim=dim)
        checks.between(-1e9, 1e9, mean=mean)
        self.register_buffer("mean", torch.tensor(float(mean)))
        self.user_biases, self.movie_biases = nn.Embedding(users, 1), nn.Embedding(movies, 1)
        self.user_factors, self.movie_factors = nn.Embedding(users, dim), nn.Embedding(movies, dim)
        for biases in (self.user_biases, self.movie_biases):
            nn.init.zeros_(biases.weight)
        for factors in (self.user_factors, self.movie_factors):  # not zeros, where all gradients are zero
            nn.init.normal_(factors.weight, std=0.1)

    def forward(self, users: Int[Tensor, "rating"], movies: Int[Tensor, "rating"]) -> Float[Tensor, "rating"]:
        """Return the predicted rating of each pair of user and movie, in stars.

        Raises:
            ValueError: `users` and `movies` are not vectors of one length.
        """
        if users.shape != movies.shape or users.dim() != 1:
            raise ValueError(
                f"users are {list(users.shape)}, movies {list(movies.shape)}; give one movie for each user"
            )
        check_ids(users, self.user_biases.num_embeddings, "users")
        check_ids(movies, self.movie_biases.num_embeddings, "movies")
        biases = self.user_biases(users) + self.movie_biases(movies)
        return self.mean + biases.squeeze(-1) + (self.user_factors(users) * self.movie_factors(movies)).sum(-1)
