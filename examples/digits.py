"""Fold six views of handwritten digits one by one, each without 30 % of the samples."""

from viewfold import FCMVC, ViewFold
from viewfold.datasets import load_digits_views
from viewfold.metrics import accuracy, nmi
from viewfold.missing import at_random, by_mask


def main() -> None:
    """Fold, print a line per view, leave labels.csv."""
    digits = load_digits_views()
    gone = at_random(len(digits.target), len(digits.views), ratio=0.3, random_state=0)
    models = [ViewFold(n_clusters=10, random_state=0), FCMVC(n_clusters=10, random_state=0)]

    print(f"{len(digits.target)} handwritten digits, {len(digits.views)} views, each of them")
    print("without 30 % of the samples and thrown away after it was folded.\n")
    print("                                              |   ViewFold   |    FCMVC")
    print("view      features  samples   new  clustered  | ACC %  NMI % | ACC %  NMI %")
    for view in by_mask(digits.views, gone):
        scores = []
        for model in models:
            model.partial_fit(view)
            y = digits.target[model.ids_]
            scores += [100 * accuracy(y, model.labels_), 100 * nmi(y, model.labels_)]
        record = models[0].views_[-1]
        print(
            f"{record.name:9} {record.n_features:8} {record.n_samples:8} {record.n_new:5} "
            f"{len(y):10}  | {'  '.join(f'{s:5.1f}' for s in scores[:2])} | "
            f"{'  '.join(f'{s:5.1f}' for s in scores[2:])}"
        )
    models[0].to_frame().to_csv("labels.csv")
    print("\nViewFold's cluster of every digit, with its confidence, is in labels.csv.")


if __name__ == "__main__":
    main()
