"""Fold six views of handwritten digits one by one, each without 30 % of the samples."""

from viewfold import FCMVC
from viewfold.datasets import load_digits_views
from viewfold.metrics import evaluate
from viewfold.missing import at_random, by_mask


def main() -> None:
    """Fold, print a line per view, leave labels.csv."""
    digits = load_digits_views()
    gone = at_random(len(digits.target), len(digits.views), ratio=0.3, random_state=0)
    model = FCMVC(n_clusters=10, random_state=0)

    print(f"{len(digits.target)} handwritten digits, {len(digits.views)} views, each of them ")
    print("without 30 % of the samples and thrown away after it was folded.\n")
    print("view       features  samples   new  shared  |  clustered  accuracy   NMI  purity     F")
    for view in by_mask(digits.views, gone):
        model.partial_fit(view)
        record = model.views_[-1]
        scores = evaluate(digits.target[model.ids_], model.labels_)
        accuracy, nmi, purity, f_score = (f"{100 * score:.1f}" for score in scores.values())
        print(
            f"{record.name:10} {record.n_features:8} {record.n_samples:8} {record.n_new:5} "
            f"{record.n_shared:7}  | {len(model.labels_):10} {accuracy:>9} {nmi:>5} {purity:>7} "
            f"{f_score:>5}"
        )
    model.to_frame().to_csv("labels.csv")
    print("\nThe cluster of every digit is in labels.csv.")


if __name__ == "__main__":
    main()
