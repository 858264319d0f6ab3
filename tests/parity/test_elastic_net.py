"""The elastic net against glmnet: ridge (l1_ratio |w|_1 + (1 - l1_ratio) / 2 |w|^2)."""

from discriminant import Logistic
from tests.parity.test_logistic import R, assert_net, nets, rows_of


@nets("half")
def test_the_elastic_net_is_that_of_glmnet(size, kind, at):
    golden = R["glmnet"][size][kind][at]
    model = Logistic(
        ridge=golden["lambda"],
        l1_ratio=golden["alpha"],
        standardize=kind.endswith("standardized"),
    ).fit(*rows_of({"two": "two", "three": "classes"}[size]))
    assert_net(model, size, golden)
