"""Explanations of figures on likelihood: what the model lost as a model of text."""

from ghostlab.plots.explained.base import Explanation

_GHOST = "Ghosted Layers (arXiv 2605.15491)"
FIGURES = {
    "perplexity": Explanation(
        "Perplexity",
        "How many tokens the model is, in effect, undecided between at each step: 1 would be certainty, the "
        "size of the vocabulary blind guessing. It is the exponential of the mean negative log-likelihood "
        "of text that nothing was fitted on. The bar's whisker is a 95 % interval: the windows of that text "
        "are drawn anew many times, as if another sample of it had been read.",
        r"\mathrm{PPL} = \exp\Bigl(-\frac1T \sum_{t=1}^{T} \log p(w_t \mid w_{<t})\Bigr)",
        "Jelinek et al. 1977, *Perplexity: a measure of the difficulty of speech recognition tasks*; "
        "intervals: Efron 1979, *Bootstrap methods*",
    ),
    "gap_closed": Explanation(
        "Share of the gap closed",
        "Dropping layers opens a gap between the log-likelihood of the original and that of the pruned "
        "model. This is the part of it that a recovery takes back: 0 is plain dropping, 100 % the original. "
        "It is taken on log-likelihoods and not on perplexities, because these grow exponentially: going "
        "from 660 to 85 is far more than half of the way in perplexity, but not in what the model knows.",
        r"\text{gap closed} = \frac{\mathcal L_{\text{pruned}} - \mathcal L_{\text{recovered}}}"
        r"{\mathcal L_{\text{pruned}} - \mathcal L_{\text{original}}}, \qquad \mathcal L = \log \mathrm{PPL}",
        f"After the gap that {_GHOST} closes",
    ),
    "window_differences": Explanation(
        "Against the pruned model, window by window",
        "Some windows of text are hard for every model, so two models are best compared on the same window. "
        "Each dot is one window: left of zero, the recovery is better there. What makes a window hard "
        "cancels in the difference, so the interval of the mean is narrow enough to tell a real gain from "
        "chance.",
        r"\delta_i = \mathcal L_i^{\text{recovered}} - \mathcal L_i^{\text{pruned}}, \qquad "
        r"\bar\delta = \frac1n \sum_{i=1}^n \delta_i",
        "Koehn 2004, *Statistical significance tests for machine translation evaluation* (paired bootstrap)",
    ),
    "paired_windows": Explanation(
        "Window by window",
        "The two recoveries are compared on each window of held-out text: left of zero, the first is "
        "better. A cloud on one side means that one is better everywhere, a cloud around zero that they "
        "differ by chance. Two runs can only be paired if they read the same windows.",
        r"\delta_i = \mathcal L_i^{\text{first}} - \mathcal L_i^{\text{second}}",
        "Koehn 2004, *Statistical significance tests for machine translation evaluation* (paired bootstrap)",
    ),
    "window_distribution": Explanation(
        "Hard and easy windows",
        "A mean hides how differently texts fare. Here each window is one dot, so that one can see whether "
        "dropping layers hurts all texts alike or ruins a few: a long tail to the right means the latter.",
        r"\mathrm{PPL}_i = \exp \mathcal L_i, \qquad "
        r"\mathcal L_i = -\frac1T \sum_{t=1}^{T} \log p(w_{i,t} \mid w_{i,<t})",
        "Box plots: Tukey 1977, *Exploratory Data Analysis*",
    ),
    "by_position": Explanation(
        "By position in the window",
        "Later tokens have more text before them and should be easier. A loss that grows along the window "
        "suggests that the pruned model has lost the use of distant context; one that is flat, that it has "
        "lost what single tokens mean.",
        r"\Delta_t = \frac1n \sum_{i=1}^n \bigl(\mathcal L_{i,t} - \mathcal L_{i,t}^{\text{original}}\bigr)",
        "Loss by position: Kaplan et al. (arXiv 2001.08361), appendix D",
    ),
    "by_kind": Explanation(
        "By kind of token",
        "Words, pieces of words, digits and punctuation do not suffer alike. Bars right of zero are kinds of "
        "token that the variant finds less likely than the original did, bars left of it likelier ones; the "
        "number under a kind says how many tokens it is measured on. A loss that sits in digits or word "
        "endings points at what the dropped layers were for.",
        r"\Delta_k = \frac{1}{n_k} \sum_{t \in k} \bigl(\log p_{\text{original}}(x_t) - \log p(x_t)\bigr)",
        "Losses token by token: Olsson et al. (arXiv 2209.11895)",
    ),
    "retained": Explanation(
        "Retained performance",
        "Each bar is the share of the original's accuracy on zero-shot tasks that a variant keeps, averaged "
        "over tasks. Chance is not taken off: a task on which the original guesses is retained by any model "
        "and says nothing, so that such tasks are left out of the bars unless there are no others.",
        r"\mathrm{RP} = \frac1n \sum_{i=1}^n \frac{\mathrm{acc}_i}{\mathrm{acc}_i^{\text{original}}}",
        "Retained performance: ShortGPT (arXiv 2403.03853); tasks of lm-evaluation-harness",
    ),
    "generated": Explanation(
        "Generated text",
        "Every model continues the same prompt, by itself. Then the original reads what each one wrote and "
        "says how likely it finds each token: the shade grows with how many times less likely than to the "
        "writer. ► marks where a text first leaves what the original itself would have written; what "
        "follows may differ and still be good.",
        r"s_t = \log p_{\text{writer}}(w_t \mid w_{<t}) - \log p_{\text{original}}(w_t \mid w_{<t})",
        "Reading one model's text with another: GLTR (arXiv 1906.04043)",
    ),
}
