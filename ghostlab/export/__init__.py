"""A recovered model as a folder: with its operators, as an ordinary checkpoint, as a recipe."""
