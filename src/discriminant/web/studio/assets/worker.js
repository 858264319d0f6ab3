/** Fits that take longer than a frame: leave-one-out without a closed form, and logistic regression. */

import { LeaveOneOut, Moments, logistic } from "./moments.js";
import { leftOutScores } from "./left_out.js";

let current = null; // the data of the last job that had any
let left = null;

onmessage = ({ data: { id, kind, data, options } }) => {
  if (data) [current, left] = [data, null];
  const { moments, rows, codes } = current;
  try {
    if (kind === "leave-one-out") {
      left ??= new LeaveOneOut(new Moments(moments), rows, codes);
      const scores = leftOutScores(left, options);
      postMessage({ id, scores }, [scores.buffer]);
    } else {
      const { rule, converged, separated } = logistic(rows, codes, options);
      const { coef, intercept, origin, rank, prior, warnings } = rule;
      postMessage({ id, rule: { coef, intercept, origin, rank, prior, warnings }, converged, separated });
    }
  } catch (error) {
    postMessage({ id, error: error.message });
  }
};
