"""The k largest of each row: sort the rows and cut, or select? A whole operator plugin for autoheur."""

from autoheur.plugin import Feature, Operator, hookimpl


@hookimpl
def autoheur_operator():
    return Operator("top_k", "The k largest of each row: sort and cut, or select", default_choice="select")


@hookimpl
def autoheur_features():
    return [
        Feature("rows", integer=True),
        Feature("columns", integer=True),
        Feature("k", description="how many to keep of each row", integer=True),
        Feature("share", description="what part of a row is kept", formula="k / columns"),
        Feature("elements", formula="rows * columns"),
    ]


@hookimpl
def autoheur_choices():
    return ["sort", "select"]


@hookimpl
def autoheur_benchmark(problem, device):
    import torch

    values = torch.randn(problem["rows"], problem["columns"], device=device)
    k = problem["k"]
    return {
        "sort": lambda: torch.sort(values, dim=-1, descending=True).values[:, :k],
        "select": lambda: torch.topk(values, k, dim=-1).values,
    }


@hookimpl
def autoheur_problems(random):
    while True:
        columns = 2 ** random.randint(4, 14)
        yield {"rows": 2 ** random.randint(0, 8), "columns": columns, "k": random.randint(1, columns)}
