/**
 * Linear and Gaussian classifiers from class moments, fitted in the browser.
 *
 * One ES module without dependencies. It fits models while a page is open; models that are saved
 * in files predict by the JavaScript export (export/javascript.py) instead. Conventions and
 * formulas are those of the Python package, and tests/unit/report/test_moments_js.py compares the
 * numbers.
 *
 * Matrices are row-major Float64Arrays. N rows, d features, K classes; a code is the number of a
 * class, 0 .. K-1. Everything has an origin near the data: means are offsets from it, and a rule
 * scores (x - origin) . w + b, so that columns with a mean of 1e8 lose no digits. Units of columns
 * (`anchor.unit` in Python) must be 1.
 *
 *   Moments            weight, mean and scatter of each class
 *     Moments.empty({ classes, features, origin, detail })
 *     Moments.ofRows(rows, codes, { labels, features, weight, origin, detail })
 *     new Moments({ origin, weight, mean, scatter, rows, weight2, lost, labels, features })
 *     .add(row, code, weight)            in place, as are the next six; all are rank-one updates
 *     .remove(row, code, weight)
 *     .move(row, code, newRow, newCode, weight)
 *     .moveClass(code, shift)
 *     .addClass(label)
 *     .merge(other)  .subtract(other)
 *     .clone()  .select(columns)  .keepClasses(codes)  .group(numbers)  .scale(factors)
 *     .pooled()  .centre()  .digits()
 *
 *   fit(moments, options)          -> rule
 *     model         "lda" (default), "qda", "rda", "nearest_mean" or "least_squares"
 *     prior         K numbers; null: class shares (nearest_mean: equal)
 *     pooling       "rda": 0 is QDA, 1 is LDA
 *     shrinkage     0 .. 1, or "oas"
 *     target        "diagonal", "scaled_identity" or "identity"
 *     denominator   "unbiased", "ml" or "reliability"
 *     shrink        "pooled" or "mixed"
 *     weighting     "covariance" or "friedman"
 *     predictive    "plug-in" or "student"
 *     ridge         "least_squares": penalty on squared coefficients
 *
 *   rule.kind          "linear", "quadratic" or "indicator"
 *   rule.labels, rule.features, rule.origin, rule.prior, rule.rank (per class, or one number)
 *   rule.warnings      [{ kind, message, columns, label }], as the warnings of Python
 *   rule.scores(rows)          -> Float64Array N x K
 *   rule.posterior(rows)       -> Float64Array N x K;   rule.logPosterior(rows)
 *   rule.predict(rows)         -> Int32Array of codes
 *   rule.onPlane(point, axes)  -> rule of two coordinates: x = point + s axes[0] + t axes[1]
 *
 *   logPosterior(scores, K), posterior(scores, K), argmax(scores, K)
 *   decide(logPosterior, K, { cost, reject }) -> Int32Array of actions; REJECT (-1) for rejected
 *
 *   class LeaveOneOut          each row scored by the rule fitted to all other rows
 *     new LeaveOneOut(moments, rows, codes, weight)     rows: all, or some of those in the moments
 *     .scores(options)           -> Float64Array N x K; .refitted: rows without a closed form
 *
 *   canonicalDirections(moments, options) -> { centre, directions, projected, eigenvalues, share,
 *                                              project(rows) }
 *   smallestChange(rule, row, { norm, scale, lower, upper, fixed })
 *                              -> { row, change, size, before, after } or null
 *   logistic(rows, codes, { classes, weight, ridge, standardize, steps, start })
 *                              -> { rule, converged, separated, steps, loss, gradient }
 *
 *   cholesky(a, d), invertLower(l, d), solveLower(l, b, d), solveUpper(l, b, d),
 *   symmetricEigen(a, d), svd(a, n, d)
 */
