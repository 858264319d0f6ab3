/** Fits that take longer than a frame: leave-one-out without a closed form, and logistic regression. */

import { LeaveOneOut, Moments, logistic } from "./moments.js";

onmessage = ({ data: { id, kind, moments, rows, codes, options } }) => {
  try {
    if (kind === "leave-one-out") {
      const scores = new LeaveOneOut(new Moments(moments), rows, codes).scores(options);
      postMessage({ id, scores });
    } else {
      const { rule, converged, separated } = logistic(rows, codes, options);
      const { coef, intercept, origin, rank, prior, warnings } = rule;
      postMessage({ id, rule: { coef, intercept, origin, rank, prior, warnings }, converged, separated });
    }
  } catch (error) {
    postMessage({ id, error: error.message });
  }
};
