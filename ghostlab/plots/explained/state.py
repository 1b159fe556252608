"""Explanations of figures on the restored state: how near the first surviving layer's input is."""

from ghostlab.plots.explained.base import Explanation

_MASSIVE = "Massive activations: Sun et al. (arXiv 2402.17762)"
FIGURES = {
    "explained": Explanation(
        "Explained share of the gap",
        "The first layer after the cut expects the state Y. Plain dropping hands it X, and the recovery "
        "hands it something in between. This is the share of the squared distance from X to Y that the "
        "recovery covers, over all held-out tokens and over ordinary ones alone: 0 is no better than "
        "dropping, 100 % is a perfect restoration, and less than 0 would be worse than doing nothing. A map "
        "that explains much more of the text that it was fitted on than of other text has learned that text "
        "by heart.",
        r"\text{explained} = 1 - \frac{\lVert \hat Y - Y \rVert_F^2}{\lVert Y - X \rVert_F^2}",
        "The coefficient of determination R² of least squares, taken on the change Y − X",
    ),
    "relative_error": Explanation(
        "Relative error",
        "How far the recovered state is from the true one, as a share of the true one's own length. A few "
        "tokens, often the first of a text, carry *massive activations*: values hundreds of times larger "
        "than all others. They dominate any such sum, so ordinary tokens are shown apart.",
        r"\text{error} = \frac{\lVert \hat Y - Y \rVert_F}{\lVert Y \rVert_F}",
        _MASSIVE,
    ),
    "channel_error": Explanation(
        "Error per channel",
        "The state of a token is a list of numbers, its channels. Here the gap that is left is taken for "
        "each channel alone and sorted, the worst first. Above 1, that channel would have been closer to "
        "the truth had the block merely been dropped: the map gave it up to serve others.",
        r"e_c = \frac{\sum_t (\hat y_{tc} - y_{tc})^2}{\sum_t (y_{tc} - x_{tc})^2}",
        "Outlying channels: Dettmers et al. (arXiv 2208.07339)",
    ),
    "position_error": Explanation(
        "Error per position",
        "The same share of the gap for each position in the window. The first position is special: models "
        "use it as an *attention sink*, and its state is unlike every other. A map that must serve both "
        "kinds of tokens pays for it, which is why `ghost_sink` treats the first token apart.",
        r"e_t = \frac{\sum_i \lVert \hat y_{it} - y_{it} \rVert^2}{\sum_i \lVert y_{it} - x_{it} \rVert^2}",
        f"Attention sinks: Xiao et al. (arXiv 2309.17453). {_MASSIVE}",
    ),
    "state_plane": Explanation(
        "Single tokens: ordinary ones, then massive ones",
        "Each token's state has hundreds of numbers; this is its shadow on the plane in which ordinary "
        "tokens vary most. A cross is where dropping leaves the token, a square where the original puts it, "
        "and a thin line shows by how far the recovered one misses. Distances outside the plane are not "
        "seen.",
        r"(a, b) = (h - \bar h)\,[p_1, p_2], \qquad \mathrm{Cov}(h)\, p_k = \lambda_k p_k, \quad "
        r"\lambda_1 \ge \lambda_2 \ge \dots",
        f"Principal components: Pearson 1901. {_MASSIVE}",
    ),
    "scores": Explanation(
        "How the blocks were chosen",
        "A criterion gives each layer, or each block of layers, a score that guesses how little it would be "
        "missed, without trying every cut. ShortGPT's, for one, asks how much a layer turns the states "
        "that pass through: one that hardly turns them should be safe to drop. The sidebar explains the "
        "criterion that is chosen, and all others.",
        r"\text{for example}\quad \mathrm{BI}_\ell = 1 - \overline{\cos(x_{\ell}, x_{\ell+1})}",
        "ShortGPT (arXiv 2403.03853); Gromov et al. (arXiv 2403.17887)",
    ),
    "block_map": Explanation(
        "Block map",
        "Each cell is one block that could be dropped: its column says where it begins, its row how many "
        "layers it has. The colour says how far the state after it would be from the true one. All cells "
        "come from one reading of the text, because what least squares needs of it are only sums of "
        "products.",
        r"\text{error}_{s:e} = \frac{\lVert \hat Y_{s:e} - Y_e \rVert_F}{\lVert Y_e \rVert_F}",
        "Scanning all blocks by angular distance: Gromov et al. (arXiv 2403.17887), figure 4",
    ),
    "by_length": Explanation(
        "Error by length",
        "The more layers go at once, the more there is to make up for. Each curve takes, at every length, "
        "the block that its own operator restores best. The distance between two curves is what the better "
        "operator is worth; where they run together, the simpler one is enough.",
        r"\min_{s}\ \frac{\lVert \hat Y_{s:s+n} - Y_{s+n} \rVert_F}{\lVert Y_{s+n} \rVert_F}",
        "Best block per length: Gromov et al. (arXiv 2403.17887), LLM-Streamline (arXiv 2403.19135)",
    ),
}
