"""Eight logistic classifiers of the same rows, by Newton steps.

For child k of a block, with t = +-1, cost c and margins m = t (x.w + b),

    least over w, b    (|w|^2 + b^2) / 2  +  sum c log(1 + exp(-m))

A step solves (1 + X'DX) s = -gradient, D = c sigma(m) sigma(-m), by conjugate gradients, ever more
closely as the gradient falls; it is halved until the objective falls enough, which asks of the rows
only their margins. All eight share each pass over the rows, and have their own lengths of step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.models.label_tree.loops_lanes import added, summed
from discriminant.models.label_tree.reaching import BLOCK
from discriminant.moments.compiling import reordered


@reordered
def scored(starts: Any, places: Any, values: Any, P: Any, out: Any) -> None:
    """out (rows, 8) = x.P + the bias of P (features + 1, 8)."""
    for i in range(len(out)):
        summed(places, values, P, starts[i], starts[i + 1], out[i])


@reordered
def pulled(starts: Any, places: Any, values: Any, R: Any, scale: Any, P: Any, out: Any) -> None:
    """out (features + 1, 8) = P + X'(scale R), with R and scale (rows, 8)."""
    for j in range(len(out)):
        for k in range(BLOCK):
            out[j, k] = P[j, k]
    pull = np.empty(BLOCK, out.dtype)
    for i in range(len(R)):
        for k in range(BLOCK):
            pull[k] = R[i, k] * scale[i, k]
        added(places, values, out, starts[i], starts[i + 1], pull)


@reordered
def along(P: Any, Q: Any, total: Any) -> None:
    """total (8,) = P.Q of each child, summed in float64."""
    for k in range(BLOCK):
        total[k] = 0.0
    for j in range(len(P)):
        for k in range(BLOCK):
            total[k] += np.float64(P[j, k]) * np.float64(Q[j, k])


@reordered
def loss_of(margin: Any) -> Any:
    """log(1 + exp(-m)), without overflow."""
    if margin > 0:
        return np.log1p(np.exp(-margin))
    return np.log1p(np.exp(margin)) - margin


@reordered
def newton(
    starts: Any,
    places: Any,
    values: Any,
    sign: Any,
    half: Any,
    tolerance: Any,
    most: Any,
    W: Any,
    stop: Any,
) -> int:
    """Weights W (features + 1, 8), which come as 0; returns how many steps were made."""
    n, kind = len(sign), W.dtype
    score, curve = np.zeros((n, BLOCK), kind), np.empty((n, BLOCK), kind)
    move, one = np.empty((n, BLOCK), kind), np.ones((n, BLOCK), kind)
    slope, way = np.empty(W.shape, kind), np.empty(W.shape, kind)
    rest, turn, image = np.empty(W.shape, kind), np.empty(W.shape, kind), np.empty(W.shape, kind)
    goal, steep, was, now = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    bent, length = np.empty(BLOCK), np.empty(BLOCK)
    still = 0.0
    for i in range(n):
        still += 1e-4 * np.finfo(kind).eps * 0.5 / (half[i, 0] if half.ndim == 2 else half[0])
    for step in range(most):
        for i in range(n):
            for k in range(BLOCK):
                t = kind.type(sign[i, k])
                lean = half[i, k] if half.ndim == 2 else half[0]
                c = kind.type(0.5) / lean
                miss = kind.type(1) / (kind.type(1) + np.exp(t * score[i, k]))
                move[i, k] = -c * t * miss
                curve[i, k] = c * miss * (kind.type(1) - miss)
        pulled(starts, places, values, move, one, W, slope)
        along(slope, slope, steep)
        if step == 0:
            for k in range(BLOCK):
                positive = 0
                for i in range(n):
                    positive += sign[i, k] > 0
                share = max(min(positive, n - positive), 1) / n
                goal[k] = steep[k] * (tolerance * share) ** 2
        going = 0
        for k in range(BLOCK):
            going += steep[k] > goal[k]
        if going == 0 or stop[0]:
            return int(step)
        for j in range(len(W)):
            for k in range(BLOCK):
                way[j, k] = 0
                rest[j, k] = -slope[j, k]
                turn[j, k] = rest[j, k]
        for k in range(BLOCK):
            was[k] = steep[k]
        for _ in range(len(W) + 10):
            active = 0
            for k in range(BLOCK):
                near = min(0.1, np.sqrt(steep[k]) / (1.0 + np.sqrt(steep[k])))
                active += steep[k] > goal[k] and was[k] > near * near * steep[k]
            if active == 0:
                break
            scored(starts, places, values, turn, move)
            pulled(starts, places, values, move, curve, turn, image)
            along(turn, image, bent)
            for k in range(BLOCK):
                near = min(0.1, np.sqrt(steep[k]) / (1.0 + np.sqrt(steep[k])))
                runs = steep[k] > goal[k] and was[k] > near * near * steep[k]
                length[k] = was[k] / bent[k] if runs and bent[k] > 0 else 0.0
            for j in range(len(W)):
                for k in range(BLOCK):
                    way[j, k] += kind.type(length[k]) * turn[j, k]
                    rest[j, k] -= kind.type(length[k]) * image[j, k]
            along(rest, rest, now)
            for k in range(BLOCK):
                bent[k] = now[k] / was[k] if length[k] > 0 else 0.0
                was[k] = now[k] if length[k] > 0 else was[k]
            for j in range(len(W)):
                for k in range(BLOCK):
                    turn[j, k] = rest[j, k] + kind.type(bent[k]) * turn[j, k]
        scored(starts, places, values, way, move)
        searched(score, move, sign, half, W, slope, way, length)
        along(slope, way, bent)
        going = 0
        for k in range(BLOCK):
            going += -bent[k] > still and length[k] > 0
        for j in range(len(W)):
            for k in range(BLOCK):
                W[j, k] += kind.type(length[k]) * way[j, k]
        for i in range(n):
            for k in range(BLOCK):
                score[i, k] += kind.type(length[k]) * move[i, k]
        if going == 0:  # what was left to gain is lost in the rounding of the objective
            return int(step)
    return int(most)


@reordered
def searched(
    score: Any, move: Any, sign: Any, half: Any, W: Any, slope: Any, way: Any, length: Any
) -> None:
    """length (8,) of each child's step: 1, 1/2, 1/4, .. until the objective falls enough."""
    down, cross, square = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    along(slope, way, down)
    along(W, way, cross)
    along(way, way, square)
    for k in range(BLOCK):
        length[k] = 0.0
        if down[k] < 0:
            trial, fell = 2.0, 0.0
            for _ in range(30):
                trial /= 2
                fell = trial * cross[k] + 0.5 * trial * trial * square[k]
                for i in range(len(sign)):
                    t = np.float64(sign[i, k])
                    lean = half[i, k] if half.ndim == 2 else half[0]
                    old = t * np.float64(score[i, k])
                    new = old + trial * t * np.float64(move[i, k])
                    fell += 0.5 / lean * (loss_of(new) - loss_of(old))
                if fell <= 1e-4 * trial * down[k]:
                    length[k] = trial
                    break
