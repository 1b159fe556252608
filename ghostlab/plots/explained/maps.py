"""Explanations of figures on the fitted map: its two parts, its spectrum, its rank."""

from ghostlab.plots.explained.base import Explanation

_GHOST = "Ghosted Layers (arXiv 2605.15491)"
FIGURES = {
    "energy_split": Explanation(
        "Energy of S and A",
        "Every square matrix is the sum of a symmetric part S, which stretches along fixed axes, and an "
        "antisymmetric part A, which turns. In the weights their energies add up to that of M. On tokens "
        "(those of the calibration) they need not: if they cancel each other there, together they hold more "
        "than M itself, and neither share says what a part is worth.",
        r"M = S + A, \quad S = \tfrac12 (M + M^\top), \quad A = \tfrac12 (M - M^\top); \qquad "
        r"\frac{\lVert S \rVert_F^2}{\lVert M \rVert_F^2}, \quad "
        r"\frac{\lVert XS \rVert_F^2}{\lVert XM \rVert_F^2}",
        "Horn and Johnson, *Matrix Analysis*, section 4.1",
    ),
    "symmetry_cost": Explanation(
        "What symmetry costs",
        "Some recoveries are symmetric by construction: a scaling of each channel, or of rotated channels "
        "as in LinearPatch. The fair question is not what the symmetric part of a free map does, but how "
        "well the best symmetric map does that is fitted as such. Both are measured on the held-out tokens "
        "that the fit is for, counted as in it. The difference is what such a constraint gives away on this "
        "model.",
        r"\min_{M} \lVert XM - \Delta \rVert_F^2 \quad\text{against}\quad "
        r"\min_{M = M^\top} \lVert XM - \Delta \rVert_F^2, \qquad \Delta = Y - X",
        f"LinearPatch (arXiv 2505.24680); {_GHOST}; symmetric least squares: Higham 1988",
    ),
    "heat_map": Explanation(
        "The two parts: S (symmetric) and A (antisymmetric)",
        "A dot in row i and column j tells how much of channel i is added to channel j; small squares of "
        "entries are averaged, so that the whole matrix fits. Both parts share one scale. S mirrors itself "
        "at the diagonal, A with the opposite sign. A dark stripe is a channel that the map reads or writes "
        "more than others.",
        r"\hat y_j = x_j + \sum_i x_i\, (S_{ij} + A_{ij}), \qquad S_{ij} = S_{ji}, \quad A_{ij} = -A_{ji}",
        f"The map: {_GHOST}",
    ),
    "eigenvalues": Explanation(
        "Eigenvalues of W in the complex plane",
        "W = I + M is what happens to the state as a whole. A real eigenvalue stretches or shrinks along an "
        "axis; a complex pair turns as well. Points on the dotted circle keep their length, those outside "
        "grow. Doing nothing would be the single point 1, and a symmetric W has only real ones.",
        r"x W = \lambda x, \qquad \lambda = r\, e^{i\varphi}",
        "Horn and Johnson, *Matrix Analysis*, section 2.5",
    ),
    "directions": Explanation(
        "Where the map does most: its top directions on the data",
        "Large entries of a matrix may act on channels that are nearly silent. These directions are ordered "
        "by how far they move real tokens instead. Each one listens to some channels, writes to others, "
        "and is most excited by the tokens that are listed.",
        r"(M^\top G M)\, v_k = \sigma_k^2 v_k, \qquad G = X^\top X, \qquad "
        r"\text{share}_k = \sigma_k^2 \big/ \textstyle\sum_j \sigma_j^2",
        "Singular vectors weighted by activations: SVD-LLM (arXiv 2403.07378)",
    ),
    "strengths": Explanation(
        "Put a part of it into the model",
        "The theory made audible: instead of looking at a part of the map, put only that part into the "
        "model, weaker or stronger, and see what perplexity it has and what it writes. At strength 0 the "
        "layers are plainly dropped; at 1 stands the map as fitted. A minimum beside 1 would mean that the "
        "fit over- or underdoes it.",
        r"W = I + \alpha M', \qquad M' \in \{M,\ S,\ A\} \text{ or a rank of it}",
        f"The map: {_GHOST}; parts and strengths: Ghostlab",
    ),
    "singular_values": Explanation(
        "Singular values",
        "A matrix is a sum of simple pieces: each reads one direction, writes another, and has a strength, "
        "its singular value. If they fall fast, a few pieces are almost the whole map, and it can be stored "
        "as two thin matrices. The curve stays high where every direction matters.",
        r"M = \sum_k \sigma_k\, u_k v_k^\top, \qquad \sigma_1 \ge \sigma_2 \ge \dots",
        "Eckart and Young 1936, *The approximation of one matrix by another of lower rank*",
    ),
    "cumulative_energy": Explanation(
        "Energy in the leading directions",
        "The part of the map's squared size that its strongest r directions hold. It says how well a rank "
        "would copy the *matrix*; how well it restores the *states* is another question, which the next "
        "figure answers.",
        r"E(r) = \sum_{k \le r} \sigma_k^2 \Big/ \sum_k \sigma_k^2",
        "Eckart and Young 1936",
    ),
    "rank_curve": Explanation(
        "What a lower rank explains",
        "A map of rank r needs 2Cr numbers instead of C². Truncated SVD keeps the r directions that are "
        "largest in the matrix; reduced rank keeps those that matter most for the states at hand, and so "
        "needs fewer. Both are measured on held-out tokens, counted as in the fit, from sums of products and "
        "without running the model.",
        r"\min_{\operatorname{rank} M_r \le r} \lVert X (M_r - M) \rVert_F^2 \quad\text{or}\quad "
        r"\min_{\operatorname{rank} M_r \le r} \lVert M_r - M \rVert_F^2",
        "Reduced rank regression: Izenman 1975; low-rank adapters in place of layers: SHIFT-LLM",
    ),
    "ranks": Explanation(
        "Take a rank",
        "What a rank explains of the state is a forecast; what it does to the model must be measured. Here "
        "the factors stand in the model, and each dot is its perplexity, or its KL divergence from the "
        "original, on held-out text. The suggested rank is the smallest whose difference from the full one "
        "could be chance.",
        r"\hat y = x + (xU)V, \quad U \in \mathbb R^{C \times r},\ V \in \mathbb R^{r \times C}; \qquad "
        r"\mathrm{KL} = \sum_w p(w) \log \frac{p(w)}{q(w)}",
        "Low rank: Hu et al. (arXiv 2106.09685); divergence: Kullback and Leibler 1951",
    ),
}
